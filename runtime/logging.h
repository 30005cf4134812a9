// Logs: asynchronous, to standard error, one logger a component, `verb phrase key=value key=value`.
//
//   Logger("service")->info("job accepted job={} request={}", id, Quoted(request));

#pragma once

#include <spdlog/logger.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"

namespace tactus::runtime {

// How much is logged, and as what.
struct LoggingOptions {
  std::string level = "info";   // trace, debug, info, warn, error or off
  std::string format = "text";  // text, or json: an object a line, as runtime/json_log.h has it
};

// Starts the logging thread; the oldest lines are lost when 8192 wait. Called once, from main,
// before the first Logger(). Errors: InvalidArgument, an unknown level or format.
absl::Status StartLogging(const LoggingOptions& options);

// Whether `level` is one, "level: ..." if not.
absl::Status CheckLogLevel(const std::string& level);

// All loggers log so much from now on, also one that another thread makes just then. Thread-safe.
// Calls `say`, which may be null, once, to log the change: before it where less is logged from then
// on, else after it. Requires: CheckLogLevel(level).
void SetLogLevel(const std::string& level, const std::function<void()>& say);

// Writes what waits and ends the logging thread. Called last, from main.
void StopLogging();

// The logger of a component, made at its first use; shared with spdlog's registry. Without
// StartLogging (in tests) it writes synchronously, and only warnings and errors.
std::shared_ptr<spdlog::logger> Logger(const std::string& component);

// `value` in double quotes, with quotes, backslashes and control characters escaped: one value of a
// log line.
std::string Quoted(const std::string& value);

}  // namespace tactus::runtime
