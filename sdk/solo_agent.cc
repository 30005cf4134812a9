#include "sdk/solo_agent.h"

#include <memory>
#include <utility>
#include <variant>

#include "policies/planner.h"

namespace tactus::sdk {
namespace {

constexpr std::uint64_t kGeneration = 1;

worker::StartMessage StartOf(const Program& program) {
  worker::StartMessage start;
  start.job_id = program.name;
  start.device = program.device;
  start.output_directory = program.output;
  start.job.name = program.name;
  start.job.per_worker = program.batch;
  start.job.engine = {.seed = program.seed,
                      .train_samples = program.train_samples,
                      .micro_batch = program.micro_batch,
                      .learning_rate = {.base_batch = program.batch},
                      .clip_norm = program.clip_norm,
                      .stop = program.stop};
  return start;
}

}  // namespace

SoloAgent::SoloAgent(const Program& program)
    : program_(program), steering_(std::make_unique<policies::Planner>(program.adapt), 0) {
  Queue(StartOf(program_));
}

std::optional<worker::ToWorker> SoloAgent::Poll() {
  threads::MutexLock lock(mutex_);
  if (messages_.empty()) return std::nullopt;
  worker::ToWorker message = std::move(messages_.front());
  messages_.pop_front();
  return message;
}

// Whatever a worker waits for follows at once from what it said.
absl::StatusOr<worker::ToWorker> SoloAgent::Receive() {
  std::optional<worker::ToWorker> message = Poll();
  if (message) return *std::move(message);
  return absl::UnavailableError("the program runs alone, and nobody else will say anything");
}

void SoloAgent::Send(const worker::FromWorker& message) {
  std::visit(
      [this](const auto& one) {
        if constexpr (requires { Take(one); }) Take(one);
      },
      message);
}

void SoloAgent::Take(const worker::ReadyMessage& ready) {
  const policies::Revision first =
      steering_.Start({.members = 1, .speeds = {ready.samples_per_second}});
  Decided(first);
  Queue(worker::GroupMessage{.generation = kGeneration, .rank = 0, .size = 1, .plan = first.plan});
}

void SoloAgent::Take(const worker::EndpointMessage& endpoint) {
  Queue(worker::PeersMessage{.generation = endpoint.generation, .endpoints = {endpoint.endpoint}});
}

void SoloAgent::Take(const worker::ReportMessage& report) {
  steering_.Observe(report.report);
  steering_.RoundDone(report.report.plan_version);
  const std::optional<policies::Revision> next = steering_.Decide({});
  if (!next) return;
  Decided(*next);
  Queue(next->plan);
}

void SoloAgent::Decided(const policies::Revision& revision) {
  threads::MutexLock lock(mutex_);
  decisions_.insert(decisions_.end(), revision.decisions.begin(), revision.decisions.end());
}

std::vector<policies::Decision> SoloAgent::TakeDecisions() {
  threads::MutexLock lock(mutex_);
  return std::exchange(decisions_, {});
}

void SoloAgent::Queue(worker::ToWorker message) {
  threads::MutexLock lock(mutex_);
  messages_.push_back(std::move(message));
}

}  // namespace tactus::sdk
