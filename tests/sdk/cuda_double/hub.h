// The agents and the coordinator of a small group of programs, in one process.

#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "agent/worker/agent.h"
#include "sdk/program.h"

namespace tactus::sdk {

// Forms one group of members on cuda:0, cuda:1, ... once all are ready, by a fixed plan. Outlives
// its members' agents.
class Hub {
 public:
  Hub(std::uint32_t size, worker::TransportKind transport) : transport_(transport), queues_(size) {}
  ~Hub();

  // For the member of that rank.
  std::unique_ptr<worker::Agent> Member(std::uint32_t rank, const Program& program);

  // Of a job on that device, of which nothing more is heard.
  static std::unique_ptr<worker::Agent> Alone(const std::string& device);

 private:
  class MemberAgent;

  void Ready(std::uint32_t rank, std::uint32_t batch);
  void Endpoint(std::uint32_t rank, const std::string& endpoint);
  void Push(std::uint32_t rank, worker::ToWorker message);

  const worker::TransportKind transport_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::deque<worker::ToWorker>> queues_;  // to each, by rank
  std::vector<std::string> endpoints_;                // that have come, by rank
};

}  // namespace tactus::sdk
