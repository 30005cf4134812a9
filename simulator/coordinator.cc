#include "simulator/coordinator.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/check.h"
#include "coordinator/job/wording.h"
#include "simulator/agent.h"

namespace tactus::simulator {
namespace {

// Each agent waits until its last message is dealt with, so that lists gather only by timers, users
// and agents that come and go, who are held off from so many events on.
constexpr std::size_t kListsAParty = Coordinator::Sessions::kUnfinishedMax;
constexpr Duration kFlush = Seconds(0.5);  // as service::CoreRunner's

// The coordinator ends it.
void End(AgentStream& stream) {
  stream.down->End();
  stream.up->Drop();
}

}  // namespace

void Coordinator::Start() {
  if (up()) return;
  ++life_;
  cluster_ = std::make_unique<job::Cluster>(kWallOffset);
  queue_.emplace(delivery::ActionQueue::Hooks{
      .write = [this](const job::WriteBatch& batch) { Write(batch); },
      .perform = [this](const job::Action& action) { Perform(action); }});
  ++disk().epoch;
  sessions_.emplace(Sessions::Hooks{
      .emit = [this](const job::Event& event,
                     std::function<void()> done) { Handle(event, std::move(done)); },
      .send = [this](AgentStream& stream, const auto& outgoing) { Write(stream, outgoing); },
      .close = [](AgentStream& stream, session::Ending, const std::string&) { End(stream); }});
  sessions_->SetIdentity({.server = disk().server, .epoch = disk().epoch});
  around_.checkers.OnRestart(disk().jobs);
  std::vector<job::NodeRecord> nodes;
  for (const auto& [name, node] : disk().nodes) {
    nodes.push_back(node);
    cluster_->RestoreNode(node);
  }
  std::vector<job::MemoryRecord> memories;
  for (const auto& [id, memory] : disk().memories) {
    memories.push_back(memory);
    cluster_->RestoreMemory(memory);
  }
  std::vector<job::PriorRecord> priors;
  for (const auto& [key, prior] : disk().priors) {
    priors.push_back(prior);
    cluster_->RestorePrior(prior);
  }
  std::vector<job::JobRecord> restored;
  job::Actions actions;
  const Instant now = around_.scheduler.now();
  for (const auto& [id, record] : disk().jobs) {
    if (job::IsFinal(record.state)) continue;
    restored.push_back(record);
    std::ranges::move(cluster_->Restore(record, now), std::back_inserter(actions));
  }
  if (around_.scenario.on_start)
    around_.scenario.on_start({nodes, memories, priors, restored}, now, actions);
  Take(std::move(actions), {});
  Flush();
  Beat();
}

void Coordinator::Crash() {
  if (!up()) return;
  ++life_;
  const Duration half = Seconds(around_.scenario.cluster.control.persist_seconds) / 2;
  if (writing_ && !disk_full_ && around_.scheduler.now() - writing_->began >= half) {
    Keep(*writing_->batch);
  }
  writing_.reset();
  cluster_.reset();
  queue_.reset();
  accepted_.clear();
  wake_.reset();
  for (const std::shared_ptr<AgentStream>& stream : sessions_->TakeStreams()) End(*stream);
  sessions_.reset();
}

void Coordinator::SetWrongStore(bool wrong) {
  TACTUS_CHECK(!up());
  wrong_.reset();
  if (wrong) wrong_.emplace(Disk{.server = "wrong"});
}

void Coordinator::SetDiskFull(bool full) { disk_full_ = full; }

bool Coordinator::Submit(const job::JobRecord& record) {
  if (!up() || wrong_) return false;
  const bool known = right_.jobs.contains(record.id) || !accepted_.insert(record.id).second;
  if (!known) Handle(job::JobSubmitted{record}, {});
  return true;
}

bool Coordinator::Tell(const job::Event& event) {
  if (!up() || wrong_) return false;
  Handle(event, {});
  return true;
}

void Coordinator::Hear(const std::shared_ptr<AgentStream>& stream, const FromAgent& message) {
  if (!up()) return End(*stream);
  if (message.hello) return Admit(stream, message);
  // The daemon drops what an agent says of another node's worker. Agents here are honest: nothing
  // of theirs may ever be taken for that.
  const auto event_of = [&](const std::string& node) -> std::optional<job::Event> {
    return std::visit(
        [&](const auto& said) {
          if constexpr (requires { said.worker; }) {
            TACTUS_CHECK(!cluster_->RunsElsewhere(said.worker, node));
          }
          return job::Event(said);
        },
        *message.said);
  };
  sessions_->Receive(stream.get(),
                     {.sequence = message.sequence, .acknowledged = message.acknowledged},
                     around_.scheduler.now(), event_of, [stream] { stream->up->ReadOn(); });
}

void Coordinator::Admit(const std::shared_ptr<AgentStream>& stream, const FromAgent& first) {
  const auto refusal = sessions_->Open(
      stream, {.joined = *first.hello, .acknowledged = first.acknowledged, .obeyed = first.obeyed},
      around_.scheduler.now());
  if (refusal) return End(*stream);
  stream->up->ReadOn();
}

std::uint64_t Coordinator::Handled(const std::string& node, std::uint64_t incarnation) const {
  if (!up()) return 0;
  const auto found = sessions_->all().find(node);
  const bool same = found != sessions_->all().end() && found->second->incarnation == incarnation;
  return same ? found->second->Handled() : 0;
}

void Coordinator::Closed(const std::shared_ptr<AgentStream>& stream) {
  if (up()) sessions_->Closed(stream.get());
}

void Coordinator::Write(AgentStream& stream, const session::Outgoing<job::Action>& outgoing) {
  ToAgent message{.acknowledged = outgoing.acknowledged};
  if (outgoing.welcome) message.welcome = sessions_->identity();
  if (outgoing.told != nullptr) {
    message.sequence = outgoing.told->sequence;
    message.action = outgoing.told->message;
  }
  stream.down->Send(std::move(message));
  sessions_->Sent(&stream);
}

Receipt Coordinator::ReceiveFile(JobId job, const ResultFile& file, std::function<void()> stored) {
  // An agent does not bring files to another coordinator than its workers'.
  if (!up() || wrong_) return Receipt::kAway;
  if (refusing_) return Receipt::kRefused;
  if (disk_full_) {
    Handle(job::ArtifactComing{.job = job}, {});
    return Receipt::kAway;
  }
  job::ArtifactRecord artifact{.path = file.path, .size_bytes = 1};
  if (file.checkpoint != nullptr) {
    artifact.sha256 = file.checkpoint->id;
    right_.checkpoints[artifact.sha256] = file.checkpoint;
  }
  Handle(job::ArtifactStored{.job = job, .artifact = std::move(artifact)}, std::move(stored));
  return Receipt::kTaken;
}

std::size_t Coordinator::DamageCheckpoints() {
  std::size_t damaged = 0;
  for (const auto& [id, record] : right_.jobs) {
    if (job::IsFinal(record.state) || !record.checkpoint) continue;
    const auto found = right_.checkpoints.find(record.checkpoint->sha256);
    if (found == right_.checkpoints.end() || found->second->damaged) continue;
    Checkpoint copy = *found->second;
    copy.damaged = true;
    found->second = std::make_shared<const Checkpoint>(std::move(copy));
    ++damaged;
  }
  return damaged;
}

std::shared_ptr<const Checkpoint> Coordinator::FindCheckpoint(const std::string& id) {
  if (id.empty()) return nullptr;
  const auto found = right_.checkpoints.find(id);
  if (found != right_.checkpoints.end()) return found->second;
  return std::make_shared<const Checkpoint>(Checkpoint{.id = id, .damaged = true});
}

void Coordinator::Handle(const job::Event& event, std::function<void()> done) {
  const Instant now = around_.scheduler.now();
  if (const std::string* node = job::StartsAnew(event)) queue_->Drop(*node);
  job::Actions actions = cluster_->Step(event, now);
  if (around_.scenario.on_step) around_.scenario.on_step(event, now, actions);
  CheckPlaces(actions);
  Take(std::move(actions), std::move(done));
}

// Nobody is started on a device at fault, or to go on from what is not there.
void Coordinator::CheckPlaces(const job::Actions& actions) const {
  for (const job::Action& action : actions) {
    const auto* const start = std::get_if<job::StartWorker>(&action);
    if (start == nullptr) continue;
    if (!start->checkpoint.empty() && !right_.checkpoints.contains(start->checkpoint)) {
      around_.checkers.Break(
          "a worker is to go on from " + start->checkpoint + ", which nobody has",
          around_.scheduler.now());
    }
    const auto& devices = cluster_->membership().nodes().at(start->node).devices;
    const auto device = std::ranges::find(devices, start->device, &job::DeviceRecord::name);
    if (device != devices.end() && device->fault.empty()) continue;
    around_.checkers.Break(
        "a worker is started on " + start->node + "/" + start->device + ", which is at fault",
        around_.scheduler.now());
  }
}

void Coordinator::Take(job::Actions actions, std::function<void()> done) {
  around_.checkers.OnActions(actions, around_.scheduler.now());
  around_.recorder.OnActions(actions, around_.scheduler.now());
  const std::size_t parties = around_.scenario.cluster.hosts.size() + around_.scenario.jobs.size();
  around_.checkers.OnQueue("the coordinator's queue", queue_->lists(), kListsAParty * (parties + 1),
                           around_.scheduler.now());
  queue_->Push(std::move(actions), [done = std::move(done)](bool) {
    if (done) done();
  });
}

void Coordinator::Flush() {
  queue_->Flush();
  around_.scheduler.After(kFlush, [this, life = life_] {
    if (life == life_) Flush();
  });
}

void Coordinator::Write(const job::WriteBatch& batch) {
  writing_ = {.batch = &batch, .began = around_.scheduler.now()};
  around_.scheduler.After(Seconds(around_.scenario.cluster.control.persist_seconds),
                          [this, &batch, life = life_] {
                            if (life != life_) return;
                            writing_.reset();
                            if (!disk_full_) Keep(batch);
                            queue_->OnWritten(!disk_full_);
                          });
}

void Coordinator::Keep(const job::WriteBatch& batch) {
  for (const job::JobRecord& record : batch.jobs) Keep(record);
  for (const job::NodeRecord& node : batch.nodes) Keep(node);
  for (const job::MemoryRecord& memory : batch.memories) Keep(memory);
  for (const job::PriorRecord& prior : batch.priors) Keep(prior);
}

// The checkpoints that it names no longer go.
void Coordinator::Keep(const job::JobRecord& record) {
  const auto names = [](const job::JobRecord& job) {
    std::set<std::string> ids;
    if (job.checkpoint) ids.insert(job.checkpoint->sha256);
    for (const job::CheckpointRecord& former : job.former_checkpoints) ids.insert(former.sha256);
    return ids;
  };
  const std::set<std::string> named = names(record);
  for (const std::string& former : names(disk().jobs[record.id])) {
    if (named.contains(former)) continue;
    around_.scheduler.After(kUnnamed, [this, former] { right_.checkpoints.erase(former); });
  }
  disk().jobs[record.id] = record;
  around_.checkers.OnStored(record);
}

void Coordinator::Keep(const job::MemoryRecord& memory) {
  if (memory.memory.empty()) {
    disk().memories.erase(memory.job);
  } else {
    disk().memories[memory.job] = memory;
  }
}

void Coordinator::Keep(const job::PriorRecord& prior) {
  if (prior.prior.empty()) {
    disk().priors.erase(prior.key);
  } else {
    disk().priors[prior.key] = prior;
  }
}

// One that says nothing is not kept.
void Coordinator::Keep(const job::NodeRecord& node) {
  if (node.cordoned || node.draining) {
    disk().nodes[node.name] = node;
  } else {
    disk().nodes.erase(node.name);
  }
}

void Coordinator::Perform(const job::Action& action) {
  if (const std::string* const node = job::NodeOf(action)) sessions_->Tell(*node, action);
  if (const auto* wake = std::get_if<job::WakeAt>(&action)) WakeAt(wake->time);
  if (const auto* probe = std::get_if<job::ProbeLink>(&action)) Probe(*probe);
}

// As agents bound it, but all at once, where a node's are measured one by one; that it takes a
// link's bytes from others is left out.
void Coordinator::Probe(const job::ProbeLink& probe) {
  const double rate = around_.rate(probe.from, probe.to);
  const double seconds = rate > 0 ? std::min(kProbeSeconds, kProbeBytes / rate) : kProbeSeconds;
  around_.scheduler.After(Seconds(seconds), [this, probe, rate, life = life_] {
    if (life != life_) return;
    Handle(job::LinkProbed{.from = probe.from, .to = probe.to, .bytes_per_second = rate}, {});
  });
}

void Coordinator::WakeAt(Instant time) {
  wake_ = time;
  around_.scheduler.At(time, [this, time, life = life_] {
    // Another life, or another time that was asked for since.
    if (life != life_ || wake_ != time) return;
    wake_.reset();
    Handle(job::Ticked{}, {});
  });
}

void Coordinator::Beat() {
  sessions_->Beat();
  around_.scheduler.After(kBeat, [this, life = life_] {
    if (life == life_) Beat();
  });
}

}  // namespace tactus::simulator
