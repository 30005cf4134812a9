#include "client/trace_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <vector>

#include "base/check.h"
#include "client/quantity.h"
#include "client/text.h"

namespace tactus::client {
namespace {

using simulator::Outcome;
using simulator::TraceSpan;

std::string Quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// To a nanosecond.
std::string Microseconds(double seconds) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.3f", seconds * 1e6);
  return text.data();
}

const char* Name(TraceSpan::Kind kind) {
  switch (kind) {
    case TraceSpan::Kind::kLoad:
      return "load";
    case TraceSpan::Kind::kCompute:
      return "compute";
    case TraceSpan::Kind::kWait:
      return "wait";
    case TraceSpan::Kind::kTransfer:
      return "transfer";
    case TraceSpan::Kind::kPause:
      return "pause";
    case TraceSpan::Kind::kPlan:
      return "plan";
  }
  TACTUS_CHECK(false);
}

// Writes the events of one outcome.
class TraceText {
 public:
  explicit TraceText(const Outcome& outcome) : outcome_(outcome) {}

  std::string Write() {
    NameTracks();
    for (const TraceSpan& span : outcome_.trace.spans) {
      if (span.kind == TraceSpan::Kind::kPlan) {
        AddPlan(span);
      } else {
        AddSpan(span);
      }
    }
    AddLoss();
    return "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n" + text_ + "\n]}\n";
  }

 private:
  static constexpr int kLossTrack = 1;  // process id; hosts follow

  // `fields`: all but the braces.
  void Add(const std::string& fields) { text_ += (text_.empty() ? "{" : ",\n{") + fields + "}"; }

  void AddMetadata(const std::string& kind, const std::string& track, const std::string& name) {
    Add("\"ph\":\"M\",\"name\":\"" + kind + "\"," + track + ",\"args\":{\"name\":" + Quoted(name) +
        "}");
  }

  void NameTracks() {
    AddMetadata("process_name", Track(kLossTrack, 0), "job");
    std::map<std::string, int> hosts;
    for (std::size_t i = 0; i < outcome_.trace.workers.size(); ++i) {
      const std::string& worker = outcome_.trace.workers[i];
      const std::string host = worker.substr(0, worker.find('/'));
      const auto [known, fresh] =
          hosts.emplace(host, kLossTrack + 1 + static_cast<int>(hosts.size()));
      const std::string track = Track(known->second, i + 1);
      tracks_.push_back(track);
      if (fresh) AddMetadata("process_name", track, host);
      AddMetadata("thread_name", track, worker.substr(std::min(host.size() + 1, worker.size())));
    }
  }

  static std::string Track(int process, std::size_t thread) {
    return "\"pid\":" + std::to_string(process) + ",\"tid\":" + std::to_string(thread);
  }

  void AddSpan(const TraceSpan& span) {
    std::string arguments;
    const bool of_round =
        span.kind != TraceSpan::Kind::kLoad && span.kind != TraceSpan::Kind::kPause;
    if (of_round) arguments = "\"round\":" + std::to_string(span.round);
    if (span.kind == TraceSpan::Kind::kCompute) {
      arguments += ",\"samples\":" + std::to_string(span.detail);
    }
    Add("\"ph\":\"X\",\"cat\":\"worker\",\"name\":\"" + std::string(Name(span.kind)) + "\"," +
        tracks_[span.worker] + ",\"ts\":" + Microseconds(span.start_seconds) +
        ",\"dur\":" + Microseconds(span.seconds) + ",\"args\":{" + arguments + "}");
  }

  void AddPlan(const TraceSpan& span) {
    std::string arguments = "\"round\":" + std::to_string(span.round);
    if (explained_.insert(span.detail).second) arguments += Explanation(span.detail);
    Add("\"ph\":\"i\",\"s\":\"t\",\"cat\":\"plan\",\"name\":\"plan " + std::to_string(span.detail) +
        "\"," + tracks_[span.worker] + ",\"ts\":" + Microseconds(span.start_seconds) +
        ",\"args\":{" + arguments + "}");
  }

  // Of the first job's plan of that version.
  std::string Explanation(std::uint64_t version) const {
    if (outcome_.jobs.empty()) return "";
    for (const simulator::Decision& decision : outcome_.jobs.front().decisions) {
      if (decision.plan.version != version) continue;
      return ",\"batch\":" + Quoted(JoinNumbers(decision.plan.batch_sizes)) +
             ",\"reason\":" + Quoted(decision.plan.reason);
    }
    return "";
  }

  // A curve counts from the job's first round, spans from the start of the simulation; training
  // begins with the first span that belongs to a round.
  double CurveStart() const {
    std::optional<double> start;
    for (const TraceSpan& span : outcome_.trace.spans) {
      const bool trains =
          span.kind == TraceSpan::Kind::kCompute || span.kind == TraceSpan::Kind::kTransfer;
      if (trains && (!start || span.start_seconds < *start)) start = span.start_seconds;
    }
    return start.value_or(0);
  }

  void AddLoss() {
    if (outcome_.jobs.empty()) return;
    const double start = CurveStart();
    for (const simulator::CurvePoint& point : outcome_.jobs.front().curve) {
      if (!std::isfinite(point.loss_smoothed)) continue;
      Add("\"ph\":\"C\",\"name\":\"loss\"," + Track(kLossTrack, 0) +
          ",\"ts\":" + Microseconds(start + point.seconds) +
          ",\"args\":{\"loss\":" + FormatNumber(point.loss_smoothed) + "}");
    }
  }

  const Outcome& outcome_;
  std::vector<std::string> tracks_;  // by worker
  std::set<std::uint64_t> explained_;
  std::string text_;
};

}  // namespace

std::string ChromeTrace(const Outcome& outcome) { return TraceText(outcome).Write(); }

}  // namespace tactus::client
