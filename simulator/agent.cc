#include "simulator/agent.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/check.h"
#include "simulator/coordinator.h"

namespace tactus::simulator {
namespace {

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
      up_(around_.scheduler, around_.control, rng.Fork("up"),
          [this](std::uint64_t sequence, const UpMessage& message) {
            std::visit(
                [&](const auto& said) { around_.coordinator.Receive(*this, sequence, said); },
                message);
          }),
      down_(around_.scheduler, around_.control, rng.Fork("down"),
            [this](std::uint64_t sequence, const job::Action& action) {
              down_.Acknowledge(sequence);
              if (const auto* start = std::get_if<job::StartWorker>(&action)) On(*start);
              if (const auto* send = std::get_if<job::SendToWorker>(&action)) On(*send);
              if (const auto* stop = std::get_if<job::StopWorker>(&action)) On(*stop);
              if (const auto* look = std::get_if<job::LookAtWorker>(&action)) On(*look);
            }) {
  for (const DeviceModel& model : host_.devices) {
    devices_.push_back(std::make_unique<Device>(model, rng.Fork(model.name)));
  }
}

void Agent::Start() {
  alive_ = true;
  allegiance_ = {};
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
  connected_ = false;
  up_.Close();
  down_.Close();
  up_.Forget();
  down_.Forget();
  for (auto& [id, running] : workers_) {
    if (running.gone) continue;
    running.gone = true;
    running.worker->Kill();
  }
}

void Agent::Leave(Duration within, std::function<void()> gone) {
  if (leaving_) return;
  const std::string reason = "SIGTERM";
  leaving_ = {.end = around_.scheduler.now() + within, .gone = std::move(gone)};
  Say(job::NodeLeaving{.node = host_.name, .leave = {.reason = reason, .within = within}});
  for (auto& [id, running] : workers_) {
    if (!running.gone) running.worker->Receive(job::StopMessage{.reason = reason, .suspend = true});
  }
  AwaitSettled();
}

void Agent::AwaitSettled() {
  const bool settled = running() == 0 && uploads_ == 0 && !HoldsWords();
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
    const bool told = connected_ && Reaches() && !up_.Holds([](const UpMessage& message) {
      return std::holds_alternative<job::NodeLeaving>(message);
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

// Devices' faults and a goodbye are no words of workers, and Hello tells them anew.
bool Agent::HoldsWords() const {
  return up_.Holds([](const UpMessage& message) {
    return std::holds_alternative<job::WorkerSaid>(message) ||
           std::holds_alternative<job::WorkerExited>(message);
  });
}

void Agent::Dial() {
  if (!alive_ || connected_) return;
  if (!up_.cut() && !down_.cut() && around_.coordinator.Accepts(*this)) return;
  around_.scheduler.After(kRetry, [this, life = life_] {
    if (life == life_) Dial();
  });
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
    const bool untold = up_.Holds([&id](const UpMessage& message) {
      const auto* const exited = std::get_if<job::WorkerExited>(&message);
      return exited != nullptr && exited->worker == id;
    });
    if (!running.gone) hello.running_workers.push_back(id);
    if (untold) hello.ended_workers.push_back(id);
  }
  if (leaving_) {
    const Duration left = leaving_->end - around_.scheduler.now();
    hello.leave = job::Leave{.reason = "SIGTERM", .within = std::max(left, Duration(0))};
  }
  return hello;
}

bool Agent::Obeys(const protocol::CoordinatorIdentity& coordinator) {
  return allegiance_.Meet(coordinator, running() > 0 || HoldsWords() || uploads_ > 0).empty();
}

void Agent::OnWelcome(bool same) {
  connected_ = true;
  // Who does not know this life of the agent numbers its messages anew.
  if (!same) down_.Forget();
  up_.Open();
  down_.Open();
}

void Agent::OnClosed() {
  connected_ = false;
  up_.Close();
  down_.Close();
  around_.scheduler.After(kRetry, [this, life = life_] {
    if (life == life_) Dial();
  });
}

void Agent::Tell(const job::Action& action) {
  down_.Send(action);
  around_.checkers.OnQueue("an agent's messages", down_.size(), kMessagesMax,
                           around_.scheduler.now());
}

void Agent::On(const job::StartWorker& start) {
  if (workers_.contains(start.worker)) return;
  const WorkerId id = start.worker;
  if (leaving_) return Say(job::WorkerExited{.worker = id, .exit_code = kCannotStart});
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
                  .checkpoint = around_.coordinator.FindCheckpoint(start.checkpoint)},
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
  Say(job::WorkerSaid{.worker = look.worker, .message = found->second.worker->Standing()});
}

void Agent::End(WorkerId worker, int signal) {
  Running& running = workers_.at(worker);
  if (running.gone) return;
  running.worker->Kill();
  OnExited(worker, -1, signal);
}

void Agent::OnSaid(WorkerId worker, const job::FromWorker& message) {
  if (std::holds_alternative<job::FailedMessage>(message)) {
    around_.checkers.OnHarm(workers_.at(worker).worker->order().job);
  }
  if (const auto* checkpointed = std::get_if<job::CheckpointedMessage>(&message)) {
    return KeepCheckpoint(worker, *checkpointed);
  }
  Say(job::WorkerSaid{.worker = worker, .message = message});
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
             Say(job::WorkerSaid{
                 .worker = worker,
                 .message = job::FailedMessage{.message = "file '" + path + "' was not taken",
                                               .transient = true}});
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
             Say(job::WorkerSaid{.worker = worker, .message = message});
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
  Say(job::WorkerExited{.worker = worker, .exit_code = exit_code, .signal = signal});
}

void Agent::Say(UpMessage message) {
  up_.Send(std::move(message));
  around_.checkers.OnQueue("an agent's log", up_.size(), up_.kEntriesMax, around_.scheduler.now());
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
  if (alive_) Say(job::DeviceFaultsChanged{.node = host_.name, .faults = faults_});
}

std::size_t Agent::running() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(workers_, [](const auto& entry) { return !entry.second.gone; }));
}

}  // namespace tactus::simulator
