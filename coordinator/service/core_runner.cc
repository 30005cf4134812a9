#include "coordinator/service/core_runner.h"

#include <spdlog/spdlog.h>

#include <iterator>
#include <utility>

#include "coordinator/service/agent_conversion.h"
#include "coordinator/service/job_conversion.h"
#include "runtime/logging.h"
#include "runtime/now.h"

namespace tactus::service {
namespace {

constexpr Duration kFlushInterval = Seconds(0.5);

v1::JobEvent NewEvent() {
  v1::JobEvent event;
  *event.mutable_time() = ToTimestamp(runtime::WallNow());
  return event;
}

}  // namespace

CoreRunner::CoreRunner(const Surroundings& surroundings)
    : around_(surroundings),
      wall_offset_(runtime::WallNow() - runtime::Now().time_since_epoch().count()),
      cluster_(wall_offset_),
      tape_(surroundings.tape, {.program_version = TACTUS_VERSION, .wall_offset = wall_offset_},
            {.control = surroundings.control, .storage = surroundings.storage}),
      telemetry_(surroundings.metrics),
      queue_({.write = [this](store::WriteBatch batch) { Write(std::move(batch)); },
              .perform = [this](const job::Action& action) { Perform(action); }}),
      sessions_([this](const job::Event& event, std::function<void()> done) {
        Handle(event, std::move(done));
      }) {}

CoreRunner::~CoreRunner() = default;

absl::Status CoreRunner::Start() {
  absl::StatusOr<std::vector<job::JobRecord>> unfinished;
  absl::Status numbered;
  around_.storage.RunAndWait([&] {
    unfinished = around_.store.UnfinishedJobs();
    const absl::StatusOr<std::uint64_t> last_job = around_.store.LastJobId();
    numbered = last_job.status();
    if (last_job.ok()) last_job_ = *last_job;
  });
  if (!unfinished.ok()) return unfinished.status();
  if (!numbered.ok()) return numbered;
  around_.control.RunAndWait([&] { Restore(*std::move(unfinished)); });
  return absl::OkStatus();
}

void CoreRunner::Restore(std::vector<job::JobRecord> unfinished) {
  wake_.emplace(around_.control);
  flush_.emplace(around_.control);
  beat_.emplace(around_.control);
  const Instant now = runtime::Now();
  job::Actions all;
  for (const job::JobRecord& record : unfinished) {
    visible_[record.id] = record;
    telemetry_.OnAction(job::PublishJob{record});
    job::Actions actions = cluster_.Restore(record, now);
    std::move(actions.begin(), actions.end(), std::back_inserter(all));
  }
  tape_.Add(tape::Start{.records = std::move(unfinished), .time = now, .actions = all});
  queue_.Push(std::move(all), {});
  RepeatFlush();
  RepeatBeat();
}

void CoreRunner::CloseStreams(const absl::Status& status) {
  around_.control.RunAndWait([&] {
    sessions_.CloseAll(status);
    watchers_.EndAll(status);
  });
}

void CoreRunner::Stop() {
  around_.control.RunAndWait([this] {
    flush_.reset();
    beat_.reset();
    wake_.reset();
  });
  // Twice: what runs now ends first, then what waited behind it.
  for (int i = 0; i < 2; ++i) {
    around_.control.RunAndWait([this] { queue_.Flush(); });
    around_.storage.RunAndWait([] {});
    around_.control.RunAndWait([] {});
  }
  around_.control.RunAndWait([this] { tape_.Finish(); });
  around_.storage.RunAndWait([] {});
}

// ---- The core and its actions

void CoreRunner::Handle(const job::Event& event, std::function<void()> done) {
  const Instant now = runtime::Now();
  telemetry_.OnEvent(event, now);
  if (const std::string* node = job::StartsAnew(event)) queue_.Drop(*node);
  job::Actions actions = cluster_.Step(event, now);
  telemetry_.OnStep(runtime::Now() - now);
  for (const job::Action& action : actions) {
    if (const auto* decided = std::get_if<job::PersistDecision>(&action)) {
      telemetry_.OnDecision(*decided);
    }
  }
  if (tape_.recording()) tape_.Add(tape::Step{.event = event, .time = now, .actions = actions});
  queue_.Push(std::move(actions), std::move(done));
}

void CoreRunner::Perform(const job::Action& action) {
  telemetry_.OnAction(action);
  if (const auto* start = std::get_if<job::StartWorker>(&action)) {
    sessions_.Tell(start->node, ToProto(*start));
  } else if (const auto* send = std::get_if<job::SendToWorker>(&action)) {
    sessions_.Tell(send->node, ToProto(*send));
  } else if (const auto* stop = std::get_if<job::StopWorker>(&action)) {
    sessions_.Tell(stop->node, ToProto(*stop));
  } else if (const auto* changed = std::get_if<job::PublishJob>(&action)) {
    On(*changed);
  } else if (const auto* progress = std::get_if<job::PublishProgress>(&action)) {
    On(*progress);
  } else if (const auto* decision = std::get_if<job::PublishDecision>(&action)) {
    On(*decision);
  } else if (const auto* wake = std::get_if<job::WakeAt>(&action)) {
    if (wake_) wake_->At(wake->time, [this] { Handle(job::Ticked{}, {}); });
  }
}

void CoreRunner::On(const job::PublishJob& action) {
  const job::JobRecord& record = action.record;
  const bool over = job::IsFinal(record.state);
  if (over) {
    visible_.erase(record.id);
  } else {
    visible_[record.id] = record;
  }
  if (!watchers_.Watched(record.id)) return;
  v1::JobEvent event = NewEvent();
  *event.mutable_job() = ToProto(record);
  watchers_.Publish(record.id, event);
  if (over) watchers_.End(record.id, absl::OkStatus());
}

void CoreRunner::On(const job::PublishProgress& action) {
  const auto found = visible_.find(action.job);
  if (found == visible_.end()) return;
  found->second.progress = action.progress;
  if (!watchers_.Watched(action.job)) return;
  v1::JobEvent event = NewEvent();
  *event.mutable_progress() = ToProto(action.progress, found->second.members);
  watchers_.Publish(action.job, event);
}

void CoreRunner::On(const job::PublishDecision& action) {
  if (!watchers_.Watched(action.job)) return;
  v1::JobEvent event = NewEvent();
  *event.mutable_decision() = ToProto(action.plan);
  watchers_.Publish(action.job, event);
}

void CoreRunner::Write(store::WriteBatch batch) {
  around_.storage.Post([this, batch = std::move(batch)] {
    const Instant start = runtime::Now();
    const absl::Status status = around_.store.Write(batch);
    around_.metrics.ObserveWrite(runtime::Now() - start);
    around_.control.Post([this, status] { OnWritten(status); });
  });
}

void CoreRunner::OnWritten(const absl::Status& status) {
  const std::string error = status.ok() ? "" : status.ToString();
  if (error != write_error_) {
    if (error.empty()) runtime::Logger("store")->info("store works again");
    if (!error.empty()) {
      runtime::Logger("store")->error("store write failed, trying again error={}",
                                      runtime::Quoted(error));
    }
    write_error_ = error;
  }
  queue_.OnWritten(status);
}

void CoreRunner::RepeatFlush() {
  queue_.Flush();
  flush_->After(kFlushInterval, [this] { RepeatFlush(); });
}

void CoreRunner::RepeatBeat() {
  sessions_.Beat();
  for (const auto& [node, seconds] : sessions_.Silences(runtime::Now())) {
    around_.metrics.SetHeartbeatAge(node, seconds);
  }
  for (const NodeView& node : sessions_.Nodes()) {
    if (!cluster_.membership().Connected(node.name)) around_.metrics.RemoveNode(node.name);
  }
  beat_->After(AgentSessions::kBeat, [this] { RepeatBeat(); });
}

}  // namespace tactus::service
