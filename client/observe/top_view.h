// What `tactus top` shows. Pure.

#pragma once

#include <cstddef>
#include <string>

#include "client/observe/live_jobs.h"
#include "tactus/v1/nodes.pb.h"

namespace tactus::client {

// A line that sums up, the first kTopJobsShown jobs, and every device with what it does: batch,
// speed and idle time where a job's worker runs on it, and its fault.
inline constexpr int kTopJobsShown = 100;
std::string TopText(const LiveJobs& live, const v1::ListNodesResponse& nodes, bool colour);

struct FrameSize {
  std::size_t rows = 24;     // >= 2
  std::size_t columns = 80;  // >= 1
};

// What turns a terminal's screen, whatever is on it, into the first lines of `text`, which may have
// colours; the last line says how many did not fit. Writes no more than the screen has room for.
std::string Frame(const std::string& text, const FrameSize& size);

}  // namespace tactus::client
