// A terminal taken over as a whole: its alternate screen, and keys one by one.

#pragma once

#include <termios.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/signal_set.hpp>
#include <functional>
#include <string>

#include "client/event_loop.h"
#include "client/top_view.h"

namespace tactus::client {

// From construction to destruction the terminal shows the alternate screen, without a cursor, and
// hands keys over at once and unseen; then it is as it was. Ctrl-C goes on being a signal, Ctrl-Z
// does nothing. Requires: standard output is a terminal. One at a time, in the loop's thread.
class FullScreen {
 public:
  struct Handlers {
    std::function<void(char key)> key;  // from standard input, where that is a terminal
    std::function<void()> resized;
  };

  FullScreen(EventLoop& loop, Handlers handlers);
  ~FullScreen();
  FullScreen(const FullScreen&) = delete;
  FullScreen& operator=(const FullScreen&) = delete;

  FrameSize size() const;
  void Show(const std::string& frame) const;

 private:
  void AwaitKeys();
  void AwaitResize();

  const Handlers handlers_;
  boost::asio::posix::stream_descriptor input_;
  boost::asio::signal_set resizes_;
  bool has_keys_ = false;
  termios before_{};  // of the input, when has_keys_
};

}  // namespace tactus::client
