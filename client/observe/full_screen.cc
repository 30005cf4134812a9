#include "client/observe/full_screen.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <utility>

namespace tactus::client {
namespace {

constexpr char kEnter[] = "\x1b[?1049h\x1b[?25l";  // the alternate screen; no cursor
constexpr char kLeave[] = "\x1b[?25h\x1b[?1049l";

FrameSize SizeOfScreen() {
  winsize found{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &found) != 0 || found.ws_col == 0 || found.ws_row == 0) {
    return {};
  }
  return {.rows = std::max<std::size_t>(2, found.ws_row), .columns = found.ws_col};
}

// The terminal of standard input, opened anew: Asio makes what it waits for non-blocking, which
// standard input shares with standard output, where frames would be cut off, and with the shell.
// Below 0: it cannot be.
int OpenKeys() {
  std::array<char, 256> name{};
  if (ttyname_r(STDIN_FILENO, name.data(), name.size()) != 0) return -1;
  return ::open(name.data(), O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
}

void Write(const std::string& codes) {
  std::fwrite(codes.data(), 1, codes.size(), stdout);
  std::fflush(stdout);
}

}  // namespace

FullScreen::FullScreen(EventLoop& loop, std::function<void(char)> key)
    : key_(std::move(key)),
      input_(loop.context()),
      resizes_(loop.context(), SIGWINCH),
      stops_(loop.context(), SIGTSTP),
      has_keys_(isatty(STDIN_FILENO) == 1 && tcgetattr(STDIN_FILENO, &before_) == 0) {
  Enter();
  if (has_keys_) {
    boost::system::error_code failed;
    const int keys = OpenKeys();
    if (keys >= 0) input_.assign(keys, failed);
    if (keys >= 0 && !failed) AwaitKeys();
  }
  AwaitResize();
  AwaitStop();
}

FullScreen::~FullScreen() { Leave(); }

// The terminal first: in the background that stops the process before it draws.
void FullScreen::Enter() {
  if (has_keys_) {
    termios raw = before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    raw.c_cc[VSUSP] = _POSIX_VDISABLE;
    raw.c_cc[VQUIT] = _POSIX_VDISABLE;
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  }
  Write(kEnter);
}

void FullScreen::Leave() const {
  Write(kLeave);
  if (has_keys_) tcsetattr(STDIN_FILENO, TCSANOW, &before_);
}

void FullScreen::Show(std::string text) {
  text_ = std::move(text);
  Draw();
}

void FullScreen::Draw() {
  std::string frame = Frame(text_, SizeOfScreen());
  if (frame == drawn_) return;
  Write(frame);
  drawn_ = std::move(frame);
}

// What was to be read may be gone when it is read, as after a stop: the next key is awaited all the
// same.
void FullScreen::AwaitKeys() {
  input_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                    [this](const boost::system::error_code& error) {
                      if (error) return;
                      std::array<char, 64> keys{};
                      const ssize_t count = read(input_.native_handle(), keys.data(), keys.size());
                      const bool gone = count < 0 && (errno == EAGAIN || errno == EINTR);
                      if (count <= 0 && !gone) return;
                      for (ssize_t i = 0; i < count; ++i) {
                        key_(keys[static_cast<std::size_t>(i)]);
                      }
                      AwaitKeys();
                    });
}

// What a screen shows after its size changed, its program decides: all is drawn.
void FullScreen::AwaitResize() {
  resizes_.async_wait([this](const boost::system::error_code& error, int) {
    if (error) return;
    drawn_.clear();
    Draw();
    AwaitResize();
  });
}

void FullScreen::AwaitStop() {
  stops_.async_wait([this](const boost::system::error_code& error, int) {
    if (error) return;
    Leave();
    raise(SIGSTOP);
    Enter();
    drawn_.clear();
    Draw();
    AwaitStop();
  });
}

}  // namespace tactus::client
