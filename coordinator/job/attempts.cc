#include "coordinator/job/attempts.h"

#include <algorithm>

#include "coordinator/job/wording.h"
#include "policies/checkpoint_interval.h"

namespace tactus::job {
namespace {

// In the order of ranks, each once.
std::vector<std::string> NodesOf(const std::vector<MemberRecord>& members) {
  std::vector<std::string> nodes;
  for (const MemberRecord& member : members) {
    if (nodes.size() == kAttemptNodesMax) break;
    if (std::ranges::find(nodes, member.node) == nodes.end()) nodes.push_back(member.node);
  }
  return nodes;
}

AttemptRecord* Present(JobRecord& record) {
  const bool open = !record.attempts.empty() && record.attempts.back().end_time == 0;
  return open ? &record.attempts.back() : nullptr;
}

AttemptRecord& Open(JobRecord& record, WallTime start) {
  std::vector<AttemptRecord>& attempts = record.attempts;
  const std::uint32_t number = attempts.empty() ? 1 : attempts.back().number + 1;
  if (attempts.size() == kAttemptsMax) attempts.erase(attempts.begin());
  attempts.push_back({.number = number,
                      .start_time = start,
                      .first_round = record.progress.rounds,
                      .first_samples = record.progress.samples,
                      .first_trained = record.progress.elapsed_seconds});
  return attempts.back();
}

void NoteMembers(const JobRecord& record, AttemptRecord& attempt) {
  attempt.nodes = NodesOf(record.members);
  attempt.workers = static_cast<std::uint32_t>(record.members.size());
}

// Validations of parameters that are lost. Which one is the best then, the next one says.
void ForgetBehind(std::uint64_t rounds, ValidationProgress& validation) {
  const auto lost = [rounds](const std::optional<ValidationRecord>& record) {
    return record && record->rounds > rounds;
  };
  if (lost(validation.newest)) validation.newest.reset();
  if (lost(validation.best)) validation.best.reset();
}

}  // namespace

Duration BackOff(std::uint32_t fruitless) {
  Duration rest = kRestFirst;
  for (std::uint32_t lost = 1; lost < fruitless && rest < kRestMost; ++lost) rest *= 2;
  return std::min(rest, kRestMost);
}

void BeginAttempt(JobRecord& record, WallTime now) {
  AttemptRecord* const present = Present(record);
  NoteMembers(record, present == nullptr ? Open(record, now) : *present);
}

void EndAttempt(JobRecord& record, const std::string& reason, WallTime now) {
  AttemptRecord* present = Present(record);
  if (present == nullptr) {
    // Only a job that ran before attempts were on record has trained without one: since its start,
    // with nothing.
    if (!record.attempts.empty() || record.start_time == 0) return;
    present = &Open(record, record.start_time);
    present->first_round = present->first_samples = 0;
    NoteMembers(record, *present);
  }
  // Others' reports of a checkpoint's last rounds may come after it, or not at all.
  const CheckpointRecord durable = record.checkpoint.value_or(CheckpointRecord{});
  present->end_time = now;
  present->rounds = std::max(record.progress.rounds, durable.rounds);
  present->samples = std::max(record.progress.samples, durable.samples);
  present->trained = std::max(record.progress.elapsed_seconds, durable.elapsed_seconds);
  present->reason = reason;
}

bool CountLoss(JobRecord& record) {
  const std::uint64_t durable = record.checkpoint ? record.checkpoint->rounds : 0;
  if (durable > record.fruitless_rounds) record.fruitless = 0;
  record.fruitless_rounds = std::max(record.fruitless_rounds, durable);
  ++record.fruitless;
  return record.fruitless <= record.settings.retries;
}

double LossSeconds(const JobRecord& record, std::uint32_t workers) {
  double worker_seconds = 0;
  std::uint32_t losses = 0;
  for (const AttemptRecord& attempt : record.attempts) {
    const bool over = attempt.end_time != 0;
    const double trained = over ? attempt.trained : record.progress.elapsed_seconds;
    worker_seconds += std::max(trained - attempt.first_trained, 0.0) * attempt.workers;
    if (over && attempt.rounds > attempt.first_round) ++losses;
  }
  return policies::MeanBetweenLosses(worker_seconds, losses, workers);
}

void GoBackToCheckpoint(JobRecord& record) {
  const CheckpointRecord from = record.checkpoint.value_or(CheckpointRecord{});
  Progress& progress = record.progress;
  progress.rounds = from.rounds;
  progress.epoch = from.epoch;
  progress.epoch_consumed = from.epoch_consumed;
  progress.samples = from.samples;
  progress.loss = from.loss;
  progress.elapsed_seconds = from.elapsed_seconds;
  progress.samples_per_second = 0;
  progress.eta_seconds.reset();
  ForgetBehind(from.rounds, progress.validation);
}

std::uint32_t LostAttempts(const JobRecord& record) {
  if (record.attempts.empty()) return 0;
  const AttemptRecord& last = record.attempts.back();
  const bool lost = last.end_time != 0 && !IsFinal(record.state);
  return last.number - (lost ? 0 : 1);
}

std::string WhereFrom(const JobRecord& record) {
  const std::uint64_t rounds = record.checkpoint ? record.checkpoint->rounds : 0;
  return rounds == 0 ? "from the beginning" : "from round " + std::to_string(rounds);
}

std::string RestWords(const JobRecord& record, const std::string& reason) {
  return "goes on " + WhereFrom(record) + " in " + DurationWords(BackOff(record.fruitless)) +
         " (retry " + std::to_string(record.fruitless) + " of " +
         std::to_string(record.settings.retries) + "): " + reason;
}

std::string GivenUpWords(const JobRecord& record, const std::string& reason) {
  if (record.fruitless < 2) return reason;
  return reason + "; given up after " + std::to_string(record.fruitless) + " attempts " +
         WhereFrom(record);
}

}  // namespace tactus::job
