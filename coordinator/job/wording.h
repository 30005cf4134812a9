// The words that jobs use towards people.

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "coordinator/job/records.h"

namespace tactus::job {

// "worker 7 on node a".
std::string WorkerName(const MemberRecord& member);

// "worker 7 on node a, worker 8 on node b"; more than four are counted: "... and 12 more".
std::string WorkerNames(const std::vector<MemberRecord>& members);

// The keys likewise: "a, b, c, d and 3 more".
std::string NodeNames(const std::map<std::string, std::string>& nodes);

// "1 cpu device", "3 devices".
std::string DeviceCount(std::uint64_t count, DeviceKind kind);

// "1 worker", "4 workers".
std::string WorkerCount(std::uint64_t count);

// "90 seconds", "10 minutes": the larger unit when it fits exactly.
std::string DurationWords(Duration duration);

// "signal 9 (SIGKILL)"; the number alone when the name is not a common one.
std::string SignalWords(int signal);

// The last line of `log` that is not blank, trimmed, cut to 200 bytes; empty when there is none.
std::string LastLine(std::string_view log);

}  // namespace tactus::job
