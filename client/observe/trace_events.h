// Chrome's trace event format, which Perfetto and chrome://tracing open: the one writer of it.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace tactus::client {

// What an event says beside its name and time, in the order in which it was added.
class TraceArguments {
 public:
  TraceArguments& Add(std::string_view key, std::uint64_t value);
  TraceArguments& Add(std::string_view key, double value);  // left out unless finite
  TraceArguments& Add(std::string_view key, const std::string& value);

  bool empty() const { return text_.empty(); }
  std::string Text() const { return "{" + text_ + "}"; }

 private:
  TraceArguments& AddRaw(std::string_view key, const std::string& value);

  std::string text_;
};

// A line of the trace: a thread of a process.
struct TraceTrack {
  std::uint64_t process = 1;  // >= 1
  std::uint64_t thread = 0;   // unique in the whole trace
};

// Where on the axis, in whole nanoseconds: what ends where another begins does so exactly.
struct TraceTime {
  std::int64_t begin_ns = 0;   // >= 0
  std::int64_t length_ns = 0;  // >= 0
};

// One JSON object {"traceEvents": [...]}. Text in it is valid UTF-8 whatever was given.
//
// Source: wix-incubator/trace-event-lib, src/schema/, commit 7a224b8, which puts Google's "Trace
// Event Format" into types.
class TraceEvents {
 public:
  void NameProcess(const TraceTrack& track, const std::string& name);
  void NameThread(const TraceTrack& track, const std::string& name);

  // A complete event (X). Spans of one track nest or lie apart: the caller's business.
  void AddSpan(const TraceTrack& track, const TraceTime& time, std::string_view name,
               const TraceArguments& arguments);

  // An instant event (i) of its track.
  void AddInstant(const TraceTrack& track, std::int64_t at_ns, const std::string& name,
                  const TraceArguments& arguments);

  // A counter event (C) of the track's process: each number is a series.
  void AddCounter(const TraceTrack& track, std::int64_t at_ns, std::string_view name,
                  const TraceArguments& series);

  // A key beside traceEvents, such as distributedInfo.
  void AddObject(std::string_view key, const TraceArguments& object);

  // Everything that was added, and leaves it behind empty.
  std::string Finish();

 private:
  void Add(const std::string& fields);
  void AddMetadata(std::string_view kind, const TraceTrack& track, const std::string& name);

  std::string events_;
  std::string objects_;
};

// Seconds as nanoseconds; what is none, or below 0, is 0. Requires: seconds < 9e9.
std::int64_t TraceNanoseconds(double seconds);

}  // namespace tactus::client
