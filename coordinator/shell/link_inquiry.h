// The ways between nodes: asks two agents to measure one.

#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/time.h"
#include "runtime/control_thread.h"
#include "tactus/agent/v1/session.pb.h"
#include "tactus/v1/nodes.pb.h"

namespace tactus::service {

// A user's link by itself: two measurements would share a switch, and mislead. Those of a group
// that forms side by side, as its exchange will be, but a node's one by one. Control thread.
class LinkInquiry {
 public:
  using Tell = std::function<void(const std::string& node, agent::v1::ToAgent message)>;
  using Done = std::function<void(const absl::StatusOr<v1::ProbeLinkResponse>& found)>;

  // How long the agents of both nodes may take together.
  static constexpr Duration kPatience = Seconds(15);

  // `control` outlives it.
  LinkInquiry(runtime::ControlThread& control, Tell tell)
      : control_(control), tell_(std::move(tell)) {}

  // From node `from`, which sends, to node `to`. That nothing passes is an answer.
  // Errors: Unavailable with a time to try again, another link is being measured, or there are no
  // random bytes; DeadlineExceeded, an agent does not answer.
  void Ask(const std::string& from, const std::string& to, Done done);

  // The same as soon as neither node takes part in another measurement.
  void AskInTurn(const std::string& from, const std::string& to, Done done);

  // Answers who waits, if anybody does: the coordinator ends.
  void GiveUp(const absl::Status& status);

  // What an agent says; dropped where it was not asked.
  void Hear(const std::string& node, const agent::v1::LinkProbed& said);

 private:
  struct Question {
    std::string from{};
    std::string to{};
    Done done{};
    bool alone = false;  // no other is to be measured beside it
  };
  struct Asked {
    Question question{};
    std::string secret{};
    bool listens = false;  // `to` does, and `from` was told where
    std::unique_ptr<runtime::Timer> patience{};

    const std::string& turn() const { return listens ? question.from : question.to; }
  };
  void Begin(Question question);
  void BeginWaiting();
  bool Busy(const std::string& node) const;
  void Answer(std::uint64_t id, const absl::StatusOr<v1::ProbeLinkResponse>& found);
  void AnswerError(std::uint64_t id, const std::string& node, const std::string& why);

  runtime::ControlThread& control_;
  const Tell tell_;
  std::map<std::uint64_t, Asked> asked_;  // by number
  std::deque<Question> waiting_;
  std::uint64_t last_id_ = 0;
};

}  // namespace tactus::service
