#include "simulator/agent.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/check.h"
#include "simulator/coordinator.h"

namespace tactus::simulator {
namespace {

const char* const kLeaveReason = "SIGTERM";
constexpr int kKilled = 9;
constexpr int kTerminated = 15;
constexpr int kCannotStart = 127;
constexpr Duration kSettledLook = Seconds(0.05);
constexpr Duration kGoodbye = Seconds(1);  // as agent::Agent's

}  // namespace

Agent::Agent(const HostModel& host, std::size_t index, Rng rng, AgentSurroundings around)
    : host_(host),
      index_(index),
      around_(std::move(around)),
      network_(rng.Fork("network")),
      link_(std::in_place, session::OutboundLogOptions{}) {
  for (const DeviceModel& model : host_.devices) {
    devices_.push_back(std::make_unique<Device>(model, rng.Fork(model.name)));
  }
}

void Agent::Start() {
  alive_ = true;
  ++life_;
  Dial();
}

void Agent::Crash() {
  for (const auto& [id, running] : workers_) {
    if (!running.gone) around_.checkers.OnHarm(running.worker->order().job);
  }
  around_.checkers.OnHostHarmed(host_.name);
  Quit();
}

void Agent::Quit() {
  alive_ = false;
  leaving_.reset();
  if (stream_ != nullptr) HangUp();
  link_.emplace(session::OutboundLogOptions{});
  for (auto& [id, running] : workers_) {
    if (running.gone) continue;
    running.gone = true;
    running.worker->Kill();
  }
}

void Agent::Leave(Duration within, std::function<void()> gone) {
  if (leaving_) return;
  leaving_ = {.end = around_.scheduler.now() + within, .gone = std::move(gone)};
  Say(job::NodeLeaving{.node = host_.name, .leave = {.reason = kLeaveReason, .within = within}},
      session::Importance::kNode);
  if (!link_->welcomed()) SuspendWorkers();
  AwaitSettled();
}

void Agent::SuspendWorkers() {
  for (auto& [id, running] : workers_) {
    if (running.gone) continue;
    running.worker->Receive(job::StopMessage{.reason = kLeaveReason, .suspend = true});
  }
}

void Agent::AwaitSettled() {
  const bool settled = running() == 0 && uploads_ == 0 && !link_->log().HoldsWords();
  if (settled || around_.scheduler.now() >= leaving_->end) return BreakOff();
  around_.scheduler.After(std::min(kSettledLook, leaving_->end - around_.scheduler.now()),
                          [this, life = life_] {
                            if (life == life_ && leaving_) AwaitSettled();
                          });
}

// Who still runs is ended, and its agent has a moment to say so.
void Agent::BreakOff() {
  for (const auto& [id, running] : workers_) {
    if (!running.gone) End(id, kTerminated);
  }
  around_.scheduler.After(kGoodbye, [this, life = life_] {
    if (life != life_ || !leaving_) return;
    const bool told = link_->welcomed() && Reaches() && !Owes([](const UpMessage& said) {
                        return std::holds_alternative<job::NodeLeaving>(said);
                      });
    const std::function<void()> gone = leaving_->gone;
    // To who was not told, who may be starting workers here, this is a crash.
    if (told) {
      Quit();
    } else {
      Crash();
    }
    gone();
  });
}

// It said something that is so, and the coordinator has not dealt with it yet.
bool Agent::Owes(const std::function<bool(const UpMessage& said)>& is_so) const {
  const std::uint64_t handled = around_.coordinator.Handled(host_.name, life_);
  return link_->log().Holds([&](const Link::Entry& entry) {
    return (entry.sequence == 0 || entry.sequence > handled) && is_so(*entry.payload.said);
  });
}

bool Agent::idle() const {
  return running() == 0 && uploads_ == 0 && !Owes([](const UpMessage&) { return true; });
}

void Agent::Dial() {
  if (!alive_ || stream_ != nullptr) return;
  stream_ = NewStream();
  FromAgent first{.acknowledged = link_->Dial(),
                  .hello = std::make_shared<const job::NodeJoined>(Hello())};
  if (link_->obeyed()) first.obeyed = *link_->obeyed();
  stream_->up->Send(std::move(first));
  link_->Sent();
  around_.scheduler.After(kWelcomeTimeout, [this, dialled = std::weak_ptr(stream_)] {
    if (dialled.lock() == stream_ && stream_ != nullptr && !link_->welcomed()) HangUp();
  });
}

// Held by this end until it ended for it, and by the coordinator's session likewise; who has let
// go hears nothing.
std::shared_ptr<AgentStream> Agent::NewStream() {
  const auto stream = std::make_shared<AgentStream>();
  const auto while_held = [weak = std::weak_ptr(stream)](const auto& then) {
    if (const std::shared_ptr<AgentStream> present = weak.lock()) then(present);
  };
  using Present = const std::shared_ptr<AgentStream>&;
  stream->up = std::make_shared<StreamWay<FromAgent>>(
      around_.scheduler, around_.control, network_,
      StreamWay<FromAgent>::Listener{
          .hear =
              [this, while_held](const FromAgent& message) {
                while_held([&](Present present) { OnWritten(present, message); });
              },
          .ended =
              [this, while_held] {
                while_held([&](Present present) { around_.coordinator.Closed(present); });
              }});
  stream->down = std::make_shared<StreamWay<ToAgent>>(
      around_.scheduler, around_.control, network_,
      StreamWay<ToAgent>::Listener{
          .hear =
              [this, while_held](const ToAgent& message) {
                while_held([&](Present present) { Hear(present, message); });
              },
          .ended = [this, while_held] { while_held([&](Present present) { OnEnded(present); }); }});
  stream->up->SetCut(up_cut_);
  stream->down->SetCut(down_cut_);
  return stream;
}

// The agent ends the stream, and dials later.
void Agent::HangUp() {
  stream_->up->End();
  stream_->down->Drop();
  OnEnded(stream_);
}

void Agent::OnEnded(const std::shared_ptr<AgentStream>& stream) {
  if (stream != stream_) return;
  stream_.reset();
  if (link_->Closed() && leaving_) SuspendWorkers();
  around_.scheduler.After(kRetry, [this, life = life_] {
    if (life == life_) Dial();
  });
}

// It has arrived at the coordinator.
void Agent::OnWritten(const std::shared_ptr<AgentStream>& stream, const FromAgent& message) {
  if (message.said) ++messages_;
  around_.coordinator.Hear(stream, message);
  BreakByChance(*stream);
}

void Agent::Hear(const std::shared_ptr<AgentStream>& stream, const ToAgent& message) {
  if (stream != stream_) return;
  if (message.action) ++messages_;
  if (message.welcome) {
    const bool has_workers = running() > 0 || uploads_ > 0;
    if (!link_->Welcome(*message.welcome, message.acknowledged, has_workers).empty()) {
      return HangUp();
    }
    Beat(stream);
  } else {
    const session::Receiver::Verdict verdict =
        link_->Receive(message.sequence, message.acknowledged);
    if (verdict == session::Receiver::Verdict::kGap) {
      around_.checkers.Break("a gap in what " + host_.name + " is told", around_.scheduler.now());
      return HangUp();
    }
    if (verdict == session::Receiver::Verdict::kHandle) Do(*message.action);
  }
  Pump();
  stream->down->ReadOn();
  BreakByChance(*stream);
}

// What was just heard comes again, unless that was said already.
void Agent::BreakByChance(const AgentStream& stream) {
  if (around_.control.duplicate_share > 0 && network_.Uniform() < around_.control.duplicate_share) {
    stream.Break();
  }
}

void Agent::Do(const job::Action& action) {
  if (const auto* start = std::get_if<job::StartWorker>(&action)) On(*start);
  if (const auto* send = std::get_if<job::SendToWorker>(&action)) On(*send);
  if (const auto* stop = std::get_if<job::StopWorker>(&action)) On(*stop);
  if (const auto* look = std::get_if<job::LookAtWorker>(&action)) On(*look);
}

void Agent::Beat(const std::shared_ptr<AgentStream>& stream) {
  around_.scheduler.After(Coordinator::kBeat, [this, weak = std::weak_ptr(stream)] {
    const std::shared_ptr<AgentStream> present = weak.lock();
    if (present == nullptr || present != stream_) return;
    link_->Beat();
    Pump();
    Beat(present);
  });
}

void Agent::Pump() {
  if (stream_ == nullptr) return;
  while (const auto next = link_->Next()) {
    FromAgent message{.acknowledged = next->acknowledged};
    if (next->entry != nullptr) {
      message.sequence = next->entry->sequence;
      message.said = next->entry->payload.said;
    }
    stream_->up->Send(std::move(message));
    link_->Sent();
  }
}

void Agent::CutUp(bool cut) {
  up_cut_ = cut;
  if (stream_ != nullptr) stream_->up->SetCut(cut);
}

void Agent::CutDown(bool cut) {
  down_cut_ = cut;
  if (stream_ != nullptr) stream_->down->SetCut(cut);
}

job::NodeJoined Agent::Hello() const {
  job::NodeJoined hello{.node = host_.name, .incarnation = life_};
  for (const DeviceModel& device : host_.devices) {
    const bool cuda = device.name.starts_with("cuda:");
    hello.devices.push_back(
        {.name = device.name, .kind = cuda ? job::DeviceKind::kCuda : job::DeviceKind::kCpu});
    const auto fault = faults_.find(device.name);
    if (fault != faults_.end()) hello.devices.back().fault = fault->second;
  }
  for (const auto& [id, running] : workers_) {
    if (!running.gone) hello.running_workers.push_back(id);
  }
  link_->log().ForEach(session::Importance::kExit, [&](const Words& words) {
    const auto* const exited = std::get_if<job::WorkerExited>(words.said.get());
    if (exited != nullptr) hello.ended_workers.push_back(exited->worker);
  });
  if (leaving_) {
    const Duration left = leaving_->end - around_.scheduler.now();
    hello.leave = job::Leave{.reason = "SIGTERM", .within = std::max(left, Duration(0))};
  }
  return hello;
}

void Agent::On(const job::StartWorker& start) {
  if (workers_.contains(start.worker)) return;
  const WorkerId id = start.worker;
  if (leaving_)
    return Say(job::WorkerExited{.worker = id, .exit_code = kCannotStart},
               session::Importance::kExit);
  SimulatedJob& job = around_.job(start.job);
  const std::uint32_t track = around_.recorder.OnWorker(
      start.job, {.worker = id, .node = host_.name, .device = start.device});
  Running& running = workers_[id];
  running.device = start.device;
  running.worker = std::make_unique<Worker>(
      WorkerOrder{.worker = id,
                  .job = start.job,
                  .endpoint = std::to_string(index_),
                  .track = track,
                  .checkpoint = around_.coordinator.FindCheckpoint(start.checkpoint),
                  .skip_samples = start.skip_samples},
      WorkerSurroundings{
          .scheduler = around_.scheduler,
          .checkers = around_.checkers,
          .recorder = around_.recorder,
          .device = DeviceNamed(start.device),
          .job = job,
          .meet = around_.meet,
          .say = [this, id](const job::FromWorker& message) { OnSaid(id, message); },
          .keep =
              [this, id](const std::string& file, std::shared_ptr<const Checkpoint> checkpoint) {
                workers_.at(id).written[file] = std::move(checkpoint);
              },
          .exited = [this, id](int exit_code) { OnExited(id, exit_code, 0); }});
}

void Agent::On(const job::SendToWorker& send) {
  const auto found = workers_.find(send.worker);
  if (found != workers_.end() && !found->second.gone) found->second.worker->Receive(send.message);
}

void Agent::On(const job::StopWorker& stop) {
  const auto found = workers_.find(stop.worker);
  if (found == workers_.end() || found->second.gone) return;
  // One that stands still does not hear the first signal.
  if (!found->second.worker->paused()) return End(stop.worker, kTerminated);
  around_.scheduler.After(stop.grace, [this, id = stop.worker] { End(id, kKilled); });
}

void Agent::On(const job::LookAtWorker& look) {
  const auto found = workers_.find(look.worker);
  if (found == workers_.end() || found->second.gone) return;
  Say(job::WorkerSaid{.worker = look.worker, .message = found->second.worker->Standing()},
      session::Importance::kReport);
}

void Agent::End(WorkerId worker, int signal) {
  Running& running = workers_.at(worker);
  if (running.gone) return;
  running.worker->Kill();
  OnExited(worker, -1, signal);
}

void Agent::OnSaid(WorkerId worker, const job::FromWorker& message) {
  const JobId job = workers_.at(worker).worker->order().job;
  const bool failed = std::holds_alternative<job::FailedMessage>(message);
  if (failed) around_.checkers.OnHarm(job);
  // It leaves its group.
  if (failed || std::holds_alternative<job::FinishedMessage>(message)) {
    around_.checkers.Disturb(job, around_.scheduler.now() + Checkers::kAftermath);
  }
  if (const auto* checkpointed = std::get_if<job::CheckpointedMessage>(&message)) {
    return KeepCheckpoint(worker, *checkpointed);
  }
  const bool of_many = std::holds_alternative<job::ReportMessage>(message) ||
                       std::holds_alternative<protocol::ValidatedMessage>(message);
  Say(job::WorkerSaid{.worker = worker, .message = message},
      of_many ? session::Importance::kReport : session::Importance::kMessage);
  if (const auto* finished = std::get_if<job::FinishedMessage>(&message)) {
    UploadResult(worker, *finished);
  }
}

void Agent::UploadResult(WorkerId worker, const job::FinishedMessage& finished) {
  const Running& running = workers_.at(worker);
  for (const std::string& path : finished.files) {
    const auto checkpoint = running.written.find(path);
    const bool found = checkpoint != running.written.end();
    Upload(running.worker->order().job,
           {.path = path, .checkpoint = found ? checkpoint->second : nullptr}, {},
           [this, worker, path](Receipt receipt) {
             if (receipt != Receipt::kRefused) return;
             around_.checkers.OnHarm(workers_.at(worker).worker->order().job);
             Say(job::WorkerSaid{.worker = worker,
                                 .message = job::FailedMessage{.message = "file '" + path +
                                                                          "' was not taken",
                                                               .transient = true}},
                 session::Importance::kMessage);
           });
  }
}

// Its word goes on when its file is at the coordinator.
void Agent::KeepCheckpoint(WorkerId worker, const job::CheckpointedMessage& message) {
  Running& running = workers_.at(worker);
  if (running.uploads) {
    running.next = message;
  } else {
    UploadCheckpoint(worker, message);
  }
}

void Agent::UploadCheckpoint(WorkerId worker, job::CheckpointedMessage message) {
  Running& running = workers_.at(worker);
  running.uploads = true;
  const std::shared_ptr<const Checkpoint> checkpoint = running.written.at(message.file);
  message.sha256 = checkpoint->id;
  message.size_bytes = 1;
  const JobId job = running.worker->order().job;
  Upload(job, {.path = message.file, .checkpoint = checkpoint},
         Seconds(around_.job(job).checkpoints.upload_seconds),
         [this, worker, message](Receipt receipt) {
           Running& told = workers_.at(worker);
           told.uploads = false;
           told.written.erase(message.file);
           if (receipt == Receipt::kTaken) {
             Say(job::WorkerSaid{.worker = worker, .message = message},
                 session::Importance::kMessage);
           }
           if (told.next) UploadCheckpoint(worker, *std::exchange(told.next, std::nullopt));
         });
}

void Agent::Upload(JobId job, const ResultFile& file, Duration time,
                   std::function<void(Receipt)> done) {
  ++uploads_;
  TryUpload(std::make_shared<Sending>(
                Sending{.job = job, .file = file, .done = std::move(done), .life = life_}),
            time + kRetry / 10);
}

void Agent::TryUpload(const std::shared_ptr<Sending>& sending, Duration after) {
  const auto lives = [this, sending] { return alive_ && sending->life == life_; };
  const auto end = [this, sending, lives](std::optional<Receipt> receipt) {
    if (std::exchange(sending->over, true)) return;
    --uploads_;
    if (receipt && lives()) sending->done(*receipt);
  };
  around_.scheduler.After(after, [this, sending, lives, end] {
    if (sending->over) return;
    if (!lives()) return end({});
    const std::uint64_t coordinator = around_.coordinator.life();
    if (Reaches() && sending->taken_by != coordinator) {
      const Receipt receipt = around_.coordinator.ReceiveFile(sending->job, sending->file,
                                                              [end] { end(Receipt::kTaken); });
      if (receipt == Receipt::kRefused) return end(receipt);
      if (receipt == Receipt::kTaken) sending->taken_by = coordinator;
    }
    TryUpload(sending, kRetry + kRetry / 10);
  });
}

void Agent::OnExited(WorkerId worker, int exit_code, int signal) {
  Running& running = workers_.at(worker);
  if (running.gone) return;
  running.gone = true;
  Say(job::WorkerExited{.worker = worker, .exit_code = exit_code, .signal = signal},
      session::Importance::kExit);
}

void Agent::Say(UpMessage said, session::Importance importance) {
  if (!link_->log().Append({std::make_shared<const UpMessage>(std::move(said))}, importance)) {
    around_.checkers.Break("the log of " + host_.name + " is full", around_.scheduler.now());
  }
  Pump();
}

Worker* Agent::WorkerOn(const std::string& device) {
  for (auto& [id, running] : workers_) {
    if (!running.gone && running.device == device) return running.worker.get();
  }
  return nullptr;
}

Device& Agent::DeviceNamed(const std::string& device) {
  const auto found =
      std::ranges::find_if(devices_, [&](const auto& one) { return one->model().name == device; });
  TACTUS_CHECK(found != devices_.end());
  return **found;
}

void Agent::KillWorker(const std::string& device) {
  Worker* const worker = WorkerOn(device);
  if (worker == nullptr) return;
  around_.checkers.OnHarm(worker->order().job);
  End(worker->order().worker, kKilled);
}

void Agent::SetFault(const std::string& device, const std::string& reason) {
  if (reason.empty()) {
    faults_.erase(device);
  } else {
    faults_[device] = reason;
  }
  if (!alive_) return;
  Say(job::DeviceFaultsChanged{.node = host_.name, .faults = faults_}, session::Importance::kNode);
}

std::size_t Agent::running() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(workers_, [](const auto& entry) { return !entry.second.gone; }));
}

}  // namespace tactus::simulator
