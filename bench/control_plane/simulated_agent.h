// An agent with one device whose worker trains nothing and reports rounds.

#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "tactus/agent/v1/session.grpc.pb.h"

namespace tactus::bench {

// A report as a worker makes it, with all its fields.
agent::v1::FromAgent SampleReport();

class SimulatedAgent;

// What agents tell the jobs that they are of. Called from gRPC's threads.
class AgentListener {
 public:
  virtual ~AgentListener() = default;
  virtual void Welcomed() = 0;
  // Its worker has its peers: it trains, as `rank` of `size`, under `plan`.
  virtual void Trains(SimulatedAgent& agent, const std::string& job, std::uint32_t rank,
                      std::uint32_t size, const v1::Plan& plan) = 0;
  virtual void PlanCame(SimulatedAgent& agent, const v1::Plan& plan) = 0;
  // Its stream ended or its worker was told to go: the figures are worth nothing.
  virtual void Broke(const std::string& why) = 0;
};

// What a worker saw in a round.
struct RoundSeen {
  std::uint64_t round = 0;
  std::uint64_t plan_version = 0;
  std::uint32_t samples = 0;
  double speed = 100;  // [samples/s]
};

// The methods may be called from any thread.
class SimulatedAgent final
    : public grpc::ClientBidiReactor<agent::v1::FromAgent, agent::v1::ToAgent> {
 public:
  SimulatedAgent(std::uint64_t number, AgentListener& listener)
      : number_(number), listener_(listener) {}

  // Its node's name.
  static std::string NameOf(std::uint64_t number);

  // Opens the stream. `window`: in a flood, reports that are not acknowledged yet at most.
  void Connect(agent::v1::AgentSession::Stub& stub, std::uint64_t window);

  void SayHeartbeat();
  void SayReport(const RoundSeen& seen);
  // From now on one report follows another.
  void Flood(const RoundSeen& first);

  std::uint64_t number() const { return number_; }
  bool trains() const { return trains_; }
  // Reports and other numbered messages that the coordinator has dealt with.
  std::uint64_t acknowledged() const { return acknowledged_; }

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

 private:
  void Hear(const v1::ToWorker& message);
  void SayFromWorker(const v1::FromWorker& message);
  void Enqueue(agent::v1::FromAgent message, bool numbered);
  void Pour();

  const std::uint64_t number_;
  AgentListener& listener_;
  grpc::ClientContext context_;
  agent::v1::ToAgent heard_;
  std::uint64_t window_ = 0;

  // Reactions of reads alone:
  std::string job_;
  std::uint32_t rank_ = 0, size_ = 0;
  std::uint64_t generation_ = 0;
  v1::Plan first_plan_;

  std::atomic<std::uint64_t> worker_ = 0;
  std::atomic<bool> trains_ = false;
  std::atomic<std::uint64_t> received_ = 0, acknowledged_ = 0;

  std::mutex mutex_;
  std::deque<agent::v1::FromAgent> said_;  // the first one is being written; by mutex_
  std::uint64_t sequence_ = 0;             // by mutex_
  bool flood_ = false;                     // by mutex_
  RoundSeen next_;                         // of the flood; by mutex_
  std::uint64_t reported_generation_ = 0;  // by mutex_
  std::uint32_t reported_rank_ = 0;        // by mutex_
};

}  // namespace tactus::bench
