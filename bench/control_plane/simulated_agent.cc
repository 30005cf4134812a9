#include "bench/control_plane/simulated_agent.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace tactus::bench {
namespace {

constexpr const char* kVersion = "0.1.0";

void Fill(v1::RoundReport& report, const RoundSeen& seen) {
  report.set_round(seen.round);
  report.set_plan_version(seen.plan_version);
  report.set_samples(seen.samples);
  report.set_loss_sum(2.5 * seen.samples);
  report.set_steps(1);
  report.set_compute_seconds(seen.samples / seen.speed);
  report.set_blocked_seconds(0.02);
  report.set_transfer_seconds(0.015);
  report.set_round_seconds(1);
  report.set_bytes_sent(3'300'000);
  report.set_gradient_norm2_local(0.031);
  report.set_gradient_norm2_global(0.027);
  report.set_samples_global(3200);
  report.set_loss_mean_global(2.5);
  report.set_contributors(100);
  report.set_samples_gradient_norm2(99.2);
  report.set_gradient_samples(3200);
  report.set_orthogonality(0.4);
  report.set_learning_rate(0.1);
  report.set_gain(1);
  report.set_progress(static_cast<double>(seen.round + 1));
  report.set_epoch(1);
  report.set_epoch_consumed(seen.round * 3200);
}

}  // namespace

agent::v1::FromAgent SampleReport() {
  agent::v1::FromAgent message;
  message.set_sequence(1000);
  message.set_acknowledged(10);
  message.mutable_from_worker()->set_worker_id(5000);
  v1::RoundReport& report = *message.mutable_from_worker()->mutable_message()->mutable_report();
  Fill(report, {.round = 1000, .plan_version = 3, .samples = 32});
  report.set_rank(50);
  report.set_generation(1);
  return message;
}

std::string SimulatedAgent::NameOf(std::uint64_t number) {
  char name[16];
  std::snprintf(name, sizeof name, "n%05llu", static_cast<unsigned long long>(number));
  return name;
}

void SimulatedAgent::Connect(agent::v1::AgentSession::Stub& stub, std::uint64_t window) {
  window_ = window;
  agent::v1::FromAgent first;
  first.mutable_hello()->set_node(NameOf(number_));
  first.mutable_hello()->set_incarnation(number_ + 1);
  first.mutable_hello()->set_agent_version(kVersion);
  v1::Device* device = first.mutable_hello()->add_devices();
  device->set_name("cpu:0");
  device->set_kind(v1::DEVICE_KIND_CPU);
  device->set_model("simulated");
  stub.async()->Session(&context_, this);
  StartRead(&heard_);
  AddHold();  // writes are started from elsewhere
  Enqueue(std::move(first), false);
  StartCall();
}

void SimulatedAgent::SayHeartbeat() {
  agent::v1::FromAgent message;
  message.mutable_heartbeat();
  Enqueue(std::move(message), false);
}

void SimulatedAgent::SayReport(const RoundSeen& seen) {
  agent::v1::FromAgent message;
  message.mutable_from_worker()->set_worker_id(worker_);
  v1::RoundReport& report = *message.mutable_from_worker()->mutable_message()->mutable_report();
  Fill(report, seen);
  {
    const std::lock_guard lock(mutex_);
    report.set_rank(reported_rank_);
    report.set_generation(reported_generation_);
  }
  Enqueue(std::move(message), true);
}

void SimulatedAgent::Flood(const RoundSeen& first) {
  {
    const std::lock_guard lock(mutex_);
    flood_ = true;
    next_ = first;
  }
  Pour();
}

// Says the flood's next report when there is room for one and nothing else is being said.
void SimulatedAgent::Pour() {
  RoundSeen seen;
  {
    const std::lock_guard lock(mutex_);
    if (!flood_ || !said_.empty() || sequence_ - acknowledged_ >= window_) return;
    seen = next_;
    ++next_.round;
  }
  SayReport(seen);
}

void SimulatedAgent::OnReadDone(bool ok) {
  if (!ok) return;
  acknowledged_ = std::max<std::uint64_t>(acknowledged_, heard_.acknowledged());
  if (heard_.sequence() > 0) received_ = heard_.sequence();
  if (heard_.has_welcome()) listener_.Welcomed();
  if (heard_.has_start_worker()) {
    worker_ = heard_.start_worker().worker_id();
    job_ = heard_.start_worker().start().job_id();
    v1::FromWorker ready;
    ready.mutable_ready()->set_parameters(826'000);
    ready.mutable_ready()->set_train_samples(1'000'000'000);
    SayFromWorker(ready);
  }
  if (heard_.has_stop_worker()) listener_.Broke("a worker was told to go");
  if (heard_.has_to_worker()) Hear(heard_.to_worker().message());
  StartRead(&heard_);
  Pour();
}

void SimulatedAgent::Hear(const v1::ToWorker& message) {
  if (message.has_group()) {
    const v1::Group& group = message.group();
    rank_ = group.rank();
    size_ = group.size();
    generation_ = group.generation();
    first_plan_ = group.plan();
    v1::FromWorker endpoint;
    endpoint.mutable_endpoint()->set_generation(generation_);
    endpoint.mutable_endpoint()->set_endpoint("10.0.0.1:40000 " + std::to_string(number_));
    SayFromWorker(endpoint);
  } else if (message.has_peers()) {
    {
      const std::lock_guard lock(mutex_);
      reported_generation_ = generation_;
      reported_rank_ = rank_;
    }
    listener_.Trains(*this, job_, rank_, size_, first_plan_);
    trains_ = true;
  } else if (message.has_plan()) {
    listener_.PlanCame(*this, message.plan());
  } else if (message.has_stop()) {
    listener_.Broke("a worker was asked to end: " + message.stop().reason());
  }
}

void SimulatedAgent::SayFromWorker(const v1::FromWorker& message) {
  agent::v1::FromAgent said;
  said.mutable_from_worker()->set_worker_id(worker_);
  *said.mutable_from_worker()->mutable_message() = message;
  Enqueue(std::move(said), true);
}

void SimulatedAgent::Enqueue(agent::v1::FromAgent message, bool numbered) {
  const std::lock_guard lock(mutex_);
  if (numbered) message.set_sequence(++sequence_);
  message.set_acknowledged(received_);
  said_.push_back(std::move(message));
  if (said_.size() == 1) StartWrite(&said_.front());
}

void SimulatedAgent::OnWriteDone(bool ok) {
  if (!ok) return;
  {
    const std::lock_guard lock(mutex_);
    said_.pop_front();
    if (!said_.empty()) return StartWrite(&said_.front());
  }
  Pour();
}

void SimulatedAgent::OnDone(const grpc::Status& status) {
  listener_.Broke("a stream ended: " + status.error_message());
}

}  // namespace tactus::bench
