// The agent: what the coordinator asks of this node, done; what its workers say, passed on.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/daemon/array_process.h"
#include "agent/daemon/artifact_upload.h"
#include "agent/daemon/blob_cache.h"
#include "agent/daemon/channel_source.h"
#include "agent/daemon/checkpoint_uploads.h"
#include "agent/daemon/coordinator_link.h"
#include "agent/daemon/gpu_watch.h"
#include "agent/daemon/job_folders.h"
#include "agent/daemon/link_probe.h"
#include "agent/daemon/log_pieces.h"
#include "agent/daemon/memory_kills.h"
#include "agent/daemon/options.h"
#include "agent/daemon/result_uploads.h"
#include "agent/daemon/snapshot_uploads.h"
#include "agent/daemon/worker.h"
#include "agent/daemon/worker_box.h"
#include "agent/daemon/worker_references.h"
#include "base/id.h"
#include "base/time.h"
#include "cuda/nvml.h"
#include "identity/keeper.h"
#include "metrics/agent_metrics.h"
#include "runtime/control_thread.h"
#include "runtime/now.h"
#include "runtime/process.h"

namespace tactus::agent {

// Ties together the link, the workers, the files they need and the files they make. Decides nothing
// about training. Used on the control thread alone, but for Open.
class Agent {
 public:
  // Makes and locks the state folder, and a folder for sockets. `incarnation` is drawn at random by
  // the caller. `control` and `metrics` outlive the agent. From any thread. Errors: Unavailable,
  // another agent uses the state folder; else as runtime::MakeWritableFolder.
  static absl::StatusOr<std::unique_ptr<Agent>> Open(runtime::ControlThread& control,
                                                     metrics::AgentMetrics& metrics,
                                                     const AgentOptions& options,
                                                     std::uint64_t incarnation);

  // Ends workers that still run at once; their folder of sockets is removed.
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  // Dials the coordinator, and from now on keeps the certificate young, where there is one: another
  // one is shown by another connection. `refused`, where given, is called once when the coordinator
  // does not work with an agent of this version, and will not be dialled again: the agent is to be
  // stopped.
  void Start(std::function<void(const absl::Status& status)> refused = {});

  // Watches these GPUs from now on: metrics, and faults of the devices that are among them.
  void Watch(std::unique_ptr<cuda::GpuMonitor> gpus, const GpuWatch::Options& options = {});

  // A goodbye in time: `reason` and how long it may take. Of 255 bytes at most.
  struct Farewell {
    std::string reason{};
    Duration within{};
  };

  // Tells the coordinator that this node leaves, which lets jobs go on without these workers or
  // suspends them; while it is away the workers are asked to suspend their jobs. When they are gone
  // and all that they left is with the coordinator, or the time is over, stops as below. At once
  // where there is nothing to wait for. Once; nothing after Stop.
  void Leave(Farewell farewell, Duration grace, std::function<void()> done);

  // Ends the workers, kindly first, lets uploads finish as long as `grace`, says goodbye and calls
  // `done`, on the control thread; of a Leave that is under way, that one's is not. A second call
  // kills at once.
  void Stop(Duration grace, std::function<void()> done);

 private:
  // What was opened beforehand.
  struct Parts {
    runtime::LockFile lock;
    std::unique_ptr<WorkerBox> box{};
    std::shared_ptr<grpc::ChannelCredentials> credentials{};
  };
  Agent(runtime::ControlThread& control, metrics::AgentMetrics& metrics, AgentOptions options,
        std::uint64_t incarnation, Parts parts);

  // A worker that runs.
  struct Running {
    std::unique_ptr<Worker> worker{};
    std::string device{};  // as the agent offers it
    LogPieces output{};
    std::vector<std::uint64_t> pins{};                  // of the blobs that it reads
    MemoryKillFiles memory_kill_files{};                // its cgroup's, where it has one
    MemoryKills memory_kills{};                         // before it began
    std::optional<tactus::v1::FromWorker> evaluated{};  // what it said of that
  };
  // What a device was last slowed down by, and in how many readings it has not been since.
  struct Slowdown {
    std::string reason{};
    int readings_without = 0;
  };
  // A worker that waits for files.
  struct Preparing {
    Worker::Options options{};
    WorkerFolders folders{};
    bool gpu = false;
    std::string array{};  // of the jobs that it may share a process with; empty: none
    std::vector<std::uint64_t> pins{};
    std::size_t missing = 0;
    std::vector<tactus::v1::ToWorker> messages{};  // for it, in the meantime
  };

  void OnMessage(const tactus::agent::v1::ToAgent& message);
  void OnSetLogLevel(const std::string& level);
  void OnProbed(const tactus::agent::v1::LinkProbed& said);
  void OnStopWorker(const tactus::agent::v1::StopWorker& request);
  void OnExpelled();
  void OnLookAtWorker(const tactus::agent::v1::LookAtWorker& request);
  void StartWorker(const tactus::agent::v1::StartWorker& request);
  absl::Status TryStartWorker(const tactus::agent::v1::StartWorker& request);
  // Whether the node takes the job at all; what it refuses, it refuses for good.
  absl::Status Admit(const tactus::v1::Start& start) const;
  // Makes the job's folders and fills in what only the agent knows.
  absl::StatusOr<Preparing> Prepare(const tactus::agent::v1::StartWorker& request) const;
  // Where its program is and what it may reach. All that it reads is here.
  absl::Status EnterBox(Preparing& prepared) const;
  // The same of one that shares a process: that of its array on this device, or a new one.
  absl::Status EnterArray(Preparing& prepared);
  // Whether another worker may be started; it is of an array, or has a process of its own.
  absl::Status CheckCount(bool of_array) const;
  // Fetches the files that it names by their hashes.
  void FetchFor(WorkerId id, const std::vector<BlobReference>& references);
  void OnFetched(WorkerId id, const BlobReference& reference,
                 const absl::StatusOr<std::string>& path);
  absl::Status Launch(Preparing prepared);
  void GiveUpPreparing(WorkerId id);  // as if SIGTERM had ended it
  void FailStart(WorkerId id, const std::string& job, const absl::Status& status);
  void SayFailed(WorkerId worker, const std::string& field, const std::string& reason,
                 bool transient = true);
  // Ends what workers left outside of their groups, and looks again while any is to be collected.
  void CollectOrphans();
  void CompleteHello(tactus::agent::v1::Hello& hello) const;
  // These devices are at fault, and no others: says so where it is news. Reasons by device.
  void SetFaults(std::map<std::string, std::string> faults);
  void OnReadings(const std::vector<cuda::GpuReading>& readings);
  void NoteSlowdown(const std::string& device, const std::string& reason);
  // Empty: none is known.
  std::string SlowdownOf(const std::string& device) const;
  // Of the workers that run, or wait for files.
  std::set<std::string> JobsHere() const;
  // Removes what nothing was done with for long, now and every hour.
  void Sweep();
  void OnWrote(WorkerId worker, std::string_view output);
  void FlushOutput();
  void SendOutput(const Worker& worker, std::vector<LogPieces::Piece> pieces);
  bool OnSaid(WorkerId worker, tactus::v1::FromWorker message);
  void OnExited(WorkerId worker, WorkerExit exit);
  bool SendWord(WorkerId worker, const tactus::v1::FromWorker& message);
  bool SayFinished(WorkerId worker, const tactus::v1::FromWorker& message);
  // What a former agent's workers had said last, and that they are gone.
  void SayInherited();
  void KeepCheckpoint(WorkerId worker, const tactus::v1::Checkpointed& message);
  void KeepSnapshot(WorkerId worker, const tactus::v1::Snapshotted& message);
  void OnCheckpointUploaded(WorkerId worker, std::optional<tactus::v1::Checkpointed> message);
  // Says in the worker's name that its result did not arrive.
  void FailWorker(WorkerId worker, const std::string& reason);
  void SendExit(WorkerId worker, const WorkerExit& exit);
  tactus::agent::v1::Leaving LeavingNow() const;
  void SuspendWorkers();
  // Nothing of any worker is still to be awaited.
  bool Settled() const;
  void OnBroughtUp();  // a file, or something that was said
  void EndIfDone();
  void KeepCertificate();
  void ShowNewCertificate();

  runtime::ControlThread& control_;
  metrics::AgentMetrics& metrics_;
  const AgentOptions options_;
  const runtime::LockFile lock_;
  const std::unique_ptr<WorkerBox> box_;
  const ChannelSource channel_;  // of link, uploader and cache
  BlobCache blobs_;
  JobFolders job_folders_;
  std::map<WorkerId, Preparing> preparing_;
  std::map<WorkerId, Running> workers_;
  // By array and device; those of which no job runs any more are gone.
  std::map<std::pair<std::string, std::string>, std::weak_ptr<ArrayProcess>> arrays_;
  ArtifactUploader uploader_;
  CheckpointUploads checkpoints_;
  SnapshotUploads snapshots_;
  ResultUploads results_;
  CoordinatorLink link_;
  std::map<std::string, std::string> faults_;  // of devices, as SetFaults has them
  std::map<std::string, Slowdown> slowdowns_;  // of devices
  struct Leaving {
    std::string reason{};
    Instant end{};
    std::function<void()> stop{};
  };
  std::optional<Leaving> leaving_;  // from Leave on
  runtime::Timer leave_timer_;
  bool stopping_ = false;
  bool closing_ = false;  // the link is on its way out
  runtime::Timer stop_timer_;
  runtime::Timer output_timer_;
  bool output_due_ = false;  // the timer runs
  // What is old is told by the time of day at the start and what has passed since: a clock that is
  // set ahead removes nothing.
  const std::int64_t began_wall_ = runtime::WallNow();
  const Instant began_ = runtime::Now();
  runtime::Timer sweep_timer_;
  runtime::Timer orphan_timer_;
  std::function<void(const absl::Status& status)> refused_;
  std::function<void()> stopped_;
  std::unique_ptr<GpuWatch> gpu_watch_;  // null: none is watched
  const Lifetime lifetime_;
  std::unique_ptr<identity::Keeper> keeper_;  // null: there is no TLS, or not yet
  LinkProbes probes_{
      options_.address, [this](tactus::agent::v1::LinkProbed said) {
        control_.Post(lifetime_.Guard([this, said = std::move(said)] { OnProbed(said); }));
      }};  // last: its thread uses the others
};

}  // namespace tactus::agent
