#include "tests/coordinator/job/transcript.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <type_traits>
#include <variant>
#include <vector>

#include "coordinator/job/wording.h"
#include "policies/axis_policy.h"
#include "tests/coordinator/job/rig.h"

namespace tactus::job {
namespace {

std::string Number(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.4g", value);
  return text;
}

std::string Quote(const std::string& text) { return "\"" + text + "\""; }

std::string Worker(WorkerId worker) { return "worker " + std::to_string(worker.value); }

template <typename Items>
std::string List(const Items& items) {
  std::string text;
  for (const auto& item : items) {
    if (!text.empty()) text += " ";
    if constexpr (std::is_arithmetic_v<std::decay_t<decltype(item)>>) {
      text += std::to_string(item);
    } else if constexpr (std::is_same_v<std::decay_t<decltype(item)>, WorkerId>) {
      text += std::to_string(item.value);
    } else if constexpr (std::is_same_v<std::decay_t<decltype(item)>, DeviceRecord>) {
      text += item.name;
    } else {
      text += item;
    }
  }
  return "[" + text + "]";
}

const char* StateName(JobState state) {
  static const char* const kNames[] = {"QUEUED", "STARTING",  "RUNNING",    "STOPPING", "SUCCEEDED",
                                       "FAILED", "CANCELLED", "SUSPENDING", "PAUSED"};
  return kNames[static_cast<int>(state)];
}

std::string Describe(const policies::Plan& plan) {
  return "plan " + std::to_string(plan.version) + " " + List(plan.batch_sizes) + " " +
         Quote(plan.reason);
}

std::string Describe(const Progress& progress) {
  std::string text =
      "rounds=" + std::to_string(progress.rounds) + " epoch=" + std::to_string(progress.epoch) +
      "+" + std::to_string(progress.epoch_consumed) + "/" + std::to_string(progress.epoch_samples) +
      " samples=" + std::to_string(progress.samples) + " loss=" + Number(progress.loss) +
      " rate=" + Number(progress.samples_per_second) +
      " elapsed=" + Number(progress.elapsed_seconds) +
      " eta=" + (progress.eta_seconds ? Number(*progress.eta_seconds) : "-") +
      " plan=" + std::to_string(progress.plan.version);
  for (const WorkerProgress& worker : progress.workers) {
    text += " {" + std::to_string(worker.batch_size) + " n=" + std::to_string(worker.samples) +
            " v=" + Number(worker.samples_per_second) + " idle=" + Number(worker.idle_ratio) + "}";
  }
  return text;
}

std::string Describe(const ResultRecord& result) {
  std::string text = "result";
  for (const ArtifactRecord& artifact : result.artifacts) {
    text += " " + artifact.path + ":" + std::to_string(artifact.size_bytes);
  }
  return text + " validation=" + Number(result.validation_loss) + "/" +
         Number(result.validation_accuracy) + "/" + std::to_string(result.validation_samples) +
         " train=" + Number(result.train_loss) + " rounds=" + std::to_string(result.rounds) +
         " samples=" + std::to_string(result.samples) + " epochs=" + std::to_string(result.epochs) +
         " seconds=" + Number(result.train_seconds) + " stop=" + Quote(result.stop_reason) +
         " utilisation=" + Number(result.utilisation);
}

std::string Describe(const JobRecord& record) {
  std::string text = record.name + " r" + std::to_string(record.revision) + " " +
                     StateName(record.state) + " " + Quote(record.state_reason);
  if (!record.error_field.empty()) text += " field=" + record.error_field;
  if (record.generation > 0) text += " generation=" + std::to_string(record.generation);
  for (const MemberRecord& member : record.members) {
    text += " " + std::to_string(member.worker.value) + "@" + member.node + "/" + member.device;
  }
  if (record.result) text += " " + Describe(*record.result);
  return text;
}

// ---- Messages

std::string Say(const ReadyMessage& message) {
  return "ready " + std::to_string(message.parameters) + "/" +
         std::to_string(message.train_samples) + "/" + std::to_string(message.validation_samples);
}
std::string Say(const EndpointMessage& message) {
  return "endpoint " + std::to_string(message.generation) + " " + message.endpoint;
}
std::string Say(const ReportMessage& message) {
  const policies::Report& report = message.report;
  return "report round=" + std::to_string(report.round) +
         " plan=" + std::to_string(report.plan_version) + " n=" + std::to_string(report.samples) +
         " compute=" + Number(report.compute_seconds) +
         " blocked=" + Number(report.blocked_seconds);
}
std::string Say(const EvaluatedMessage& message) {
  return "evaluated " + Number(message.loss) + " over " + std::to_string(message.samples);
}
std::string Say(const ValidatedMessage& message) {
  return "validated " + Number(message.loss) + " after " + std::to_string(message.rounds);
}
std::string Say(const CheckpointedMessage& message) {
  return "checkpointed " + message.file + " after " + std::to_string(message.rounds);
}
std::string Say(const FinishedMessage& message) {
  return "finished " + Quote(message.reason) + " files=" + List(message.files) +
         (message.suspended ? " suspended" : "");
}
std::string Say(const FailedMessage& message) {
  return "failed " + message.field + " " + Quote(message.message) +
         " lost_generation=" + std::to_string(message.lost_generation);
}
std::string Say(const GroupLostMessage& message) {
  return (message.planned ? "left group " : "lost group ") + std::to_string(message.generation) +
         " after " + std::to_string(message.rounds) + ": " + Quote(message.reason);
}
std::string Say(const DifferedMessage& message) {
  return "differed after " + std::to_string(message.rounds) + ": " + List(message.wrong) +
         (message.majority ? "" : ", no majority");
}
std::string Say(const SelectedMessage& message) {
  return "selected " + std::to_string(message.number) + " after " + std::to_string(message.rounds) +
         ": " + message.facts;
}
std::string Say(const StandingMessage& message) {
  return "stands after " + std::to_string(message.batches) + " batches" +
         (message.waits ? " and waits for " + List(message.awaits) : "") +
         (message.stopped ? ", stopped" : "");
}
std::string Say(const GroupMessage& message) {
  return "group " + std::to_string(message.generation) + " rank " + std::to_string(message.rank) +
         "/" + std::to_string(message.size) + " " + Describe(message.plan);
}
std::string Say(const PeersMessage& message) {
  return "peers " + std::to_string(message.generation) + " " + List(message.endpoints);
}
std::string Say(const policies::Plan& plan) { return Describe(plan); }
std::string Say(const StopMessage& message) {
  return "stop " + Quote(message.reason) + (message.discard ? " discard" : "") +
         (message.regroup   ? " regroup"
          : message.suspend ? " suspend"
                            : "");
}

// ---- Events

std::string Say(const JobSubmitted& event) { return "submitted " + event.record.name; }
std::string Say(const JobCancelled& event) {
  return "cancel job " + std::to_string(event.job.value) + " " + Quote(event.reason) +
         (event.discard ? " discard" : "");
}
std::string Say(const NodeJoined& event) {
  return "node " + event.node + " joined " + List(event.devices) + " running " +
         List(event.running_workers) + (event.same_incarnation ? " same incarnation" : "");
}
std::string Say(const NodeUnreachable& event) {
  return "node " + event.node + " not heard: " + event.reason;
}
std::string Say(const NodeLost& event) { return "node " + event.node + " lost: " + event.reason; }
std::string Say(const NodeLeaving& event) {
  return "node " + event.node + " is leaving within " + Number(ToSeconds(event.leave.within)) +
         " s: " + event.leave.reason;
}
std::string Say(const WorkerSaid& event) {
  return Worker(event.worker) + ": " +
         std::visit([](const auto& message) { return Say(message); }, event.message);
}
std::string Say(const WorkerExited& event) {
  return Worker(event.worker) + " exited code=" + std::to_string(event.exit_code) +
         " signal=" + std::to_string(event.signal) + " log=" + Quote(LastLine(event.log_tail));
}
std::string Say(const ArtifactComing& event) {
  return "a file comes to job " + std::to_string(event.job.value);
}
std::string Say(const ArtifactStored& event) {
  return "stored " + event.artifact.path + " of job " + std::to_string(event.job.value);
}
std::string Say(const Ticked&) { return "tick"; }
std::string Say(const JobUpdated& event) {
  return "job " + std::to_string(event.job.value) +
         " updated priority=" + std::to_string(event.settings.priority) +
         (event.needs_restart ? " with a restart" : "");
}
std::string Say(const DecisionReverted& event) {
  return "decision " + policies::IdOf({event.decision.plan_version, event.decision.axis}) +
         " of job " + std::to_string(event.job.value) + " reverted by its user";
}
std::string Say(const JobPaused& event) {
  return "job " + std::to_string(event.job.value) + " paused by its user";
}
std::string Say(const JobResumed& event) {
  return "job " + std::to_string(event.job.value) + " resumed by its user";
}
std::string Describe(const NodeRecord& node) {
  return "node " + node.name + (node.cordoned ? " cordoned" : "") +
         (node.draining ? " draining" : "");
}
std::string Say(const DeviceFaultsChanged& event) {
  std::string text = "node " + event.node + " faults:";
  for (const auto& [device, reason] : event.faults) text += " " + device + " " + Quote(reason);
  return text;
}
std::string Say(const NodeMarked& event) { return Describe(event.node) + " by a user"; }
std::string Say(const NodeDeleted& event) { return "node " + event.node + " deleted by a user"; }
std::string Say(const LinkProbed& event) {
  return "from " + event.from + " to " + event.to + " " + Number(event.bytes_per_second) +
         " bytes/s";
}

// ---- Actions

std::string Say(const PersistJob& action) { return "persist " + Describe(action.record); }
std::string Say(const PersistNode& action) { return "persist " + Describe(action.node); }
std::string Say(const PublishJob& action) {
  return "publish " + action.record.name + " r" + std::to_string(action.record.revision);
}
std::string Say(const PersistRound& action) {
  const RoundRecord& round = action.round;
  return "round " + std::to_string(round.round) + " epoch=" + std::to_string(round.epoch) +
         " samples=" + std::to_string(round.samples) + " " + List(round.worker_samples) +
         " loss=" + Number(round.loss) + " seconds=" + Number(round.seconds) +
         " plan=" + std::to_string(round.plan_version);
}
std::string Say(const ForgetRounds& action) {
  return "forget rounds from " + std::to_string(action.from);
}
std::string Say(const PersistValidation& action) {
  return "keep the validation after " + std::to_string(action.validation.rounds);
}
std::string Say(const PersistDecision& action) {
  const policies::Decision& decision = action.decision;
  return "record " + std::string(policies::NameOf(decision.axis)) + " of plan " +
         std::to_string(decision.plan_version) + ": " + Quote(decision.from) + " -> " +
         Quote(decision.to) + " because " + Quote(decision.reason);
}
std::string Say(const PersistMemory& action) {
  return action.memory.memory.empty() ? "forget what the planner learned"
                                      : "keep what the planner learned";
}
std::string Say(const PersistPrior& action) {
  return (action.prior.prior.empty() ? "forget" : "keep") + std::string(" the prior of ") +
         action.prior.key;
}
std::string Say(const PublishRelearning& action) { return "learn anew: " + action.reason; }
std::string Say(const StartWorker& action) {
  return "start " + Worker(action.worker) + " on " + action.node + "/" + action.device + " for " +
         action.job_name + " spec=" + Quote(action.spec) +
         (action.checkpoint.empty() ? "" : " checkpoint=" + action.checkpoint);
}
std::string Say(const SendToWorker& action) {
  return "to " + Worker(action.worker) + " on " + action.node + ": " +
         std::visit([](const auto& message) { return Say(message); }, action.message);
}
std::string Say(const StopWorker& action) {
  return "end " + Worker(action.worker) + " on " + action.node + " within " +
         DurationWords(action.grace);
}
std::string Say(const LookAtWorker& action) {
  return "look at " + Worker(action.worker) + " on " + action.node;
}
std::string Say(const ProbeLink& action) {
  return "probe from " + action.from + " to " + action.to;
}
std::string Say(const PublishProgress& action) { return "progress " + Describe(action.progress); }
std::string Say(const PublishSnapshot& action) { return "snapshot " + action.snapshot.path; }
std::string Say(const PublishDecision& action) { return "decision " + Describe(action.plan); }
std::string Say(const WakeAt& action) {
  return "wake at " + Number(ToSeconds(action.time.time_since_epoch()));
}

std::string GoldenPath(const std::string& name) {
  const char* source = std::getenv("TACTUS_SOURCE");
  const std::string here = __FILE__;  // <source>/tests/coordinator/job/transcript.cc
  const std::string root = source != nullptr ? source : here.substr(0, here.rfind("/tests/"));
  return root + "/tests/golden/coordinator/" + name + ".txt";
}

}  // namespace

std::string Describe(const Event& event) {
  return std::visit([](const auto& one) { return Say(one); }, event);
}

std::string Describe(const Action& action) {
  return std::visit([](const auto& one) { return Say(one); }, action);
}

Transcript::Transcript() : cluster_(std::make_unique<Cluster>(kWallOffset)) {}

void Transcript::Note(const std::string& text) { text_ += "\n# " + text + "\n"; }

Actions Transcript::Step(double seconds, const Event& event) {
  text_ += Number(seconds) + " s  " + Describe(event) + "\n";
  const Actions actions = cluster_->Step(event, At(seconds));
  Write(actions);
  return actions;
}

void Transcript::Restart(double seconds) {
  text_ += Number(seconds) + " s  the coordinator restarts\n";
  cluster_ = std::make_unique<Cluster>(kWallOffset);
  for (const auto& [key, prior] : priors_) cluster_->RestorePrior(prior);
  const std::map<JobId, JobRecord> store = store_;
  for (const auto& [id, record] : store) {
    if (IsFinal(record.state)) continue;
    cluster_->RestoreMemory(memories_[id]);
    Write(cluster_->Restore(record, At(seconds)));
  }
}

void Transcript::Write(const Actions& actions) {
  for (const Action& action : actions) {
    text_ += "    " + Describe(action) + "\n";
    if (const auto* persist = std::get_if<PersistJob>(&action)) {
      store_[persist->record.id] = persist->record;
    } else if (const auto* learned = std::get_if<PersistMemory>(&action)) {
      memories_[learned->memory.job] = learned->memory;
    } else if (const auto* found = std::get_if<PersistPrior>(&action)) {
      priors_[found->prior.key] = found->prior;
    }
  }
}

void Transcript::ExpectGolden(const std::string& name) const {
  const std::string path = GoldenPath(name);
  if (std::getenv("TACTUS_REWRITE_GOLDEN") != nullptr) {
    std::ofstream(path) << text_;
    return;
  }
  std::ifstream file(path);
  ASSERT_TRUE(file.good()) << path << " is not there";
  std::ostringstream golden;
  golden << file.rdbuf();
  EXPECT_EQ(text_, golden.str()) << "set TACTUS_REWRITE_GOLDEN and read the difference of " << path;
}

}  // namespace tactus::job
