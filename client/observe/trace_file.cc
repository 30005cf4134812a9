#include "client/observe/trace_file.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/check.h"
#include "client/observe/trace_events.h"
#include "client/text/text.h"

namespace tactus::client {
namespace {

using simulator::Outcome;
using simulator::TraceSpan;

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
class SimulatedTrace {
 public:
  explicit SimulatedTrace(const Outcome& outcome) : outcome_(outcome) {}

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
    return events_.Finish();
  }

 private:
  static constexpr TraceTrack kLossTrack = {.process = 1, .thread = 0};  // hosts follow

  void NameTracks() {
    events_.NameProcess(kLossTrack, "job");
    std::map<std::string, std::uint64_t> hosts;
    for (std::size_t i = 0; i < outcome_.trace.workers.size(); ++i) {
      const std::string& worker = outcome_.trace.workers[i];
      const std::string host = worker.substr(0, worker.find('/'));
      const auto [known, fresh] = hosts.emplace(host, kLossTrack.process + 1 + hosts.size());
      const TraceTrack track = {.process = known->second, .thread = i + 1};
      tracks_.push_back(track);
      if (fresh) events_.NameProcess(track, host);
      events_.NameThread(track, worker.substr(std::min(host.size() + 1, worker.size())));
    }
  }

  void AddSpan(const TraceSpan& span) {
    TraceArguments arguments;
    const bool of_round =
        span.kind != TraceSpan::Kind::kLoad && span.kind != TraceSpan::Kind::kPause;
    if (of_round) arguments.Add("round", span.round);
    if (span.kind == TraceSpan::Kind::kCompute) arguments.Add("samples", span.detail);
    events_.AddSpan(tracks_[span.worker],
                    {.begin_ns = TraceNanoseconds(span.start_seconds),
                     .length_ns = TraceNanoseconds(span.seconds)},
                    Name(span.kind), arguments);
  }

  void AddPlan(const TraceSpan& span) {
    TraceArguments arguments;
    arguments.Add("round", span.round);
    if (explained_.insert(span.detail).second) Explain(span.detail, arguments);
    events_.AddInstant(tracks_[span.worker], TraceNanoseconds(span.start_seconds),
                       "plan " + std::to_string(span.detail), arguments);
  }

  // Of the first job's plan of that version.
  void Explain(std::uint64_t version, TraceArguments& arguments) const {
    if (outcome_.jobs.empty()) return;
    for (const simulator::Decision& decision : outcome_.jobs.front().decisions) {
      if (decision.plan.version != version) continue;
      arguments.Add("batch", JoinNumbers(decision.plan.batch_sizes))
          .Add("reason", decision.plan.reason);
      return;
    }
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
      events_.AddCounter(kLossTrack, TraceNanoseconds(start + point.seconds), "loss",
                         TraceArguments().Add("loss", point.loss_smoothed));
    }
  }

  const Outcome& outcome_;
  std::vector<TraceTrack> tracks_;  // by worker
  std::set<std::uint64_t> explained_;
  TraceEvents events_;
};

}  // namespace

std::string ChromeTrace(const Outcome& outcome) { return SimulatedTrace(outcome).Write(); }

}  // namespace tactus::client
