#include "tests/sdk/cuda_double/hub.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>
#include <variant>

#include "absl/status/status.h"

namespace tactus::sdk {
namespace {

worker::StartMessage StartOn(const std::string& device, const Program& program) {
  worker::StartMessage start;
  start.job_id = "group";
  start.device = device;
  start.job.name = "group";
  start.job.per_worker = program.batch;
  start.job.engine = {.train_samples = program.train_samples,
                      .micro_batch = program.micro_batch,
                      .learning_rate = {.base_batch = program.batch}};
  return start;
}

}  // namespace

// A hub of null: nothing comes behind the start.
class Hub::MemberAgent final : public worker::Agent {
 public:
  MemberAgent(Hub* hub, std::uint32_t rank, const Program& program, const std::string& device)
      : hub_(hub), rank_(rank), batch_(program.batch), start_(StartOn(device, program)) {}

  std::optional<worker::ToWorker> Poll() override {
    if (start_) return *std::exchange(start_, std::nullopt);
    if (hub_ == nullptr) return std::nullopt;
    const std::lock_guard lock(hub_->mutex_);
    std::deque<worker::ToWorker>& queue = hub_->queues_[rank_];
    if (queue.empty()) return std::nullopt;
    worker::ToWorker message = std::move(queue.front());
    queue.pop_front();
    return message;
  }
  absl::StatusOr<worker::ToWorker> Receive() override {
    if (std::optional<worker::ToWorker> message = Poll()) return *std::move(message);
    return absl::UnavailableError("the hub has nothing to say");
  }
  bool Await(Duration limit) override {
    if (start_ || hub_ == nullptr) return true;
    std::unique_lock lock(hub_->mutex_);
    return hub_->changed_.wait_for(lock, limit, [&] { return !hub_->queues_[rank_].empty(); });
  }
  void Send(const worker::FromWorker& message) override {
    if (hub_ == nullptr) return;
    if (std::holds_alternative<worker::ReadyMessage>(message)) hub_->Ready(rank_, batch_);
    if (const auto* endpoint = std::get_if<worker::EndpointMessage>(&message)) {
      hub_->Endpoint(rank_, endpoint->endpoint);
    }
  }
  void Send(const worker::SnapshottedMessage&) override {}
  bool Flush(Duration) override { return true; }
  void BeginStandings() override {}
  worker::Standpoint& standpoint() override { return standpoint_; }
  void HangUp() override {}

 private:
  Hub* const hub_;
  const std::uint32_t rank_;
  const std::uint32_t batch_;
  std::optional<worker::StartMessage> start_;
  worker::Standpoint standpoint_;
};

Hub::~Hub() = default;

std::unique_ptr<worker::Agent> Hub::Member(std::uint32_t rank, const Program& program) {
  return std::make_unique<MemberAgent>(this, rank, program, "cuda:" + std::to_string(rank));
}

std::unique_ptr<worker::Agent> Hub::Alone(const std::string& device) {
  return std::make_unique<MemberAgent>(nullptr, 0, Program{}, device);
}

void Hub::Ready(std::uint32_t rank, std::uint32_t batch) {
  const std::size_t size = queues_.size();
  Push(rank, worker::GroupMessage{
                 .generation = 1,
                 .rank = rank,
                 .size = static_cast<std::uint32_t>(size),
                 .plan = {.version = 1, .batch_sizes = std::vector<std::uint32_t>(size, batch)},
                 .nodes = std::vector<std::uint32_t>(size, 0),
                 .transport = transport_});
}

void Hub::Endpoint(std::uint32_t rank, const std::string& endpoint) {
  std::vector<std::string> all;
  {
    const std::lock_guard lock(mutex_);
    endpoints_.resize(queues_.size());
    endpoints_[rank] = endpoint;
    if (std::ranges::any_of(endpoints_, &std::string::empty)) return;
    all = endpoints_;
  }
  for (std::uint32_t to = 0; to < all.size(); ++to) {
    Push(to, worker::PeersMessage{.generation = 1, .endpoints = all});
  }
}

void Hub::Push(std::uint32_t rank, worker::ToWorker message) {
  const std::lock_guard lock(mutex_);
  queues_[rank].push_back(std::move(message));
  changed_.notify_all();
}

}  // namespace tactus::sdk
