// The ways between nodes: asks two agents to measure one.

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/time.h"
#include "runtime/control_thread.h"
#include "tactus/agent/v1/session.pb.h"
#include "tactus/v1/nodes.pb.h"

namespace tactus::service {

// One link at a time: two measurements would share a switch, and mislead. Control thread.
class LinkInquiry {
 public:
  using Tell = std::function<void(const std::string& node, agent::v1::ToAgent message)>;
  using Done = std::function<void(const absl::StatusOr<v1::ProbeLinkResponse>& found)>;

  // How long the agents of both nodes may take together.
  static constexpr Duration kPatience = Seconds(15);

  // `control` outlives it.
  LinkInquiry(runtime::ControlThread& control, Tell tell)
      : tell_(std::move(tell)), timer_(control) {}

  // From node `from`, which sends, to node `to`. That nothing passes is an answer.
  // Errors: Unavailable with a time to try again, another link is being measured, or there are no
  // random bytes; DeadlineExceeded, an agent does not answer.
  void Ask(const std::string& from, const std::string& to, Done done);

  // Answers who waits, if anybody does: the coordinator ends.
  void GiveUp(const absl::Status& status);

  // What an agent says; dropped where it was not asked.
  void Hear(const std::string& node, const agent::v1::LinkProbed& said);

 private:
  struct Asked {
    std::uint64_t id = 0;
    std::string from{};
    std::string to{};
    std::string secret{};
    bool listens = false;  // `to` does, and `from` was told where
    Done done{};
  };
  void Answer(const absl::StatusOr<v1::ProbeLinkResponse>& found);
  void AnswerError(const std::string& node, const std::string& why);

  const Tell tell_;
  runtime::Timer timer_;
  std::optional<Asked> asked_;
  std::uint64_t last_id_ = 0;
};

}  // namespace tactus::service
