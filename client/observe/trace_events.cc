#include "client/observe/trace_events.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "client/text/quantity.h"

namespace tactus::client {
namespace {

constexpr double kNanosecondsASecond = 1e9;

std::string Quoted(std::string_view text) {
  return nlohmann::json(std::string(text))
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// The format counts in microseconds.
std::string Microseconds(std::int64_t nanoseconds) {
  TACTUS_CHECK(nanoseconds >= 0);
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%lld.%03lld", static_cast<long long>(nanoseconds / 1000),
                static_cast<long long>(nanoseconds % 1000));
  return text.data();
}

std::string Place(const TraceTrack& track) {
  return "\"pid\":" + std::to_string(track.process) + ",\"tid\":" + std::to_string(track.thread);
}

}  // namespace

TraceArguments& TraceArguments::AddRaw(std::string_view key, const std::string& value) {
  if (!text_.empty()) text_ += ',';
  text_ += Quoted(key) + ":" + value;
  return *this;
}

TraceArguments& TraceArguments::Add(std::string_view key, std::uint64_t value) {
  return AddRaw(key, std::to_string(value));
}

TraceArguments& TraceArguments::Add(std::string_view key, double value) {
  return std::isfinite(value) ? AddRaw(key, FormatNumber(value)) : *this;
}

TraceArguments& TraceArguments::Add(std::string_view key, const std::string& value) {
  return AddRaw(key, Quoted(value));
}

void TraceEvents::Add(const std::string& fields) {
  events_ += (events_.empty() ? "{" : ",\n{") + fields + "}";
}

void TraceEvents::AddMetadata(std::string_view kind, const TraceTrack& track,
                              const std::string& name) {
  Add("\"ph\":\"M\",\"name\":" + Quoted(kind) + "," + Place(track) +
      ",\"args\":" + TraceArguments().Add("name", name).Text());
}

void TraceEvents::NameProcess(const TraceTrack& track, const std::string& name) {
  AddMetadata("process_name", track, name);
}

void TraceEvents::NameThread(const TraceTrack& track, const std::string& name) {
  AddMetadata("thread_name", track, name);
}

void TraceEvents::AddSpan(const TraceTrack& track, const TraceTime& time, std::string_view name,
                          const TraceArguments& arguments) {
  Add("\"ph\":\"X\",\"cat\":\"worker\",\"name\":" + Quoted(name) + "," + Place(track) +
      ",\"ts\":" + Microseconds(time.begin_ns) + ",\"dur\":" + Microseconds(time.length_ns) +
      ",\"args\":" + arguments.Text());
}

void TraceEvents::AddInstant(const TraceTrack& track, std::int64_t at_ns, const std::string& name,
                             const TraceArguments& arguments) {
  Add("\"ph\":\"i\",\"s\":\"t\",\"cat\":\"plan\",\"name\":" + Quoted(name) + "," + Place(track) +
      ",\"ts\":" + Microseconds(at_ns) + ",\"args\":" + arguments.Text());
}

void TraceEvents::AddCounter(const TraceTrack& track, std::int64_t at_ns, std::string_view name,
                             const TraceArguments& series) {
  if (series.empty()) return;
  Add("\"ph\":\"C\",\"name\":" + Quoted(name) + "," + Place(track) +
      ",\"ts\":" + Microseconds(at_ns) + ",\"args\":" + series.Text());
}

void TraceEvents::AddObject(std::string_view key, const TraceArguments& object) {
  objects_ += Quoted(key) + ":" + object.Text() + ",";
}

std::string TraceEvents::Finish() {
  std::string text = "{\"displayTimeUnit\":\"ms\"," + std::exchange(objects_, {}) +
                     "\"traceEvents\":[\n" + std::exchange(events_, {}) + "\n]}\n";
  return text;
}

std::int64_t TraceNanoseconds(double seconds) {
  if (!(seconds > 0)) return 0;
  return std::llround(seconds * kNanosecondsASecond);
}

}  // namespace tactus::client
