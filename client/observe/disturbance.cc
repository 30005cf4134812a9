#include "client/observe/disturbance.h"

#include <algorithm>

namespace tactus::client {
namespace {

std::uint64_t AttemptOf(const v1::Job& job) {
  return job.attempts().empty() ? 0 : job.attempts(job.attempts_size() - 1).number();
}

}  // namespace

double Stretch::SamplesPerSecond() const {
  if (rounds == 0 || length <= Duration::zero()) return 0;
  const double lost = static_cast<double>(rounds_lost) / static_cast<double>(rounds);
  return static_cast<double>(samples) * (1 - lost) / ToSeconds(length);
}

Disturbance::Disturbance(const v1::Job& job, Instant now)
    : begin_(now),
      newest_(now),
      next_round_(job.progress().rounds()),
      attempt_(AttemptOf(job)),
      regroups_(job.regroups()) {}

void Disturbance::Look(const v1::Job& job, const std::vector<v1::Round>& rounds, Instant now) {
  const std::uint64_t attempt = AttemptOf(job);
  if (attempt > attempt_) {
    stretch_.restarts += attempt - attempt_;
    attempt_ = attempt;
    const std::uint64_t first = job.attempts(job.attempts_size() - 1).first_round();
    if (first < next_round_) stretch_.rounds_lost += next_round_ - first;
    next_round_ = first;
    return;  // what was asked for began elsewhere
  }
  stretch_.regroups += job.regroups() - std::min<std::uint64_t>(regroups_, job.regroups());
  regroups_ = job.regroups();
  if (job.state() != v1::JOB_STATE_RUNNING) return;
  bool any = false;
  for (const v1::Round& round : rounds) {
    if (round.round() < next_round_) continue;
    next_round_ = round.round() + 1;
    ++stretch_.rounds;
    stretch_.samples += round.samples();
    any = true;
  }
  if (!any) return;
  NoteGap(now);
  newest_ = now;
}

Stretch Disturbance::Take(Instant now) {
  NoteGap(now);
  Stretch taken = stretch_;
  taken.length = now - begin_;
  stretch_ = {};
  begin_ = now;
  newest_ = now;
  return taken;
}

void Disturbance::NoteGap(Instant now) {
  stretch_.longest_gap = std::max(stretch_.longest_gap, now - newest_);
}

}  // namespace tactus::client
