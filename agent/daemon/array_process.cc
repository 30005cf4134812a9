#include "agent/daemon/array_process.h"

#include <sstream>
#include <utility>
#include <vector>

#include "runtime/logging.h"

namespace tactus::agent {

absl::StatusOr<std::shared_ptr<ArrayProcess>> ArrayProcess::Start(runtime::ControlThread& control,
                                                                  const WorkerCommand& command,
                                                                  const std::string& socket_path,
                                                                  std::optional<uid_t> user) {
  std::shared_ptr<ArrayProcess> array(new ArrayProcess);
  ArrayProcess* const self = array.get();  // owns the socket and the process that call back
  absl::StatusOr<std::unique_ptr<WorkerSocket>> socket = WorkerSocket::Listen(
      control, socket_path,
      {.is_worker = [self](pid_t pid) { return self->process_ != nullptr && pid == self->pid(); },
       .line = [self](std::string_view line) { self->OnLine(line); },
       .misused = [self](const std::string&) { self->Stop(Duration(0)); }},
      user);
  if (!socket.ok()) return socket.status();
  array->socket_ = *std::move(socket);
  array->held_ = command.held;
  absl::StatusOr<std::unique_ptr<WorkerProcess>> process = WorkerProcess::Start(
      control, command, [self](const WorkerExit& exit) { self->OnExit(exit); },
      [self](std::string_view output) { self->OnOutput(output); });
  if (!process.ok()) return process.status();
  array->process_ = *std::move(process);
  runtime::Logger("agent")->info("array of jobs started process={}", array->pid());
  return array;
}

void ArrayProcess::Enter(WorkerId worker, const std::string& socket_path, Seat seat) {
  seats_[worker] = std::move(seat);
  // Lines of one socket's path each: there is room for hundreds of thousands.
  static_cast<void>(socket_->Send("start " + std::to_string(worker.value) + " " + socket_path));
}

void ArrayProcess::Stop(Duration grace) {
  open_ = false;
  process_->Stop(grace);
}

void ArrayProcess::KillFor(WorkerId worker, const std::string& why) {
  if (!open_) return;
  std::string others;
  for (const auto& [other, seat] : seats_) {
    if (other != worker) others += (others.empty() ? "" : ",") + seat.job;
  }
  const auto own = seats_.find(worker);
  const std::string job = own == seats_.end() ? "" : " of job " + own->second.job;
  killed_for_ = worker;
  killed_ = "agent: its process was killed, as worker " + std::to_string(worker.value) + job +
            ", " + why + "; what it had trained since its last checkpoint is lost";
  runtime::Logger("agent")->warn("array of jobs killed process={} worker={} why={} go_back={}",
                                 pid(), worker.value, runtime::Quoted(why),
                                 runtime::Quoted(others.empty() ? "none" : others));
  Stop(Duration(0));
}

// What is no such line is of a worker that is out of order, of which its exit will tell.
void ArrayProcess::OnLine(std::string_view line) {
  std::istringstream words{std::string(line)};
  std::string verb;
  WorkerId worker{};
  WorkerExit exit{};
  if (!(words >> verb >> worker.value >> exit.exit_code) || verb != "ended") return;
  const auto seat = seats_.extract(worker);
  if (seat.empty()) return;
  exit.log_tail = process_->LogTail();
  seat.mapped().exited(exit);
}

void ArrayProcess::OnExit(const WorkerExit& exit) {
  open_ = false;
  socket_->Drain();  // of who had ended before
  const std::map<WorkerId, Seat> seats = std::exchange(seats_, {});
  for (const auto& [worker, seat] : seats) {
    WorkerExit told = exit;
    // The last line is what people are shown of its end.
    if (!killed_.empty() && worker != killed_for_) told.log_tail += "\n" + killed_;
    seat.exited(told);
  }
}

void ArrayProcess::OnOutput(std::string_view output) {
  for (const auto& [worker, seat] : seats_) seat.wrote(output);
}

}  // namespace tactus::agent
