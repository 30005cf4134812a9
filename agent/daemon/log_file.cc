#include "agent/daemon/log_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "runtime/utf8.h"

namespace tactus::agent {

LogFile::LogFile(std::string path, std::size_t bytes_max)
    : path_(std::move(path)), bytes_max_(bytes_max) {
  Open();
}

void LogFile::Open() {
  file_ = Descriptor(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  struct stat found = {};
  bytes_ = ::fstat(file_.get(), &found) == 0 ? static_cast<std::size_t>(found.st_size) : 0;
}

void LogFile::Rotate() {
  std::rename(path_.c_str(), (path_ + ".1").c_str());
  Open();
}

void LogFile::Append(std::string_view text) {
  tail_ += text;
  if (tail_.size() > kTailBytesMax) tail_.erase(0, tail_.size() - kTailBytesMax);
  while (!text.empty()) {
    if (bytes_ >= bytes_max_) Rotate();
    if (bytes_ >= bytes_max_) return;  // it could not be renamed: what comes is in the tail alone
    const std::string_view part = text.substr(0, bytes_max_ - bytes_);
    const ssize_t written = ::write(file_.get(), part.data(), part.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    bytes_ += static_cast<std::size_t>(written);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

std::string LogFile::Tail() const {
  std::string valid = runtime::ToUtf8(tail_);
  if (valid.size() <= kTailBytesMax) return valid;
  // Replacements are longer than what they replace; cut at the front again, at a character's edge.
  valid.erase(0, valid.size() - kTailBytesMax);
  while ((static_cast<unsigned char>(valid.front()) & 0xc0) == 0x80) valid.erase(0, 1);
  return valid;
}

}  // namespace tactus::agent
