// Workers' output as text for a terminal or a file.

#pragma once

#include <cstdint>
#include <string>

#include "tactus/v1/jobs.pb.h"

namespace tactus::client {

// Puts the rank before each line where several are shown; keeps what a terminal would obey away
// from it. Remembers where lines break. Not thread-safe.
class LogText {
 public:
  // `ranked`: begin each line with its rank.
  explicit LogText(bool ranked) : ranked_(ranked) {}

  std::string Show(const v1::LogEntry& entry);

 private:
  const bool ranked_;
  std::uint32_t open_rank_ = 0;
  bool open_ = false;  // the last text shown ended within a line, of open_rank_
};

}  // namespace tactus::client
