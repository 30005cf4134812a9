#include "tests/fuzz/small_cluster.h"

#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "coordinator/codec/record_codec.h"
#include "coordinator/shell/agent_conversion.h"
#include "coordinator/shell/job_conversion.h"
#include "policies/plan.h"
#include "tests/fuzz/require.h"

namespace tactus::fuzz {
namespace {

constexpr job::WallTime kWallOffset = 1'700'000'000'000'000'000;
constexpr std::uint32_t kWorkers = 2;

agent::v1::FromAgent OrdinaryHello() {
  agent::v1::FromAgent first;
  first.mutable_hello()->set_node("a");
  first.mutable_hello()->set_incarnation(1);
  for (const char* name : {"cpu:0", "cpu:1"}) {
    v1::Device* device = first.mutable_hello()->add_devices();
    device->set_name(name);
    device->set_kind(v1::DEVICE_KIND_CPU);
  }
  return first;
}

job::JobRecord OrdinaryJob() {
  job::JobRecord record{.id = JobId{1}, .name = "alpha-1"};
  v1::JobSpec spec;
  spec.set_name("alpha");
  record.spec = spec.SerializeAsString();
  record.settings.workers_min = kWorkers;
  record.settings.workers_max = kWorkers;
  record.create_time = kWallOffset;
  return record;
}

// Strings that are no UTF-8 fail here, and with them every client.
template <typename Message>
void RequireSendable(const Message& message, const char* promise) {
  Message received;
  Require(received.ParseFromString(message.SerializeAsString()), promise);
}

}  // namespace

class SmallCluster::Stream final : public service::AgentStream {
 public:
  void Send(const agent::v1::ToAgent& message) override {
    RequireSendable(message, "an agent can read what it is told");
    sending_ = true;
  }
  void Close(const absl::Status&) override { closed_ = true; }

  bool closed() const { return closed_; }
  bool TakeSending() { return std::exchange(sending_, false); }

 private:
  bool sending_ = false;
  bool closed_ = false;
};

SmallCluster::SmallCluster(Stage stage)
    : cluster_(kWallOffset),
      sessions_(
          [this](const job::Event& event, const std::function<void()>& done) {
            Give(event);
            done();
          },
          [this](WorkerId worker, const std::string& node) {
            return cluster_.RunsElsewhere(worker, node);
          }) {
  Require(Open(OrdinaryHello()), "an ordinary agent is welcome");
  Give(job::JobSubmitted{OrdinaryJob()});
  Bring(stage);
}

SmallCluster::~SmallCluster() = default;

void SmallCluster::Bring(Stage stage) {
  if (stage == Stage::kStarting) return;
  for (std::uint64_t worker = 1; worker <= kWorkers; ++worker) {
    v1::FromWorker ready;
    ready.mutable_ready()->set_parameters(10);
    ready.mutable_ready()->set_train_samples(1000);
    SayOrdinarily(worker, ready);
  }
  if (stage == Stage::kMeeting) return;
  for (std::uint64_t worker = 1; worker <= kWorkers; ++worker) {
    v1::FromWorker endpoint;
    endpoint.mutable_endpoint()->set_generation(generation_);
    endpoint.mutable_endpoint()->set_endpoint("e");
    SayOrdinarily(worker, endpoint);
  }
  ReportRound(0);
  if (stage == Stage::kSuspending) Give(job::JobPaused{.job = JobId{1}});
  if (stage != Stage::kFinishing) return;
  v1::FromWorker finished;
  finished.mutable_finished()->set_reason("1 round");
  finished.mutable_finished()->set_rounds(1);
  SayOrdinarily(kWorkers, finished);
}

bool SmallCluster::Open(const agent::v1::FromAgent& first) {
  const auto stream = std::make_shared<Stream>();
  const absl::Status status = sessions_.Open(stream, first);
  if (!status.ok()) {
    Require(!status.message().empty(), "a refusal says why");
    return false;
  }
  stream_ = stream;
  while (stream_->TakeSending()) sessions_.Sent(stream_.get());
  return !stream_->closed();
}

bool SmallCluster::Say(const agent::v1::FromAgent& message) {
  if (stream_->closed()) return false;
  sessions_.Receive(stream_.get(), message, [] {});
  while (stream_->TakeSending()) sessions_.Sent(stream_.get());
  return !stream_->closed();
}

void SmallCluster::SetTakeLog(service::AgentSessions::TakeLog take) {
  sessions_.SetTakeLog(std::move(take));
}

const job::JobRecord* SmallCluster::Find(const std::string& name) const {
  const job::JobRecord* record = cluster_.Find(JobId{1});
  return record != nullptr && record->name == name ? record : nullptr;
}

void SmallCluster::SayOrdinarily(std::uint64_t worker, const v1::FromWorker& message) {
  agent::v1::FromAgent said;
  said.set_sequence(++sequence_);
  said.mutable_from_worker()->set_worker_id(worker);
  *said.mutable_from_worker()->mutable_message() = message;
  Say(said);
}

void SmallCluster::ReportRound(std::uint64_t round) {
  for (std::uint64_t worker = 1; worker <= kWorkers; ++worker) {
    v1::FromWorker message;
    v1::RoundReport& report = *message.mutable_report();
    report.set_generation(generation_);
    report.set_round(round);
    report.set_plan_version(1);
    report.set_rank(static_cast<std::uint32_t>(worker - 1));
    report.set_samples(32);
    report.set_samples_global(64);
    report.set_loss_sum(64);
    report.set_loss_mean_global(2);
    report.set_steps(1);
    report.set_compute_seconds(0.1);
    report.set_round_seconds(0.2);
    SayOrdinarily(worker, message);
  }
}

void SmallCluster::Give(const job::Event& event) {
  seconds_ += 0.1;
  for (const job::Action& action : cluster_.Step(event, Instant{} + Seconds(seconds_))) {
    Check(action);
  }
}

void SmallCluster::Check(const job::Action& action) {
  if (const auto* persist = std::get_if<job::PersistJob>(&action)) {
    Check(persist->record);
  } else if (const auto* publish = std::get_if<job::PublishJob>(&action)) {
    RequireSendable(service::ToProto(publish->record), "a user can read a published job");
  } else if (const auto* start = std::get_if<job::StartWorker>(&action)) {
    sessions_.Tell(start->node, service::ToProto(*start));
  } else if (const auto* stop = std::get_if<job::StopWorker>(&action)) {
    sessions_.Tell(stop->node, service::ToProto(*stop));
  } else if (const auto* send = std::get_if<job::SendToWorker>(&action)) {
    if (const auto* plan = std::get_if<policies::Plan>(&send->message)) {
      Require(policies::Fits(*plan, kWorkers), "a plan fits its group");
    }
    if (const auto* group = std::get_if<job::GroupMessage>(&send->message)) {
      generation_ = group->generation;
      Require(policies::Fits(group->plan, group->size), "a group's plan fits it");
    }
    sessions_.Tell(send->node, service::ToProto(*send));
  }
}

void SmallCluster::Check(const job::JobRecord& record) {
  const std::string bytes = codec::EncodeJob(record);
  const absl::StatusOr<job::JobRecord> read = codec::DecodeJob(bytes);
  Require(read.ok(), "a persisted record can be read");
  Require(codec::EncodeJob(*read) == bytes, "a record that is read says what it said");
  const auto before = persisted_.find(record.id);
  if (before != persisted_.end()) {
    Require(record.revision >= before->second.revision, "a revision never falls");
    Require(!job::IsFinal(before->second.state) || record.state == before->second.state,
            "a final state is final");
  }
  persisted_[record.id] = record;
}

void SmallCluster::End() {
  if (!stream_->closed()) {
    ReportRound(1);
    ReportRound(2);
  }
  sessions_.Beat();
  Give(job::Ticked{});
  Give(job::JobCancelled{.job = JobId{1}, .reason = "by the test", .discard = true});
  for (std::uint64_t worker = 1; worker <= 2 * kWorkers; ++worker) {
    Give(job::WorkerExited{.worker = WorkerId{worker}});
  }
  for (int hours = 0; hours < 3; ++hours) {
    seconds_ += 3600;
    Give(job::Ticked{});
  }
  const auto found = persisted_.find(JobId{1});
  Require(found != persisted_.end() && job::IsFinal(found->second.state),
          "a job that was cancelled comes to its end");
}

}  // namespace tactus::fuzz
