#include "coordinator/tape/replay.h"

#include <iterator>
#include <map>
#include <utility>
#include <variant>

#include "coordinator/job/cluster.h"
#include "coordinator/job/record_fields.h"
#include "coordinator/tape/tape_reader.h"

namespace tactus::tape {
namespace {

std::string Number(std::uint64_t value) { return std::to_string(value); }

// What tells one event from others of its kind.
std::string Details(const job::JobSubmitted& event) { return event.record.name; }
template <typename T>
requires requires(const T& event) { event.job.value; }
std::string Details(const T& event) { return "job " + Number(event.job.value); }
std::string Details(const job::NodeJoined& event) { return event.node; }
std::string Details(const job::NodeUnreachable& event) { return event.node; }
std::string Details(const job::NodeLost& event) { return event.node; }
std::string Details(const job::NodeLeaving& event) { return event.node; }
std::string Details(const job::WorkerSaid& event) {
  const std::string worker = "worker " + Number(event.worker.value) + ", ";
  if (const auto* message = std::get_if<job::ReportMessage>(&event.message)) {
    return worker + "report of round " + Number(message->report.round);
  }
  return worker +
         std::visit([]<typename T>(const T&) { return std::string(kKind<T>); }, event.message);
}
std::string Details(const job::WorkerExited& event) {
  return "worker " + Number(event.worker.value);
}
std::string Details(const job::ArtifactComing& event) {
  return "worker " + Number(event.worker.value);
}
std::string Details(const job::ArtifactStored& event) { return event.artifact.path; }
std::string Details(const job::NodeMarked& event) { return event.node.name; }
std::string Details(const job::NodeDeleted& event) { return event.node; }
std::string Details(const job::DeviceFaultsChanged& event) { return event.node; }
std::string Details(const job::LinkProbed& event) { return event.from + " to " + event.to; }
std::string Details(const job::Ticked&) { return ""; }

std::string Words(const job::Event& event) {
  return std::visit(
      []<typename T>(const T& one) {
        const std::string details = Details(one);
        return kKind<T> + (details.empty() ? "" : ", " + details);
      },
      event);
}

// Takes the frames in their order.
class Replayer {
 public:
  // False: there is nothing more to take, because of the end or a difference.
  bool Take(const Frame& frame) {
    return std::visit([this](const auto& one) { return On(one); }, frame);
  }

  bool started() const { return started_; }
  Replayed result() && { return std::move(replayed_); }

 private:
  bool On(const Header& header) {
    replayed_.header = header;
    cluster_.emplace(header.wall_offset);
    return true;
  }

  bool On(const Start& start) {
    started_ = true;
    start_ = start.time;
    replayed_.jobs = start.records.size();
    for (const job::NodeRecord& node : start.nodes) cluster_->RestoreNode(node);
    for (const job::MemoryRecord& memory : start.memories) cluster_->RestoreMemory(memory);
    for (const job::PriorRecord& prior : start.priors) cluster_->RestorePrior(prior);
    job::Actions found;
    for (const job::JobRecord& record : start.records) {
      job::Actions actions = cluster_->Restore(record, start.time);
      std::move(actions.begin(), actions.end(), std::back_inserter(found));
    }
    return Compare(start.actions, found, "start");
  }

  bool On(const Step& step) {
    ++replayed_.events;
    replayed_.length = step.time - start_;
    if (std::holds_alternative<job::JobSubmitted>(step.event)) ++replayed_.jobs;
    return Compare(step.actions, cluster_->Step(step.event, step.time), Words(step.event));
  }

  bool On(const End& end) {
    replayed_.end = end.reason;
    return false;
  }

  bool Compare(const job::Actions& expected, const job::Actions& found, const std::string& words) {
    if (auto difference = FirstDifference(expected, found)) {
      replayed_.difference = {.event = replayed_.events,
                              .time = replayed_.length,
                              .words = words,
                              .difference = *std::move(difference)};
      return false;
    }
    replayed_.actions += found.size();
    for (const job::Action& action : found) {
      if (const auto* persist = std::get_if<job::PersistRound>(&action)) Count(persist->round);
    }
    return true;
  }

  void Count(const job::RoundRecord& round) {
    ++replayed_.rounds;
    const auto [version, first] = versions_.try_emplace(round.job, round.plan_version);
    if (first || round.plan_version <= version->second) return;
    version->second = round.plan_version;
    ++replayed_.plans_adopted;
  }

  Replayed replayed_;
  bool started_ = false;
  Instant start_{};
  std::optional<job::Cluster> cluster_;      // empty before the header
  std::map<JobId, std::uint64_t> versions_;  // the plan of a job's last round
};

}  // namespace

absl::StatusOr<Replayed> Replay(const std::string& path, const ReplayOptions& options) {
  absl::StatusOr<TapeReader> tape = TapeReader::Open(path);
  if (!tape.ok()) return tape.status();
  Replayer replayer;
  while (true) {
    const absl::StatusOr<Frame> frame = tape->Next();
    const bool cut = absl::IsOutOfRange(frame.status());
    if (cut && options.allow_cut && replayer.started()) break;
    if (!frame.ok()) return frame.status();
    if (!replayer.Take(*frame)) break;
  }
  return std::move(replayer).result();
}

}  // namespace tactus::tape
