#include "client/render/screen.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>

namespace tactus::client {

Screen::Screen(const ScreenOptions& options)
    : options_(options), is_terminal_(isatty(STDOUT_FILENO) == 1) {}

void Screen::Print(const std::string& text) const {
  errno = 0;
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if ((std::fflush(stdout) != 0 || !written) && write_error_ == 0) write_error_ = errno;
}

ExitCode Screen::AfterAll(ExitCode code) const {
  if (write_error_ == 0 || write_error_ == EPIPE) return code;
  Say(std::string("standard output: ") + std::strerror(write_error_));
  return code == ExitCode::kOk ? ExitCode::kFile : code;
}

void Screen::Say(const std::string& message) const {
  std::fflush(stdout);
  std::fprintf(stderr, "tactus: %s\n", message.c_str());
}

void Screen::Say(const std::vector<std::string>& messages) const {
  for (const std::string& message : messages) Say(message);
}

std::optional<bool> Screen::Ask(const std::string& question) const {
  if (isatty(STDIN_FILENO) != 1 || isatty(STDERR_FILENO) != 1) return std::nullopt;
  std::fflush(stdout);
  std::fprintf(stderr, "tactus: %s [y/N] ", question.c_str());
  std::string answer;
  if (!std::getline(std::cin, answer)) return false;
  return !answer.empty() && (answer.front() == 'y' || answer.front() == 'Y');
}

std::size_t Screen::columns() const {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return std::max<std::size_t>(20, size.ws_col);
}

}  // namespace tactus::client
