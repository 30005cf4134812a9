// A worker's log on disk, bounded, and the end of it in memory.

#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/descriptor.h"

namespace tactus::agent {

// Appends to a file. At kBytesMax the file becomes PATH.1, replacing the one before, and a new one
// begins: at most twice kBytesMax on disk. A disk that refuses costs the lines, not the worker: the
// tail goes on.
class LogFile {
 public:
  static constexpr std::size_t kBytesMax = 10u << 20;
  static constexpr std::size_t kTailBytesMax = 4096;

  // The folder exists. bytes_max: other than kBytesMax in tests.
  explicit LogFile(std::string path, std::size_t bytes_max = kBytesMax);

  void Append(std::string_view text);

  // The last kTailBytesMax bytes appended, as valid UTF-8 no longer than that.
  std::string Tail() const;

 private:
  void Open();
  void Rotate();

  const std::string path_;
  const std::size_t bytes_max_;
  Descriptor file_;  // none: the disk refused
  std::size_t bytes_ = 0;
  std::string tail_;
};

}  // namespace tactus::agent
