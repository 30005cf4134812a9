// The two streams of a command: data on standard output, messages on standard error.

#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "client/render/exit_code.h"

namespace tactus::client {

struct ScreenOptions {
  bool no_color = false;  // NO_COLOR is set
  bool dumb = false;      // the terminal cannot move its cursor
};

class Screen {
 public:
  explicit Screen(const ScreenOptions& options);

  // Data, as it is. What could not be written, AfterAll says.
  void Print(const std::string& text) const;

  // The exit code after everything was printed: kFile in place of kOk, and a message, where
  // something could not be. A reader who closed the pipe has what it wanted.
  ExitCode AfterAll(ExitCode code) const;

  // A message, "tactus: " before it and a line break after it.
  void Say(const std::string& message) const;
  void Say(const std::vector<std::string>& messages) const;

  // Asks on the terminal; true for an answer that begins with y. Nothing when there is nobody to
  // ask: standard input or error is no terminal.
  std::optional<bool> Ask(const std::string& question) const;

  // Standard output is a terminal that can move its cursor.
  bool is_terminal() const { return is_terminal_ && !options_.dumb; }
  // Standard output is a terminal of any kind.
  bool is_for_a_person() const { return is_terminal_; }
  bool has_colour() const { return is_terminal() && !options_.no_color; }
  // Its width now; 80 when nobody says.
  std::size_t columns() const;
  // The width that a table has to keep to: that of a terminal; 0: none, it goes elsewhere.
  std::size_t table_columns() const { return is_terminal_ ? columns() : 0; }

 private:
  const ScreenOptions options_;
  const bool is_terminal_;
  mutable int write_error_ = 0;  // errno of the first Print that failed
};

}  // namespace tactus::client
