#include "runtime/logging.h"

#include <spdlog/async.h>
#include <spdlog/formatter.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <string_view>

#include "runtime/json_log.h"
#include "runtime/status.h"
#include "threads/mutex.h"

namespace tactus::runtime {
namespace {

constexpr std::size_t kLinesWaitingMax = 8192;
constexpr std::array<std::string_view, 6> kLevels = {"trace", "debug", "info",
                                                     "warn",  "error", "off"};
constexpr char kPattern[] = "%Y-%m-%dT%H:%M:%S.%e%z %* %n: %v";  // *: LevelName

// Null until StartLogging. Loggers are made from any thread, so the registry of spdlog, which has
// its own lock, holds them; this pointer is written by main alone, before other threads are there.
std::shared_ptr<spdlog::sinks::sink>& SharedSink() {
  static std::shared_ptr<spdlog::sinks::sink> sink;
  return sink;
}

threads::Mutex& CreationMutex() {
  static threads::Mutex mutex;
  return mutex;
}

// As --log-level and the documents have it; spdlog's own word for warn is warning.
std::string_view NameOf(spdlog::level::level_enum level) {
  const spdlog::string_view_t name = spdlog::level::to_string_view(level);
  return level == spdlog::level::warn ? "warn" : std::string_view(name.data(), name.size());
}

class LevelName final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& line, const std::tm&,
              spdlog::memory_buf_t& out) override {
    const std::string_view name = NameOf(line.level);
    out.append(name.data(), name.data() + name.size());
  }
  std::unique_ptr<spdlog::custom_flag_formatter> clone() const override {
    return std::make_unique<LevelName>();
  }
};

std::unique_ptr<spdlog::formatter> TextFormatter() {
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<LevelName>('*').set_pattern(kPattern);
  return formatter;
}

class JsonFormatter final : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& line, spdlog::memory_buf_t& out) override {
    const std::string json =
        JsonLogLine({.time = std::chrono::nanoseconds(line.time.time_since_epoch()).count(),
                     .level = NameOf(line.level),
                     .component = {line.logger_name.data(), line.logger_name.size()},
                     .text = {line.payload.data(), line.payload.size()}});
    out.append(json.data(), json.data() + json.size());
  }
  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<JsonFormatter>();
  }
};

}  // namespace

absl::Status CheckLogLevel(const std::string& level) {
  if (std::ranges::find(kLevels, level) != kLevels.end()) return absl::OkStatus();
  return InvalidFields(
      {{.field = "level",
        .description =
            "found \"" + level + "\", allowed are trace, debug, info, warn, error and off"}});
}

absl::Status StartLogging(const LoggingOptions& options) {
  if (absl::Status status = CheckLogLevel(options.level); !status.ok()) {
    return absl::InvalidArgumentError("log-" + std::string(status.message()));
  }
  if (options.format != "text" && options.format != "json") {
    return absl::InvalidArgumentError("log-format: found \"" + options.format +
                                      "\", allowed are text and json");
  }
  spdlog::init_thread_pool(kLinesWaitingMax, 1);
  spdlog::set_level(spdlog::level::from_str(options.level));
  SharedSink() = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  if (options.format == "json") {
    SharedSink()->set_formatter(std::make_unique<JsonFormatter>());
  } else {
    SharedSink()->set_formatter(TextFormatter());
  }
  return absl::OkStatus();
}

void SetLogLevel(const std::string& level, const std::function<void()>& say) {
  const spdlog::level::level_enum next = spdlog::level::from_str(level);
  const bool less = next > spdlog::get_level();
  if (say && less) say();
  {
    // A logger gets its level when it is made and the later ones from the registry: between the two
    // it would miss one.
    const threads::MutexLock lock(CreationMutex());
    spdlog::set_level(next);
  }
  if (say && !less) say();
}

void StopLogging() {
  SharedSink().reset();
  spdlog::shutdown();
}

std::shared_ptr<spdlog::logger> Logger(const std::string& component) {
  const threads::MutexLock lock(CreationMutex());
  if (std::shared_ptr<spdlog::logger> logger = spdlog::get(component)) return logger;
  std::shared_ptr<spdlog::logger> logger;
  if (SharedSink() != nullptr) {
    logger = std::make_shared<spdlog::async_logger>(component, SharedSink(), spdlog::thread_pool(),
                                                    spdlog::async_overflow_policy::overrun_oldest);
    logger->flush_on(spdlog::level::info);
    logger->set_level(spdlog::get_level());
  } else {
    logger = std::make_shared<spdlog::logger>(component,
                                              std::make_shared<spdlog::sinks::stderr_sink_mt>());
    logger->set_level(spdlog::level::warn);
  }
  spdlog::register_logger(logger);
  return logger;
}

std::string Quoted(const std::string& value) {
  std::string quoted = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (c == '\n') {
      quoted += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      quoted += ' ';
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

}  // namespace tactus::runtime
