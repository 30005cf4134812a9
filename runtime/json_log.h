// A line of the log as a JSON object. Pure.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tactus::runtime {

// One line as the loggers get it.
struct LogLine {
  std::int64_t time = 0;         // wall clock, nanoseconds since 1970
  std::string_view level{};      // "info"
  std::string_view component{};  // "service"
  std::string_view text{};       // a verb phrase, then key=value, as runtime/logging.h has it
};

// {"ts":"2026-03-01T14:05:00.123456Z","level":"info","component":"events","event":"job_submitted",
//  "msg":"job submitted","job":"demo-1","request":"..."}
//
// event is the verb phrase up to its first comma, with _ between its words: it does not change when
// the text behind the comma does. docs/events.md lists them all. A value in quotes is text, without
// them; one that is a number, true or false is that, but for keys that name something; the rest is
// text. Ends with a line break. Valid UTF-8 and one line whatever was given.
std::string JsonLogLine(const LogLine& line);

}  // namespace tactus::runtime
