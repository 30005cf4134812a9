// Groups of transports for tests: every kind of transport behind one name.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "agent/collective/tcp_transport.h"
#include "agent/collective/transport.h"
#include "base/time.h"

namespace tactus::collective {

enum class Kind { kInProcess, kTcp, kTls };

// A kind of transport and a number of members; printed as "Tcp4".
struct GroupShape {
  Kind kind = Kind::kInProcess;
  int size = 1;
};
std::string NameOf(const GroupShape& shape);
void PrintTo(const GroupShape& shape, std::ostream* out);

// All kinds, with 1 to `size_max` members.
std::vector<GroupShape> ShapesFrom(int size_min, int size_max);

// The instant that the transports of MakeGroup call the present.
inline constexpr Instant kTestNow{Seconds(42)};

// Meetings over loopback whose members exchange their endpoints in memory, one a rank. They know a
// secret of theirs.
std::vector<TcpMeeting> MeetInMemory(int size, bool encrypted = false);

// A connected group, one transport a rank.
std::vector<std::unique_ptr<Transport>> MakeGroup(const GroupShape& shape);

// Calls `body(rank)` for every rank, each on its own thread, and waits for all.
void OnEveryRank(int size, const std::function<void(int rank)>& body);

// `length` values of either sign over several magnitudes, so that the order of a sum shows in its
// bits.
std::vector<float> RandomValues(std::size_t length, std::uint64_t seed);

// What the group must compute: the sum of RandomValues(length, seed + rank), taken in rank order.
std::vector<float> ExpectedSum(int size, std::size_t length, std::uint64_t seed);

// Whether both hold the same bits.
bool SameBits(const std::vector<float>& a, const std::vector<float>& b);

}  // namespace tactus::collective
