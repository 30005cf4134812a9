// `tactus drain`.
#include <signal.h>

#include <algorithm>

#include "client/observe/event_loop.h"
#include "client/render/tables.h"
#include "client/text/text.h"
#include "client/verbs/answers.h"
#include "client/verbs/words.h"

namespace tactus::client {
namespace {

constexpr Duration kDrainPoll = Seconds(1);

bool IsFree(const v1::Node& node) {
  return std::ranges::all_of(node.devices(),
                             [](const v1::Device& device) { return device.job().empty(); });
}

class DrainVerb : public Verb {
 public:
  void Declare(CLI::App& program) override {
    CLI::App* verb =
        AddVerb(program, "drain",
                "Cordon a node and move its jobs away: each goes on elsewhere from a checkpoint");
    AddNode(verb, &name_);
    verb->add_flag("--wait", wait_, "Wait until no device of the node has a job");
    verb->add_option("--timeout", timeout_, "Of --wait, such as 10m. Default: for ever")
        ->check(DurationText());
  }
  ExitCode Run(const Means& means) override {
    const absl::StatusOr<v1::Node> node = means.client->DrainNode(name_);
    if (!node.ok() || !wait_) return SayState(node, means.screen);
    return AwaitDrained(*means.client, means.screen);
  }

 private:
  // Until no device of the node has a job.
  ExitCode AwaitDrained(api::Client& client, const Screen& screen) const {
    EventLoop loop({SIGINT, SIGTERM});
    const Duration timeout = GivenDuration(timeout_).value_or(EventLoop::kForever);
    Duration waited{};
    while (true) {
      const absl::StatusOr<v1::Node> node = client.GetNode(name_);
      if (!node.ok() || IsFree(*node)) return SayState(node, screen);
      if (waited >= timeout) {
        screen.Say("node " + Printable(ShortName(node->name())) + " is " + NodeStatus(*node) +
                   ", not yet drained");
        return ExitCode::kTimedOut;
      }
      const Duration step = std::min(kDrainPoll, timeout - waited);
      if (loop.RunUntil([] { return false; }, step) == EventLoop::Outcome::kInterrupted) {
        return ExitCode::kInterrupted;
      }
      waited += step;
    }
  }

  std::string name_;
  bool wait_ = false;
  std::string timeout_;
};

}  // namespace

std::unique_ptr<Verb> MakeDrain() { return std::make_unique<DrainVerb>(); }

}  // namespace tactus::client
