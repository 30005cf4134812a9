// A terminal taken over as a whole: its alternate screen, and keys one by one.

#pragma once

#include <termios.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/signal_set.hpp>
#include <functional>
#include <string>

#include "client/observe/event_loop.h"
#include "client/observe/top_view.h"

namespace tactus::client {

// From construction to destruction the terminal shows the alternate screen, without a cursor, and
// hands keys over at once and unseen; then it is as it was. Ctrl-C goes on being a signal, Ctrl-Z
// and Ctrl-\ do nothing. A SIGTSTP from elsewhere stops the process with the terminal as it was
// before; who goes on has the screen again. Requires: standard output is a terminal. One at a time,
// in the loop's thread.
class FullScreen {
 public:
  // `key` gets what is typed, where standard input is a terminal.
  FullScreen(EventLoop& loop, std::function<void(char)> key);
  ~FullScreen();
  FullScreen(const FullScreen&) = delete;
  FullScreen& operator=(const FullScreen&) = delete;

  // The text to show, from now on and whatever size the screen has: see Frame. Draws nothing where
  // nothing changed.
  void Show(std::string text);

 private:
  void Enter();
  void Leave() const;
  void Draw();
  void AwaitKeys();
  void AwaitResize();
  void AwaitStop();

  const std::function<void(char)> key_;
  boost::asio::posix::stream_descriptor input_;
  boost::asio::signal_set resizes_;
  boost::asio::signal_set stops_;
  termios before_{};     // of the input, when has_keys_, which is made from it
  const bool has_keys_;  // the input is a terminal
  std::string text_;
  std::string drawn_;  // the frame on the screen
};

}  // namespace tactus::client
