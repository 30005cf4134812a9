// The shell around the coordinator's core: hands it events with the time, and carries out its
// actions.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/delivery/action_queue.h"
#include "coordinator/job/actions.h"
#include "coordinator/job/cluster.h"
#include "coordinator/shell/agent_sessions.h"
#include "coordinator/shell/change_waiters.h"
#include "coordinator/shell/event_history.h"
#include "coordinator/shell/job_conversion.h"
#include "coordinator/shell/job_watchers.h"
#include "coordinator/shell/link_inquiry.h"
#include "coordinator/shell/request_index.h"
#include "coordinator/store/job_numbers.h"
#include "coordinator/store/store.h"
#include "coordinator/tape/tape_recorder.h"
#include "coordinator/telemetry/awaited_nodes.h"
#include "coordinator/telemetry/job_telemetry.h"
#include "metrics/coordinator_metrics.h"
#include "runtime/control_thread.h"
#include "tactus/v1/jobs.pb.h"
#include "tactus/v1/nodes.pb.h"

namespace tactus::service {

// What answers a question, once.
template <typename T>
using Answer = std::function<void(absl::StatusOr<T>)>;

// A job as a user submits it, checked.
struct NewJob {
  job::JobSettings settings;
  std::string spec;  // serialized v1::JobSpec
  std::map<std::string, std::string> labels = {};
  std::string request_id = {};       // empty: none
  std::string from = {};             // id of the job that it begins from; empty: none
  job::CheckpointRecord start = {};  // of that job
  std::string owner = {};            // as JobRecord has it
};

// Which rounds of a job.
struct RoundQuery {
  std::string id = {};
  int page_size = 1000;
  std::string page_token = {};
  int points_max = 0;             // above 0: one page of so many at most, evenly spread
  std::uint64_t first_round = 0;  // those before are left out
};
struct RoundPage {
  store::Page<job::RoundRecord> rounds = {};
  std::vector<job::GroupRecord> groups = {};  // who applied them, as far as that is kept
};

// Which decisions of a job.
struct DecisionQuery {
  std::string id = {};
  int page_size = 1000;
  std::string page_token = {};
  int newest = 0;  // above 0: one page, of the newest so many
};

// What is to be said of a node; see v1::Nodes.
enum class NodeMarking { kCordon, kDrain, kUncordon };

struct NodePage {
  std::vector<v1::Node> nodes;  // by name
  std::string next = {};        // empty: the last page
};

// Owns the core, the sessions and the watchers, all on the control thread; the store is touched on
// the storage thread alone. What users see of a job is what was published, which is durable.
//
// The methods from CreateJob to JobRuns may be called from any thread; their answers come on the
// control or the storage thread. Those that change something are refused while the store fails
// (Unavailable, STORE_UNAVAILABLE); else what they did is durable when the answer comes.
class CoreRunner {
 public:
  // Jobs that are not over, at most.
  static constexpr std::size_t kUnfinishedMax = 100'000;

  // All outlive the runner; the threads are stopped before it is destroyed.
  struct Surroundings {
    runtime::ControlThread& control;
    runtime::ControlThread& storage;
    runtime::ControlThread& tapes;  // its own: what a tape encodes would hold up the store's writes
    runtime::ControlThread& files;
    store::Store& store;
    metrics::CoordinatorMetrics& metrics;
    // Removes the files of a job that is no more; called on the files' thread.
    std::function<void(const std::string& job)> forget_files;
    // Is told of a job that is over, once that is durable; called on the control thread.
    std::function<void(const std::string& job)> job_over = [](const std::string&) {};
    tape::TapeRecorder::Options tape{};
    bool restored = false;                        // from a backup: see ServerOptions
    std::size_t unfinished_max = kUnfinishedMax;  // another in tests
    // What the members of a group are told that they prove; as MeshSecrets has it. Null: nothing.
    std::function<std::string(const std::string& job, std::uint64_t generation)> mesh_secret{};
  };

  explicit CoreRunner(const Surroundings& surroundings);
  ~CoreRunner();

  // Takes up the unfinished jobs of the store and starts the timers. Called once, first, from main.
  absl::Status Start();

  // Ends all streams with `status`, also those that come later, and answers the calls that wait for
  // a change; other calls that come later are still answered. Changes that are not durable after
  // `grace` are answered with `status`: a disk may be full for long.
  void Close(const absl::Status& status, Duration grace);

  // Writes what waits to be written and stops the timers. Called last, from main.
  void Stop();

  // The same request id again answers with the first job.
  // Errors: ResourceExhausted, kUnfinishedMax; as store::Store has them.
  void CreateJob(NewJob job, Answer<job::JobRecord> answer);

  // Errors of these and the following: NotFound; as the store has them.
  void FindJob(const std::string& id, Answer<job::JobRecord> answer);
  // The job once its etag is not `etag`, or after `patience` as it is. `call` names the caller.
  // Errors: ResourceExhausted, too many wait.
  struct ChangeWait {
    const void* call = nullptr;
    std::string id = {};
    std::string etag = {};
    Duration patience{};
  };
  void AwaitChange(const ChangeWait& wait, Answer<job::JobRecord> answer);
  // The caller left: it is not answered, if it was not yet.
  void LeaveWait(const void* call);
  // Errors: InvalidArgument with the field.
  void ListJobs(const store::JobQuery& query, Answer<store::Page<job::JobRecord>> answer);
  void ListRounds(const RoundQuery& query, Answer<RoundPage> answer);
  void ListValidations(const std::string& id, Answer<std::vector<job::ValidationRecord>> answer);
  void ListDecisions(const DecisionQuery& query, Answer<store::Page<job::DecisionRecord>> answer);

  // Answers with the job as it is once the change is dealt with.
  // Errors: InvalidArgument; Aborted, another etag; FailedPrecondition, it is over.
  void UpdateJob(const std::string& id, const v1::UpdateJobRequest& request,
                 Answer<job::JobRecord> answer);
  // A job that is over stays as it is. The job of `event` is filled in.
  void CancelJob(const std::string& id, job::JobCancelled event, Answer<job::JobRecord> answer);
  // Hands the core the event that `event` makes for the job.
  // Errors: FailedPrecondition, it is over or finishing.
  void ChangeJob(const std::string& id, std::function<job::Event(JobId)> event,
                 Answer<job::JobRecord> answer);
  // Which decision is to be taken back.
  struct RevertQuery {
    DecisionName decision{};
    std::string request_id{};  // empty: none
    bool validate_only = false;
  };
  struct Reverted {
    job::JobRecord job{};
    policies::Decision decision{};
  };
  // Answers with the job as it is, or would be, and the decision that goes.
  // Errors: NotFound, no such decision; FailedPrecondition, it cannot be taken back.
  void RevertDecision(const RevertQuery& query, Answer<Reverted> answer);
  // Errors: FailedPrecondition, it does not train or is not measured yet.
  void ValueDevices(const std::string& id, Answer<v1::DeviceValues> answer);
  // Answers with the job as it was. Errors: FailedPrecondition, it is not over, or has workers.
  void DeleteJob(const std::string& id, Answer<job::JobRecord> answer);

  // The watcher gets the job as it is, then its events, then its end; with a resume token the
  // events behind it instead of the job as it is.
  void Watch(const std::string& id, const std::string& resume_token,
             const std::shared_ptr<JobWatcher>& watcher);
  void Unwatch(const std::shared_ptr<JobWatcher>& watcher);

  // Nodes after the one named by the token. Errors: InvalidArgument, no token.
  void ListNodes(int page_size, const std::string& page_token, Answer<NodePage> answer);
  // Where the metrics of the connected agents are scraped, as Prometheus' HTTP service discovery
  // has it; see telemetry::ScrapeTargetsJson.
  void ListScrapeTargets(std::function<void(std::string json)> answer);
  // Errors: NotFound.
  void GetNode(const std::string& name, Answer<v1::Node> answer);
  void MarkNode(const std::string& name, NodeMarking marking, Answer<v1::Node> answer);
  // Errors: NotFound; FailedPrecondition, its agent is connected or expected, or a job has workers
  // there.
  void DeleteNode(const std::string& name, std::function<void(const absl::Status&)> answer);
  // Errors: NotFound; Unavailable, the agent is not connected.
  void SetAgentLogLevel(const std::string& node, const std::string& level,
                        std::function<void(const absl::Status&)> answer);

  // As LinkInquiry::Ask. Errors of that; NotFound; FailedPrecondition, an agent is not connected,
  // or a job has workers there and `while_training` is not set.
  struct LinkQuery {
    std::string from{};
    std::string to{};
    bool while_training = false;
  };
  void ProbeLink(const LinkQuery& query, Answer<v1::ProbeLinkResponse> answer);

  // A file of a job, on its way here and whole.
  struct Brought {
    std::string id{};
    job::ArtifactRecord artifact{};
    WorkerId worker{};  // whose it is; 0: not said
    // Whether whoever brings it may, who is asked with where its maker runs, which is empty where
    // the job has no such worker; null: whoever it is may. Any thread.
    std::function<absl::Status(const std::string& job, const std::string& maker_node)> allow{};
  };
  // Whether it is of use; the core is told that it comes. Errors: NotFound, no such job that is not
  // over; FailedPrecondition, another group has taken its worker's place; those of `allow`.
  void AdmitArtifact(const Brought& file, std::function<void(const absl::Status&)> answer);
  // Answers once what the core made of it is durable. Errors: AdmitArtifact's, as they are by now.
  void ReportArtifact(const Brought& file, std::function<void(const absl::Status&)> answer);

  // Whether a job with workers on the node reads the blob, or goes on from it. Errors: Unavailable,
  // the node's agent is not connected, and what runs there is not known.
  void FindNodesBlob(const std::string& node, const std::string& sha256, Answer<bool> answer);

  // On the control thread only.
  // Forgets what is kept in memory of jobs that are no more in the store, and ends who waits for
  // them or watches them.
  void Forget(const std::vector<store::GoneJob>& gone);
  // Says of jobs that were set aside that they were.
  void TellSetAside(const std::vector<store::SetAsideJob>& jobs) const;
  AgentSessions& sessions() { return sessions_; }
  runtime::ControlThread& control() { return around_.control; }
  // As users see it, while it is not over; null: no such job. Valid until the thread's next task.
  const job::JobRecord* Unfinished(const std::string& id) const { return Visible(id); }

 private:
  // Calls `done` when what came of it is carried out, or with why it was given up.
  using Done = std::function<void(const absl::Status& status)>;
  void Handle(const job::Event& event, Done done);
  void Perform(const job::Action& action);
  void On(const job::SendToWorker& action);
  void On(const job::ProbeLink& action);
  void On(const job::PublishJob& action);
  void On(const job::PublishProgress& action);
  void On(const job::PublishSnapshot& action);
  void On(const job::PublishDecision& action);
  void Publish(JobId job, v1::JobEvent event);
  void Write(const job::WriteBatch& batch);
  void OnWritten(const absl::Status& status);
  // With what the store has; when, and what the core answers, is filled in.
  void Restore(tape::Start start);
  void RepeatFlush();
  void RepeatBeat();
  void Bookmark();
  void PlanExpiry();

  // Errors: why users may change nothing now.
  absl::Status AdmitChange() const;
  void LookUp(NewJob job);
  void Submit(NewJob job, Answer<job::JobRecord> answer);
  job::JobRecord Named(NewJob job);
  absl::Status Apply(const job::JobRecord& record, const v1::UpdateJobRequest& request,
                     const Answer<job::JobRecord>& answer);
  template <typename T>
  void RefuseOver(const std::string& id, Answer<T> answer);
  void Revert(const RevertQuery& query, const policies::Decision& decision,
              const Answer<Reverted>& answer);
  void Tell(const std::string& id, const absl::Status& status,
            const Answer<job::JobRecord>& answer);
  absl::StatusOr<job::JobRecord> DeleteStored(const std::string& id);
  bool HasWorkers(const std::string& id) const;
  void ShowAndFollow(const job::JobRecord& record, const std::string& resume_token,
                     const std::shared_ptr<JobWatcher>& watcher);

  // Of a job that is not over; 0: there is none of this name.
  JobId IdOf(const std::string& name) const;
  // As last published, while not over; as the core has it, while not over. Null: neither.
  const job::JobRecord* Visible(const std::string& id) const;
  const job::JobRecord* Current(const std::string& id) const;
  absl::Status CheckArtifact(const Brought& file) const;
  void FindStored(const std::string& id, Answer<job::JobRecord> answer);

  std::set<std::string> NodeNames(const std::vector<NodeView>& views) const;
  v1::Node NodeFrom(const std::string& name, const NodeView* view) const;
  absl::StatusOr<v1::Node> FindNode(const std::string& name) const;
  // Errors: ProbeLink's.
  absl::Status CheckProbe(const std::string& node, bool while_training) const;
  // Errors: DeleteNode's.
  absl::Status CheckNodeGone(const std::string& name) const;

  const Surroundings around_;
  const job::WallTime wall_offset_;
  job::Cluster cluster_;
  tape::TapeRecorder tape_;
  telemetry::JobTelemetry telemetry_;
  telemetry::AwaitedNodes awaited_nodes_;
  delivery::ActionQueue queue_;
  AgentSessions sessions_;
  LinkInquiry links_{around_.control, [this](const std::string& node, agent::v1::ToAgent message) {
                       sessions_.Tell(node, std::move(message));
                     }};
  JobWatchers watchers_;
  EventHistory history_;
  ChangeWaiters waiters_;
  RequestIndex requests_;
  // As last published, while not over. Equal to what the store has, but for progress.
  std::map<JobId, job::JobRecord> visible_;
  std::size_t in_creation_ = 0;       // jobs handed to the core whose call is not answered
  std::uint64_t last_job_ = 0;        // id of the last job made
  store::JobNumbers numbers_;         // of the jobs' names
  std::map<std::string, JobId> ids_;  // by name, of those in visible_ and those in creation
  std::string write_error_;           // empty: the last write succeeded
  absl::Status closed_;               // what streams that come are ended with; ok: they are not
  std::size_t beat_part_ = 0;         // of the sessions, whose turn it is
  std::optional<runtime::Timer> wake_, flush_, beat_, expiry_, give_up_, return_;
};

// NotFound with the reason JOB_NOT_FOUND.
absl::Status NoSuchJob(const std::string& id);

}  // namespace tactus::service
