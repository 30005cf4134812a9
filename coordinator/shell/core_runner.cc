#include "coordinator/shell/core_runner.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/uuid/random_generator.hpp>
#include <boost/uuid/uuid_io.hpp>
#include <iterator>
#include <utility>

#include "coordinator/job/snapshots.h"
#include "coordinator/shell/agent_conversion.h"
#include "coordinator/shell/job_conversion.h"
#include "runtime/logging.h"
#include "runtime/now.h"

namespace tactus::service {
namespace {

constexpr Duration kFlushInterval = Seconds(0.5);
// A beat looks at the agents in so many parts, so that none of them holds up the thread for long.
constexpr std::size_t kBeatParts = 100;

// Agents dial again within seconds: a node that takes longer to come back after a restart shows as
// not connected. Its jobs wait on.
constexpr Duration kReturn = Seconds(30);

// Of the time of day since 1970. Epochs are counted from 1, one a start, so that it is above all
// those of before, and above that of any restored earlier.
std::uint64_t SecondsNow() {
  return static_cast<std::uint64_t>(std::max<job::WallTime>(runtime::WallNow(), 0)) / 1'000'000'000;
}

// Of this process: 32 hexadecimal digits.
std::string NewLife() {
  std::string text = boost::uuids::to_string(boost::uuids::random_generator()());
  std::erase(text, '-');
  return text;
}

v1::JobEvent NewEvent() {
  v1::JobEvent event;
  *event.mutable_time() = ToTimestamp(runtime::WallNow());
  return event;
}

metrics::NodeFigures FiguresOf(const job::Membership& membership, const std::string& name,
                               Duration silence) {
  metrics::NodeFigures figures = {.silence = silence};
  const auto node = membership.nodes().find(name);
  if (node == membership.nodes().end()) return figures;
  figures.cordoned = node->second.cordoned;
  for (const job::DeviceRecord& device : node->second.devices) {
    if (!device.fault.empty()) {
      ++figures.at_fault;
    } else if (membership.HolderOf(name, device.name) != nullptr) {
      ++figures.busy;
    } else {
      ++figures.free;
    }
  }
  return figures;
}

}  // namespace

CoreRunner::CoreRunner(const Surroundings& surroundings)
    : around_(surroundings),
      wall_offset_(runtime::WallNow() - runtime::Now().time_since_epoch().count()),
      cluster_(wall_offset_),
      tape_(surroundings.tape, {.program_version = TACTUS_VERSION, .wall_offset = wall_offset_},
            {.control = surroundings.control, .storage = surroundings.tapes}),
      telemetry_(surroundings.metrics),
      awaited_nodes_(surroundings.metrics),
      queue_({.write = [this](const job::WriteBatch& batch) { Write(batch); },
              .perform = [this](const job::Action& action) { Perform(action); },
              // Who was paused for long says nothing to anybody before it knows whether it leads.
              .held = [this] { return !around_.store.Leads(); }}),
      sessions_(
          [this](const job::Event& event, std::function<void()> done) {
            Handle(event, [done = std::move(done)](const absl::Status& status) {
              if (status.ok()) done();  // else the agent says it again to the next coordinator
            });
          },
          [this](WorkerId worker, const std::string& node) {
            return cluster_.RunsElsewhere(worker, node);
          }),
      history_(NewLife()) {
  sessions_.SetTakeProbe([this](const std::string& node, const agent::v1::LinkProbed& said) {
    links_.Hear(node, said);
  });
}

CoreRunner::~CoreRunner() = default;

absl::Status CoreRunner::Start() {
  absl::StatusOr<std::vector<job::JobRecord>> unfinished;
  absl::StatusOr<std::vector<job::NodeRecord>> nodes;
  absl::StatusOr<std::vector<job::MemoryRecord>> memories;
  absl::StatusOr<std::vector<job::PriorRecord>> priors;
  absl::StatusOr<std::uint64_t> last_job;
  absl::StatusOr<store::JobNumbers::Given> numbers;
  absl::StatusOr<protocol::CoordinatorIdentity> identity;
  std::vector<store::SetAsideJob> set_aside;
  around_.storage.RunAndWait([&] {
    unfinished = around_.store.UnfinishedJobs();
    set_aside = around_.store.TakeSetAside();
    nodes = around_.store.Nodes();
    memories = around_.store.Memories();
    priors = around_.store.Priors();
    last_job = around_.store.LastJobId();
    numbers = around_.store.Numbers();
    identity = around_.store.BeginEpoch(around_.restored ? SecondsNow() : 0);
  });
  TellSetAside(set_aside);
  if (!unfinished.ok()) return unfinished.status();
  if (!nodes.ok()) return nodes.status();
  if (!memories.ok()) return memories.status();
  if (!priors.ok()) return priors.status();
  if (!last_job.ok()) return last_job.status();
  if (!numbers.ok()) return numbers.status();
  if (!identity.ok()) return identity.status();
  runtime::Logger("main")->info("epoch begun server={} epoch={} restored={}", identity->server,
                                identity->epoch, around_.restored);
  around_.control.RunAndWait([&] {
    last_job_ = *last_job;
    numbers_ = store::JobNumbers(*std::move(numbers));
    sessions_.SetIdentity(*std::move(identity));
    Restore({.records = *std::move(unfinished),
             .nodes = *std::move(nodes),
             .memories = *std::move(memories),
             .priors = *std::move(priors)});
  });
  return absl::OkStatus();
}

void CoreRunner::Restore(tape::Start start) {
  wake_.emplace(around_.control);
  flush_.emplace(around_.control);
  beat_.emplace(around_.control);
  expiry_.emplace(around_.control);
  return_.emplace(around_.control);
  for (const job::NodeRecord& node : start.nodes) cluster_.RestoreNode(node);
  for (const job::MemoryRecord& memory : start.memories) cluster_.RestoreMemory(memory);
  for (const job::PriorRecord& prior : start.priors) cluster_.RestorePrior(prior);
  start.time = runtime::Now();
  job::Actions all;
  for (const job::JobRecord& record : start.records) {
    visible_[record.id] = record;
    ids_[record.name] = record.id;
    telemetry_.OnAction(job::PublishJob{record});
    job::Actions actions = cluster_.Restore(record, start.time);
    std::move(actions.begin(), actions.end(), std::back_inserter(all));
    const job::JobRecord* const taken_up = cluster_.Find(record.id);
    if (taken_up != nullptr) awaited_nodes_.Await(*taken_up);
  }
  return_->After(kReturn, [this] { awaited_nodes_.GiveUp(); });
  start.actions = all;
  tape_.Add(std::move(start));
  queue_.Push(std::move(all), {});
  RepeatFlush();
  RepeatBeat();
}

void CoreRunner::Close(const absl::Status& status, Duration grace) {
  around_.control.RunAndWait([&] {
    closed_ = status;
    give_up_.emplace(around_.control);
    give_up_->After(grace, [this] { queue_.Close(); });
    sessions_.CloseAll(status);
    links_.GiveUp(status);
    watchers_.EndAll(status);
    waiters_.Expire(Instant::max());
  });
}

void CoreRunner::Stop() {
  around_.control.RunAndWait([this] {
    flush_.reset();
    beat_.reset();
    wake_.reset();
    expiry_.reset();
    give_up_.reset();
    return_.reset();
  });
  // Twice: what runs now ends first, then what waited behind it.
  for (int i = 0; i < 2; ++i) {
    around_.control.RunAndWait([this] { queue_.Flush(); });
    around_.storage.RunAndWait([] {});
    around_.control.RunAndWait([] {});
  }
  around_.control.RunAndWait([this] { tape_.Finish(); });
  around_.tapes.RunAndWait([] {});
}

// ---- The core and its actions

void CoreRunner::Handle(const job::Event& event, Done done) {
  const Instant now = runtime::Now();
  telemetry_.OnEvent(event, now);
  // Before the step, whose own answers to the new agent have to stay.
  if (const std::string* node = job::StartsAnew(event)) queue_.Drop(*node);
  if (const auto* joined = std::get_if<job::NodeJoined>(&event))
    awaited_nodes_.Joined(joined->node);
  if (const auto* missed = std::get_if<job::NodeUnreachable>(&event))
    around_.metrics.nodes().Lose(missed->node);
  if (const auto* lost = std::get_if<job::NodeLost>(&event))
    around_.metrics.nodes().Lose(lost->node);
  job::Actions actions = cluster_.Step(event, now);
  telemetry_.OnStep(actions, runtime::Now() - now);
  if (tape_.recording()) tape_.Add(tape::Step{.event = event, .time = now, .actions = actions});
  if (actions.empty() && !done) return;  // while nothing can be written none would go
  queue_.Push(std::move(actions), [this, done = std::move(done)](bool carried_out) {
    if (done) done(carried_out ? absl::OkStatus() : closed_);
  });
}

void CoreRunner::Perform(const job::Action& action) {
  telemetry_.OnAction(action);
  if (const auto* start = std::get_if<job::StartWorker>(&action)) {
    sessions_.Tell(start->node, ToProto(*start));
  } else if (const auto* send = std::get_if<job::SendToWorker>(&action)) {
    On(*send);
  } else if (const auto* stop = std::get_if<job::StopWorker>(&action)) {
    sessions_.Tell(stop->node, ToProto(*stop));
  } else if (const auto* look = std::get_if<job::LookAtWorker>(&action)) {
    sessions_.Tell(look->node, ToProto(*look));
  } else if (const auto* probe = std::get_if<job::ProbeLink>(&action)) {
    On(*probe);
  } else if (const auto* changed = std::get_if<job::PublishJob>(&action)) {
    On(*changed);
  } else if (const auto* progress = std::get_if<job::PublishProgress>(&action)) {
    On(*progress);
  } else if (const auto* snapshot = std::get_if<job::PublishSnapshot>(&action)) {
    On(*snapshot);
  } else if (const auto* decision = std::get_if<job::PublishDecision>(&action)) {
    On(*decision);
  } else if (const auto* wake = std::get_if<job::WakeAt>(&action)) {
    if (wake_) wake_->At(wake->time, [this] { Handle(job::Ticked{}, {}); });
  }
}

// The secret of a group is known here alone: what the core decides is taped and stored.
void CoreRunner::On(const job::SendToWorker& action) {
  agent::v1::ToAgent message = ToProto(action);
  if (message.to_worker().message().has_group() && around_.mesh_secret) {
    v1::Group& group = *message.mutable_to_worker()->mutable_message()->mutable_group();
    // A worker of no job ends, whatever it is told.
    const std::string job = cluster_.JobNameOf(action.worker);
    if (!job.empty()) group.set_secret(around_.mesh_secret(job, group.generation()));
  }
  sessions_.Tell(action.node, std::move(message));
}

// A node that has gone since is not heard, and then nothing is known of the link.
void CoreRunner::On(const job::ProbeLink& action) {
  links_.AskInTurn(action.from, action.to,
                   [this, action](const absl::StatusOr<v1::ProbeLinkResponse>& found) {
                     if (!closed_.ok()) return;
                     job::LinkProbed probed{.from = action.from, .to = action.to};
                     if (found.ok()) probed.bytes_per_second = found->bytes_per_second();
                     Handle(probed, {});
                   });
}

void CoreRunner::On(const job::PublishJob& action) {
  const job::JobRecord& record = action.record;
  const bool over = job::IsFinal(record.state);
  if (over) {
    visible_.erase(record.id);
    ids_.erase(record.name);
  } else {
    visible_[record.id] = record;
  }
  if (history_.Keeps(record.id)) {
    v1::JobEvent event = NewEvent();
    *event.mutable_job() = ToProto(record);
    Publish(record.id, std::move(event));
  }
  if (over) {
    watchers_.End(record.id, absl::OkStatus());
    history_.Over(record.id);
    around_.job_over(record.name);
  }
  waiters_.Changed(record.id, EtagOf(record));
}

// Requires: the history keeps the job's events, which it does from its first watch on.
void CoreRunner::Publish(JobId job, v1::JobEvent event) {
  watchers_.Publish(job, history_.Add(job, std::move(event)));
}

void CoreRunner::On(const job::PublishProgress& action) {
  const auto found = visible_.find(action.job);
  if (found == visible_.end()) return;
  found->second.progress = action.progress;
  if (!history_.Keeps(action.job)) return;
  v1::JobEvent event = NewEvent();
  *event.mutable_progress() = ToProto(action.progress, found->second.members);
  Publish(action.job, std::move(event));
}

void CoreRunner::On(const job::PublishSnapshot& action) {
  const auto found = visible_.find(action.job);
  if (found != visible_.end()) KeepSnapshot(found->second, action.snapshot);
}

void CoreRunner::On(const job::PublishDecision& action) {
  if (!history_.Keeps(action.job)) return;
  v1::JobEvent event = NewEvent();
  *event.mutable_decision() = ToProto(action.plan);
  Publish(action.job, std::move(event));
}

void CoreRunner::Write(const job::WriteBatch& batch) {
  around_.storage.Post([this, batch] {
    const Instant start = runtime::Now();
    const absl::Status status = around_.store.Write(batch);
    around_.metrics.ObserveWrite(runtime::Now() - start, status.ok());
    around_.control.Post([this, status] { OnWritten(status); });
  });
}

void CoreRunner::OnWritten(const absl::Status& status) {
  const std::string error = status.ok() ? "" : status.ToString();
  // Said once for each reason: a write that failed is tried again twice a second.
  if (error != write_error_) {
    if (error.empty()) runtime::Logger("store")->info("store works again");
    if (!error.empty()) {
      runtime::Logger("store")->error("store write failed, trying again error={}",
                                      runtime::Quoted(error));
    }
    write_error_ = error;
  }
  queue_.OnWritten(status.ok());
}

void CoreRunner::RepeatFlush() {
  queue_.Flush();
  flush_->After(kFlushInterval, [this] { RepeatFlush(); });
}

void CoreRunner::PlanExpiry() {
  const std::optional<Instant> next = waiters_.next();
  if (!next || !expiry_) return;
  expiry_->At(*next, [this] {
    waiters_.Expire(runtime::Now());
    PlanExpiry();
  });
}

void CoreRunner::RepeatBeat() {
  const AgentSessions::Part part{.index = beat_part_, .count = kBeatParts};
  beat_part_ = (beat_part_ + 1) % kBeatParts;
  sessions_.Beat(part);
  for (const auto& [node, silence] : sessions_.Silences(runtime::Now(), part)) {
    around_.metrics.nodes().Set(node, FiguresOf(cluster_.membership(), node, silence));
  }
  around_.metrics.SetBacklog(queue_.lists());
  beat_->After(AgentSessions::kBeat / kBeatParts, [this] { RepeatBeat(); });
  if (beat_part_ == 0) Bookmark();
}

void CoreRunner::Bookmark() {
  watchers_.Beat([this](JobId job) {
    v1::JobEvent event = NewEvent();
    event.mutable_bookmark();
    const auto record = visible_.find(job);
    if (record != visible_.end()) event.set_resume_token(history_.Token(record->second.uid));
    return std::make_shared<const v1::JobEvent>(std::move(event));
  });
}

}  // namespace tactus::service
