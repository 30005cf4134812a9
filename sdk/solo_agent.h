// The agent and the coordinator of a program that runs alone: a group of one, and a planner.

#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "agent/worker/agent.h"
#include "coordinator/job/steering.h"
#include "policies/decision.h"
#include "sdk/program.h"
#include "threads/mutex.h"

namespace tactus::sdk {

// Answers in the caller's thread.
class SoloAgent final : public worker::Agent {
 public:
  explicit SoloAgent(const Program& program);

  std::optional<worker::ToWorker> Poll() override;
  absl::StatusOr<worker::ToWorker> Receive() override;
  bool Await(Duration) override { return true; }
  void Send(const worker::FromWorker& message) override;
  void Send(const worker::SnapshottedMessage&) override {}
  bool Flush(Duration) override { return true; }
  void BeginStandings() override {}
  worker::Standpoint& standpoint() override { return standpoint_; }
  void HangUp() override {}

  // Since the last call.
  std::vector<policies::Decision> TakeDecisions();

 private:
  void Queue(worker::ToWorker message);
  void Decided(const policies::Revision& revision);
  void Take(const worker::ReadyMessage& ready);
  void Take(const worker::EndpointMessage& endpoint);
  void Take(const worker::ReportMessage& report);

  const Program program_;
  job::Steering steering_;
  worker::Standpoint standpoint_;

  threads::Mutex mutex_;
  std::deque<worker::ToWorker> messages_ ABSL_GUARDED_BY(mutex_);
  std::vector<policies::Decision> decisions_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tactus::sdk
