#include "runtime/logging.h"

#include <spdlog/async.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <mutex>

namespace tactus::runtime {
namespace {

constexpr std::size_t kLinesWaitingMax = 8192;
constexpr char kPattern[] = "%Y-%m-%dT%H:%M:%S.%e%z %l %n: %v";

// Null until StartLogging. Loggers are made from any thread, so the registry of spdlog, which has
// its own lock, holds them; this pointer is written by main alone, before other threads are there.
std::shared_ptr<spdlog::sinks::sink>& SharedSink() {
  static std::shared_ptr<spdlog::sinks::sink> sink;
  return sink;
}

std::mutex& CreationMutex() {
  static std::mutex mutex;
  return mutex;
}

}  // namespace

absl::Status StartLogging(const std::string& level) {
  const spdlog::level::level_enum parsed = spdlog::level::from_str(level);
  if (parsed == spdlog::level::off && level != "off") {
    return absl::InvalidArgumentError("log-level: found \"" + level +
                                      "\", allowed are trace, debug, info, warn, error and off");
  }
  spdlog::init_thread_pool(kLinesWaitingMax, 1);
  spdlog::set_level(parsed);
  SharedSink() = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  SharedSink()->set_pattern(kPattern);
  return absl::OkStatus();
}

void StopLogging() {
  SharedSink().reset();
  spdlog::shutdown();
}

std::shared_ptr<spdlog::logger> Logger(const std::string& component) {
  const std::lock_guard lock(CreationMutex());
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
