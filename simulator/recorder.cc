#include "simulator/recorder.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

namespace tactus::simulator {
namespace {

double SecondsOf(Instant time) { return ToSeconds(time.time_since_epoch()); }

}  // namespace

std::optional<double> SecondsToLoss(const JobOutcome& job, double loss) {
  for (const CurvePoint& point : job.curve) {
    if (point.smoothed_over_all && point.loss_smoothed <= loss) return point.seconds;
  }
  return std::nullopt;
}

void Recorder::OnSubmitted(JobId job, Instant now) { jobs_[job].submitted = now; }

void Recorder::OnActions(const job::Actions& actions, Instant now) {
  for (const job::Action& action : actions) {
    if (const auto* published = std::get_if<job::PublishJob>(&action)) {
      On(published->record, now);
    } else if (const auto* decision = std::get_if<job::PublishDecision>(&action)) {
      On(*decision, now);
    } else if (const auto* persist = std::get_if<job::PersistDecision>(&action)) {
      On(*persist);
    } else if (const auto* forget = std::get_if<job::ForgetRounds>(&action)) {
      On(*forget);
    }
  }
}

// As the first member saw it, so that nothing is missing that a coordinator missed.
void Recorder::AddPoint(const LivedRound& round, Instant now, Job& job) {
  const double length = round.compute_seconds + round.wait_seconds + round.transfer_seconds;
  if (!job.begun) job.begun = now - Seconds(length);
  job.curve_seconds = ToSeconds(now - *job.begun);
  job.curve_samples += round.samples_global;
  for (Decision& decision : job.outcome.decisions) {
    if (decision.adopted_round || decision.plan.version != round.plan_version) continue;
    decision.adopted_round = round.round;
  }
  if (std::isfinite(round.losses.common.sum) && std::isfinite(round.losses.local.sum)) {
    job.recent.Add(round.losses);
  }
  if (round.round % job.curve_stride != 0) return;
  std::vector<CurvePoint>& curve = job.outcome.curve;
  if (curve.size() == kCurvePointsMax) {
    // Every second point goes: a curve of any length keeps its shape within the bound.
    job.curve_stride *= 2;
    std::erase_if(curve,
                  [&](const CurvePoint& point) { return point.round % job.curve_stride != 0; });
    if (round.round % job.curve_stride != 0) return;
  }
  curve.push_back({.round = round.round,
                   .seconds = job.curve_seconds,
                   .samples = job.curve_samples,
                   .loss = round.losses.common.Mean(),
                   .loss_smoothed = job.recent.Mean(),
                   .smoothed_over_all = job.recent.full(),
                   .plan_version = round.plan_version});
}

void Recorder::On(const job::JobRecord& record, Instant now) {
  Job& job = jobs_[record.id];
  JobOutcome& outcome = job.outcome;
  outcome.name = record.name;
  if (record.state == job::JobState::kStarting && outcome.state == job::JobState::kQueued) {
    outcome.queued_seconds = ToSeconds(now - job.submitted);
  }
  outcome.state = record.state;
  outcome.reason = record.state_reason;
  outcome.rounds = record.progress.rounds;
  outcome.samples = record.progress.samples;
  outcome.epochs = record.progress.epoch;
  outcome.train_loss = record.progress.loss;
  outcome.train_seconds = job.curve_seconds;
  outcome.attempts = record.attempts;
  if (!record.result) return;
  outcome.rounds = record.result->rounds;
  outcome.samples = record.result->samples;
  outcome.epochs = record.result->epochs;
  outcome.train_loss = record.result->train_loss;
  outcome.train_seconds = record.result->train_seconds;
  if (record.result->validation_samples > 0) {
    outcome.validation_loss = record.result->validation_loss;
  }
}

void Recorder::On(const job::PublishDecision& decision, Instant now) {
  JobOutcome& outcome = jobs_[decision.job].outcome;
  ++outcome.decisions_total;
  if (outcome.decisions.size() == kDecisionsMax) return;
  outcome.decisions.push_back({.seconds = SecondsOf(now), .plan = decision.plan});
}

void Recorder::On(const job::PersistDecision& persist) {
  const auto key = [](const policies::Decision& decision) {
    return std::pair(decision.plan_version, decision.axis);
  };
  std::vector<policies::Decision>& records = jobs_[persist.job].outcome.records;
  const auto place = std::ranges::lower_bound(records, key(persist.decision), {}, key);
  if (place != records.end() && key(*place) == key(persist.decision)) {
    // The same decision again, now with its measured gain.
    *place = persist.decision;
  } else if (records.size() < kDecisionsMax) {
    records.insert(place, persist.decision);
  }
}

// The curve is that of the rounds that count; its time goes on.
void Recorder::On(const job::ForgetRounds& forget) {
  Job& job = jobs_[forget.job];
  std::erase_if(job.outcome.validation,
                [&](const ValidationPoint& point) { return point.rounds > forget.from; });
  const auto lost = [&](const CurvePoint& point) { return point.round >= forget.from; };
  if (std::erase_if(job.outcome.curve, lost) == 0) return;
  job.curve_samples = job.outcome.samples;  // as the record has it, which went back before
  job.recent = {};
}

std::uint32_t Recorder::OnWorker(JobId job, const job::MemberRecord& where) {
  workers_.push_back({.job = job});
  trace_.workers.push_back(where.node + "/" + where.device + " worker " +
                           std::to_string(where.worker.value));
  return static_cast<std::uint32_t>(workers_.size() - 1);
}

void Recorder::OnRank(std::uint32_t worker, std::uint32_t rank) {
  Worker& known = workers_[worker];
  known.rank = rank;
  std::vector<WorkerOutcome>& outcomes = jobs_[known.job].outcome.workers;
  if (outcomes.size() <= rank) outcomes.resize(rank + 1);
  const std::string& track = trace_.workers[worker];
  const std::size_t slash = track.find('/');
  outcomes[rank] = {.node = track.substr(0, slash),
                    .device = track.substr(slash + 1, track.find(' ') - slash - 1)};
}

void Recorder::OnLived(std::uint32_t worker, const LivedRound& round, Instant now) {
  Worker& known = workers_[worker];
  known.samples += static_cast<double>(round.samples);
  known.compute_seconds += round.compute_seconds;
  known.seconds += round.compute_seconds + round.wait_seconds + round.transfer_seconds;
  Job& job = jobs_[known.job];
  WorkerOutcome& outcome = job.outcome.workers[known.rank];
  if (known.rank == 0) AddPoint(round, now, job);
  outcome.samples += round.samples;
  outcome.compute_seconds += round.compute_seconds;
  outcome.wait_seconds += round.wait_seconds;
  outcome.transfer_seconds += round.transfer_seconds;
  if (!trace_wanted_) return;
  const double end = SecondsOf(now);
  const auto add = [&](TraceSpan::Kind kind, double start, double seconds) {
    if (seconds <= 0) return;
    Add({.kind = kind,
         .worker = worker,
         .start_seconds = start,
         .seconds = seconds,
         .round = round.round,
         .detail = kind == TraceSpan::Kind::kCompute ? round.samples : 0});
  };
  const double transfer = end - round.transfer_seconds;
  const double wait = transfer - round.wait_seconds;
  add(TraceSpan::Kind::kCompute, wait - round.compute_seconds, round.compute_seconds);
  add(TraceSpan::Kind::kWait, wait, round.wait_seconds);
  add(TraceSpan::Kind::kTransfer, transfer, round.transfer_seconds);
}

void Recorder::OnValidated(std::uint32_t worker, std::uint64_t rounds, double loss) {
  Job& job = jobs_[workers_[worker].job];
  job.outcome.validation.push_back(
      {.rounds = rounds, .seconds = job.curve_seconds, .samples = job.curve_samples, .loss = loss});
}

void Recorder::OnAdopted(std::uint32_t worker, std::uint64_t plan_version,
                         std::uint64_t first_round, Instant now) {
  if (!trace_wanted_) return;
  Add({.kind = TraceSpan::Kind::kPlan,
       .worker = worker,
       .start_seconds = SecondsOf(now),
       .round = first_round,
       .detail = plan_version});
}

void Recorder::OnSpan(std::uint32_t worker, TraceSpan::Kind kind, Instant start, Instant end) {
  if (!trace_wanted_) return;
  Add({.kind = kind,
       .worker = worker,
       .start_seconds = SecondsOf(start),
       .seconds = ToSeconds(end - start)});
}

void Recorder::OnBytes(JobId job, double bytes) { jobs_[job].outcome.bytes += bytes; }

void Recorder::Add(const TraceSpan& span) {
  if (trace_.spans.size() == kTraceSpansMax) {
    trace_.cut = true;
    return;
  }
  trace_.spans.push_back(span);
}

std::vector<JobOutcome> Recorder::TakeJobs() {
  struct Samples {
    double worked_off = 0;
    double possible = 0;  // by each worker alone in the time that it was there
  };
  std::map<JobId, Samples> samples;
  for (const Worker& worker : workers_) {
    if (worker.compute_seconds <= 0) continue;
    samples[worker.job].worked_off += worker.samples;
    samples[worker.job].possible += worker.samples / worker.compute_seconds * worker.seconds;
  }
  std::vector<JobOutcome> outcomes;
  for (auto& [id, job] : jobs_) {
    JobOutcome& outcome = job.outcome;
    if (outcome.train_seconds > 0) {
      outcome.samples_per_second = static_cast<double>(outcome.samples) / outcome.train_seconds;
    }
    const Samples& of_job = samples[id];
    if (of_job.possible > 0) outcome.utilisation = of_job.worked_off / of_job.possible;
    outcomes.push_back(std::move(outcome));
  }
  return outcomes;
}

}  // namespace tactus::simulator
