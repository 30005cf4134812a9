// The shell around the coordinator's core: hands it events with the time, and carries out its
// actions.

#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/job/actions.h"
#include "coordinator/job/cluster.h"
#include "coordinator/service/action_queue.h"
#include "coordinator/service/agent_sessions.h"
#include "coordinator/service/job_watchers.h"
#include "coordinator/store/store.h"
#include "coordinator/tape/tape_recorder.h"
#include "coordinator/telemetry/job_telemetry.h"
#include "runtime/control_thread.h"
#include "runtime/metrics.h"
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
  std::string request_id = {};  // empty: none
};

// Owns the core, the sessions and the watchers, all on the control thread; the store is touched on
// the storage thread alone. What users see of a job is what was published, which is durable.
//
// The methods from CreateJob to JobRuns may be called from any thread; their answers come on the
// control or the storage thread.
class CoreRunner {
 public:
  // All outlive the runner; both threads are stopped before it is destroyed.
  struct Surroundings {
    runtime::ControlThread& control;
    runtime::ControlThread& storage;
    store::Store& store;
    runtime::CoordinatorMetrics& metrics;
    tape::TapeRecorder::Options tape{};
  };

  explicit CoreRunner(const Surroundings& surroundings);
  ~CoreRunner();

  // Takes up the unfinished jobs of the store and starts the timers. Called once, first, from main.
  absl::Status Start();

  // Ends all streams with `status`; calls that come later are still answered.
  void CloseStreams(const absl::Status& status);

  // Writes what waits to be written and stops the timers. Called last, from main.
  void Stop();

  // The job is durable when the answer comes. The same request id again answers with the first job.
  // Errors: as store::Store::Write.
  void CreateJob(NewJob job, Answer<job::JobRecord> answer);
  // Errors of these and the following: NotFound; as the store has them.
  void FindJob(const std::string& id, Answer<job::JobRecord> answer);
  void ListJobs(int page_size, const std::string& page_token,
                Answer<store::Page<job::JobRecord>> answer);
  void ListRounds(const std::string& id, int page_size, const std::string& page_token,
                  Answer<store::Page<job::RoundRecord>> answer);
  void ListDecisions(const std::string& id, int page_size, const std::string& page_token,
                     Answer<store::Page<job::DecisionRecord>> answer);
  // Answers with the job as it is once the cancel is dealt with; a job that is over stays as it is.
  void CancelJob(const std::string& id, bool discard, Answer<job::JobRecord> answer);
  // The watcher gets the job as it is, then its events, then its end.
  void Watch(const std::string& id, const std::shared_ptr<JobWatcher>& watcher);
  void Unwatch(const std::shared_ptr<JobWatcher>& watcher);
  void ListNodes(Answer<std::vector<v1::Node>> answer);
  // Answers once the core has dealt with the file. Errors: NotFound, no such job that is not over.
  void ReportArtifact(const std::string& id, const job::ArtifactRecord& artifact,
                      Answer<job::JobRecord> answer);
  // Errors: NotFound, no such job that is not over.
  void FindUnfinished(const std::string& id, Answer<job::JobRecord> answer);

  // On the control thread only.
  AgentSessions& sessions() { return sessions_; }
  runtime::ControlThread& control() { return around_.control; }

 private:
  using Answers = std::vector<Answer<job::JobRecord>>;

  void Handle(const job::Event& event, std::function<void()> done);
  void Perform(const job::Action& action);
  void On(const job::PublishJob& action);
  void On(const job::PublishProgress& action);
  void On(const job::PublishDecision& action);
  void Write(store::WriteBatch batch);
  void OnWritten(const absl::Status& status);
  void Restore(std::vector<job::JobRecord> unfinished);
  void RepeatFlush();
  void RepeatBeat();

  void Submit(NewJob job, Answer<job::JobRecord> answer);
  absl::StatusOr<job::JobRecord> WriteNew(NewJob job);
  void OnSubmitted(const absl::StatusOr<job::JobRecord>& stored, bool fresh, Answers answers);
  const job::JobRecord* Visible(const std::string& id) const;
  void FindStored(const std::string& id, Answer<job::JobRecord> answer);

  const Surroundings around_;
  const job::WallTime wall_offset_;
  job::Cluster cluster_;
  tape::TapeRecorder tape_;
  telemetry::JobTelemetry telemetry_;
  ActionQueue queue_;
  AgentSessions sessions_;
  JobWatchers watchers_;
  // As last published, while not over. Equal to what the store has, but for progress.
  std::map<JobId, job::JobRecord> visible_;
  std::map<std::string, Answers>
      in_creation_;          // by request id: who waits for the first one's answer
  std::string write_error_;  // empty: the last write succeeded
  std::optional<runtime::Timer> wake_, flush_, beat_;

  std::uint64_t last_job_ = 0;  // number of the last job made; storage thread
};

}  // namespace tactus::service
