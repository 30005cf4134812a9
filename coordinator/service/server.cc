#include "coordinator/service/server.h"

#include <grpcpp/ext/channelz_service_plugin.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "coordinator/access/audit_log.h"
#include "coordinator/access/bounds.h"
#include "coordinator/access/enrolment.h"
#include "coordinator/access/gate.h"
#include "coordinator/files/blob_store.h"
#include "coordinator/files/disk_floor.h"
#include "coordinator/files/job_folder.h"
#include "coordinator/files/log_sink.h"
#include "coordinator/files/log_store.h"
#include "coordinator/files/state_folder.h"
#include "coordinator/files/store_copying.h"
#include "coordinator/files/transfer_slots.h"
#include "coordinator/files/upkeep.h"
#include "coordinator/files/upload_accounts.h"
#include "coordinator/page/page.h"
#include "coordinator/service/admin_service.h"
#include "coordinator/service/agent_service.h"
#include "coordinator/service/artifacts_service.h"
#include "coordinator/service/door.h"
#include "coordinator/service/enrolment_service.h"
#include "coordinator/service/intake.h"
#include "coordinator/service/jobs_service.h"
#include "coordinator/service/nodes_service.h"
#include "coordinator/service/open_blobs.h"
#include "coordinator/service/provenance_records.h"
#include "coordinator/service/serving.h"
#include "coordinator/shell/core_runner.h"
#include "coordinator/shell/mesh_secrets.h"
#include "coordinator/store/shared_store.h"
#include "identity/credentials.h"
#include "metrics/coordinator_metrics.h"
#include "runtime/control_thread.h"
#include "runtime/host_port.h"
#include "runtime/http_server.h"
#include "runtime/listener.h"
#include "runtime/logging.h"
#include "runtime/now.h"
#include "runtime/options.h"
#include "runtime/process.h"
#include "runtime/status.h"

namespace tactus::service {
namespace {

constexpr auto kShutdownGrace = std::chrono::milliseconds(1000);
// Sooner, so that what is given up is answered while there is still somebody to answer.
constexpr auto kAnswerGrace = std::chrono::milliseconds(400);
// A connection shows its certificate once: whoever renews it comes by another one soon. Calls that
// run stay on the old one.
constexpr int kConnectionAgeMs = 600'000;
constexpr Duration kLeaseMin = Seconds(1);
constexpr Duration kLeaseMax = std::chrono::minutes(10);
constexpr Duration kCertificateLifeMin = Seconds(30);
constexpr Duration kCertificateLifeMax = std::chrono::hours(24 * 90);
constexpr Duration kRetainJobsMin = std::chrono::hours(1);
constexpr std::uint64_t kAuditBytesMin = std::uint64_t{1} << 20;
constexpr std::uint64_t kApiBytesMin = std::uint64_t{16} << 20;
constexpr std::uint64_t kRetainBytesMin = std::uint64_t{16} << 20;
const char* NameOf(Transfer transfer) {
  switch (transfer) {
    case Transfer::kClientUpload:
      return "client_upload";
    case Transfer::kAgentUpload:
      return "agent_upload";
    case Transfer::kDownload:
      return "download";
  }
  return "";
}

// Null: nobody is asked who they are.
absl::StatusOr<std::unique_ptr<access::Gate>> OpenGate(const ServerOptions& options) {
  if (options.security.tls_dir.empty()) return nullptr;
  return access::Gate::Open({.tls_dir = options.security.tls_dir,
                             .policy_file = options.policy_file,
                             .shared_folder = options.store.empty() ? "" : options.files_folder(),
                             .look = options.look_at_rules});
}

// Whatever is wrong with a file that an option names, it is the option that is to be changed.
absl::Status OfOption(const absl::Status& status) {
  return absl::InvalidArgumentError(std::string(status.message()));
}

// What several coordinators of one store have.
absl::Status CheckSharing(const ServerOptions& options) {
  if (options.store.empty()) {
    for (const auto& [name, text] :
         {std::pair{"files-dir", &options.files_dir}, std::pair{"advertise", &options.advertise}}) {
      if (text->empty()) continue;
      return absl::InvalidArgumentError(std::string(name) +
                                        ": found without --store, whose coordinators it is for");
    }
    return absl::OkStatus();
  }
  const absl::Status store = store::SharedStoreOptions{.address = options.store}.Validate();
  if (!store.ok()) return absl::InvalidArgumentError("store: " + std::string(store.message()));
  if (options.lease < kLeaseMin || options.lease > kLeaseMax) {
    return absl::InvalidArgumentError(
        "lease: found " + runtime::FormatDuration(std::max(Duration(0), options.lease)) +
        ", allowed is 1s to 10m");
  }
  if (!options.advertise.empty() && !runtime::ParseHostPort(options.advertise)) {
    return absl::InvalidArgumentError("advertise: found \"" + options.advertise +
                                      "\", allowed is host:port");
  }
  return absl::OkStatus();
}

class ServerImpl final : public Server {
 public:
  // What was opened beforehand.
  struct Parts {
    runtime::LockFile lock;
    std::unique_ptr<store::Store> store;
    std::unique_ptr<BlobStore> blobs;
    std::unique_ptr<access::AuditLog> audit;
    std::unique_ptr<access::Enrolment> enrolment;            // null: it gives no certificates
    std::unique_ptr<access::Gate> gate;                      // null: nobody is asked who they are
    std::shared_ptr<grpc::ServerCredentials> credentials{};  // shared with gRPC
    MeshSecrets mesh_secrets;
  };

  ServerImpl(const ServerOptions& options, Parts parts)
      : options_(options),
        lock_(std::move(parts.lock)),
        audit_(std::move(parts.audit)),
        enrolment_(std::move(parts.enrolment)),
        gate_(std::move(parts.gate)),
        credentials_(std::move(parts.credentials)),
        mesh_secrets_(std::move(parts.mesh_secrets)),
        store_(std::move(parts.store)),
        blobs_(std::move(parts.blobs)) {
    metrics_.WatchFolder(options_.state_dir);
    metrics_.SetDiskFloor(floor_.floor_bytes());
    if (gate_ == nullptr) return;
    credentials_->SetAuthMetadataProcessor(
        gate_->MakeProcessor([this](const std::string& who, const std::string& certificate,
                                    const std::string& path, const absl::Status& status) {
          calls_door_.Refused(who, certificate, path, status);
        }));
  }

  ~ServerImpl() override { Shutdown(); }

  absl::Status Start() {
    absl::Status status = OpenHttp();
    if (status.ok()) status = core_.Start();
    control_.RunAndWait([this] {
      core_.sessions().SetNodesPerHost(options_.bounds.nodes_per_host);
      core_.sessions().SetTakeLog(
          [this](const std::string& node, const agent::v1::LogLines& lines) {
            log_sink_.Take(node, lines);
          });
    });
    blobs_->Start({.files = files_,
                   .leads = [this] { return store_->Leads(); },
                   .metrics = &metrics_});
    upkeep_.Start();
    backups_.Start();
    if (status.ok()) status = Serve();
    return status;
  }

  const std::string& address() const override { return listener_->address(); }
  const std::string& metrics_address() const override { return metrics_address_; }
  void Shutdown() override;

 private:
  absl::Status OpenHttp();
  absl::Status Serve();
  // Signs at once, while the certificate is that of the time; else at the first download.
  void Vouch(const std::string& job) const {
    provenance_.Make(job, [job](const absl::Status& made) {
      if (made.ok() || absl::IsNotFound(made)) return;
      runtime::Logger("files")->warn("provenance not on record job={} error={}", job,
                                     runtime::Quoted(std::string(made.message())));
    });
  }
  // Files' thread.
  void ForgetFiles(const std::string& job) {
    logs_.Forget(job);
    RemoveFolder(JobFolder(files_folder_, job));
  }

  const ServerOptions options_;
  std::string metrics_address_;
  bool stopped_ = false;
  const std::string files_folder_ = options_.files_folder();
  const runtime::LockFile lock_;
  const std::unique_ptr<access::AuditLog> audit_;
  const std::unique_ptr<access::Enrolment> enrolment_;
  const std::unique_ptr<access::Gate> gate_;
  const std::shared_ptr<grpc::ServerCredentials> credentials_;
  const MeshSecrets mesh_secrets_;
  const std::unique_ptr<store::Store> store_;
  metrics::CoordinatorMetrics metrics_{TACTUS_VERSION};
  const Door calls_door_{
      {.metrics = metrics_, .audit = *audit_, .gate = gate_.get(), .bounds = options_.bounds}};
  // Of the files' thread, and outliving it: what is posted to it late goes with it.
  const std::unique_ptr<BlobStore> blobs_;
  UploadAccounts accounts_{*blobs_,
                           {.path = files_folder_ + "/" + kUploadsName,
                            .bytes_max = options_.bounds.upload_bytes_per_user}};
  const DiskFloor floor_{files_folder_, options_.disk_floor};
  LogStore logs_{files_folder_ + "/jobs"};
  TransferSlots transfers_{options_.transfers, [this](Transfer transfer, std::size_t calls) {
                             metrics_.SetTransfers(NameOf(transfer), calls);
                           }};
  runtime::ControlThread control_;
  runtime::ControlThread storage_;
  runtime::ControlThread tapes_;
  runtime::ControlThread files_;
  runtime::ControlThread inspection_;
  runtime::ControlThread backup_thread_;
  const CopySlot copy_slot_ = std::make_shared<std::atomic<bool>>(false);
  CoreRunner core_{
      {.control = control_,
       .storage = storage_,
       .tapes = tapes_,
       .files = files_,
       .store = *store_,
       .metrics = metrics_,
       .forget_files = [this](const std::string& job) { ForgetFiles(job); },
       .job_over = [this](const std::string& job) { Vouch(job); },
       .tape = {.folder = options_.state_dir + "/tapes", .bytes_max = options_.tape_bytes},
       .restored = options_.restored,
       .unfinished_max = options_.unfinished_jobs,
       .mesh_secret =
           [this](const std::string& job, std::uint64_t generation) {
             return mesh_secrets_.SecretOf(job, generation);
           }}};
  LogSink log_sink_{{.find = [this](const std::string& id) { return core_.Unfinished(id); },
                     .files = files_,
                     .logs = logs_}};
  const ProvenanceRecords provenance_{{.core = core_,
                                       .files = files_,
                                       .state_folder = files_folder_,
                                       .tls_dir = options_.security.tls_dir}};
  const FileSurroundings file_surroundings_{.core = core_,
                                            .files = files_,
                                            .door = calls_door_,
                                            .state_folder = files_folder_,
                                            .blobs = *blobs_,
                                            .logs = logs_,
                                            .transfers = transfers_,
                                            .accounts = accounts_,
                                            .floor = floor_,
                                            .provenance = provenance_};
  const std::unique_ptr<grpc::Service> jobs_ = MakeJobsService(file_surroundings_);
  NodesService nodes_{core_, calls_door_};
  AgentService agents_{file_surroundings_};
  ArtifactsService artifacts_{file_surroundings_};
  AdminService admin_{{.core = core_,
                       .storage = storage_,
                       .files = files_,
                       .inspection = inspection_,
                       .store = *store_,
                       .blobs = *blobs_,
                       .door = calls_door_,
                       .state_folder = options_.state_dir,
                       .copy_slot = copy_slot_}};
  EnrolmentService enrolment_service_{
      {.enrolment = enrolment_.get(), .files = files_, .door = calls_door_}};
  Upkeep upkeep_{
      {.control = control_,
       .storage = storage_,
       .files = files_,
       .store = *store_,
       .blobs = *blobs_,
       .forget_files = [this](const std::string& job) { ForgetFiles(job); },
       .forget_jobs = [this](const std::vector<store::GoneJob>& gone) { core_.Forget(gone); },
       .tell_set_aside =
           [this](const std::vector<store::SetAsideJob>& jobs) { core_.TellSetAside(jobs); },
       .retention = {.age = options_.retain_jobs, .bytes = options_.retain_bytes},
       .intervals = options_.upkeep}};
  backup::Backups backups_{{.storage = storage_,
                            .files = files_,
                            .backups = backup_thread_,
                            .store = *store_,
                            .blobs = *blobs_,
                            .metrics = metrics_,
                            .copy_slot = copy_slot_,
                            .state_folder = files_folder_,
                            .options = options_.backup}};
  // gRPC's own listener is deaf for ever after one connection that it could not take.
  runtime::ControlThread door_;
  Intake intake_{LimitsOf(options_),
                 [this](std::uint64_t unsaid, const std::string& host, const std::string& why) {
                   metrics_.CountRefusal(access::NameOf(access::Bound::kConnections));
                   if (unsaid > 0) calls_door_.RefusedConnections(unsaid, host, why);
                 }};
  std::unique_ptr<runtime::Listener> listener_;  // null: not yet, as the next two
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> connections_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<runtime::HttpServer> http_;  // null: off; after what its handlers read
  std::optional<page::Page> page_;             // unset: off, or not yet
};

absl::Status ServerImpl::OpenHttp() {
  if (options_.metrics_listen == "off") return absl::OkStatus();
  auto server = runtime::HttpServer::Open({.address = options_.metrics_listen});
  if (!server.ok()) {
    return {server.status().code(), "metrics-listen: " + std::string(server.status().message())};
  }
  http_ = *std::move(server);
  metrics_address_ = http_->address();
  metrics::RouteMetrics(*http_, metrics_.registry());
  http_->RouteLater("/sd/agents",
                    [this](const runtime::HttpRequest&, const runtime::HttpServer::Reply& reply) {
                      core_.ListScrapeTargets([reply](std::string json) {
                        reply({.content_type = "application/json", .body = std::move(json)});
                      });
                    });
  return absl::OkStatus();
}

absl::Status ServerImpl::Serve() {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::channelz::experimental::InitChannelzService();
  grpc::ServerBuilder builder;
  SetLimits(builder, options_.api_bytes);
  auto listener = OpenListener(door_, options_);
  if (!listener.ok()) return listener.status();
  listener_ = *std::move(listener);
  connections_ = TakeConnections(builder, credentials_);
  if (gate_ != nullptr) {
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS, kConnectionAgeMs);
  }
  builder.RegisterService(jobs_.get());
  builder.RegisterService(&nodes_);
  builder.RegisterService(&agents_);
  builder.RegisterService(&artifacts_);
  builder.RegisterService(&admin_);
  builder.RegisterService(&enrolment_service_);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) return absl::InternalError("listen: the server cannot be started");
  SetServing(*server_, true);
  if (http_ != nullptr) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(kSendBytesMax);
    page_.emplace(*http_, server_->InProcessChannel(arguments));
    http_->Start();
  }
  door_.RunAndWait([this] {
    listener_->Start([this](boost::asio::ip::tcp::socket connection) {
      intake_.Take(std::move(connection), *connections_);
    });
  });
  return absl::OkStatus();
}

// Who looks first; then the server, with a deadline, while the control thread still answers; then
// the threads.
void ServerImpl::Shutdown() {
  if (std::exchange(stopped_, true)) return;
  if (http_ != nullptr) http_->Stop();
  if (listener_ != nullptr) door_.RunAndWait([this] { listener_->Stop(); });
  door_.Stop();
  if (server_ != nullptr) {
    SetServing(*server_, false);
    core_.Close(runtime::WithReason(absl::UnavailableError("coordinator: is stopping"),
                                    {.reason = "COORDINATOR_STOPPING"}),
                kAnswerGrace);
    files_.RunAndWait([this] { logs_.Close(); });
    blobs_->Stop();
    server_->Shutdown(std::chrono::system_clock::now() + kShutdownGrace);
    server_->Wait();
  }
  if (page_.has_value()) page_->Close();
  upkeep_.Stop();
  backups_.Stop();
  backup_thread_.Stop();
  inspection_.Stop();
  blobs_->Stop();  // where there was no server
  blobs_->Join();
  files_.Stop();
  core_.Stop();
  storage_.Stop();
  tapes_.Stop();
  control_.Stop();
}

}  // namespace

namespace {

absl::Status TooSmall(const char* option, std::uint64_t found, std::uint64_t least) {
  if (found >= least) return absl::OkStatus();
  return absl::InvalidArgumentError(std::string(option) + ": found " + std::to_string(found) +
                                    ", allowed is " + std::to_string(least) + " and more");
}

absl::Status CheckBounds(const ServerOptions& options) {
  const access::BoundsOptions& bounds = options.bounds;
  absl::Status status = TooSmall("connections-per-host", bounds.connections_per_host, 1);
  if (status.ok()) status = TooSmall("calls-per-user", bounds.calls_per_user, 1);
  if (status.ok()) status = TooSmall("nodes-per-host", bounds.nodes_per_host, 1);
  if (status.ok()) status = TooSmall("upload-bytes-per-user", bounds.upload_bytes_per_user, 1);
  if (status.ok()) status = TooSmall("audit-bytes", options.audit_bytes, kAuditBytesMin);
  if (status.ok()) status = TooSmall("api-memory", options.api_bytes, kApiBytesMin);
  return status;
}

}  // namespace

absl::Status ServerOptions::Validate() const {
  if (!runtime::ParseHostPort(listen)) {
    return absl::InvalidArgumentError("listen: found \"" + listen + "\", allowed is host:port");
  }
  absl::Status status = identity::CheckExposure("listen", listen, security);
  if (!status.ok()) return status;
  if (!policy_file.empty() && security.tls_dir.empty()) {
    return absl::InvalidArgumentError(
        "policy: found without --tls-dir; nobody has a role where nobody is asked who they are");
  }
  if (!authority_folder.empty() && security.tls_dir.empty()) {
    return absl::InvalidArgumentError(
        "ca-dir: found without --tls-dir, where this coordinator's own certificate is to be");
  }
  if (certificate_life < kCertificateLifeMin || certificate_life > kCertificateLifeMax) {
    return absl::InvalidArgumentError("certificate-life: found " +
                                      runtime::FormatDuration(certificate_life) +
                                      ", allowed are 30s to 90d");
  }
  if (metrics_listen != "off" && !runtime::ParseHostPort(metrics_listen)) {
    return absl::InvalidArgumentError("metrics-listen: found \"" + metrics_listen +
                                      "\", allowed is host:port or off");
  }
  if (state_dir.empty()) return absl::InvalidArgumentError("state-dir: is empty; give a folder");
  if (tape_bytes > 0 && tape_bytes < tape::TapeWriter::kBytesMin) {
    return absl::InvalidArgumentError("tape-bytes: found " + std::to_string(tape_bytes) +
                                      ", allowed is 0, for no tape, or " +
                                      std::to_string(tape::TapeWriter::kBytesMin) + " and more");
  }
  if (retain_jobs < kRetainJobsMin) {
    return absl::InvalidArgumentError("retain-jobs: found " +
                                      runtime::FormatDuration(std::max(Duration(0), retain_jobs)) +
                                      ", allowed is 1h and more");
  }
  if (retain_bytes < kRetainBytesMin) {
    return absl::InvalidArgumentError("retain-bytes: found " + std::to_string(retain_bytes) +
                                      ", allowed is " + std::to_string(kRetainBytesMin) +
                                      " and more");
  }
  status = CheckSharing(*this);
  if (status.ok()) status = blobs.Validate();
  if (status.ok()) status = CheckBounds(*this);
  return status.ok() ? backup.Validate(state_dir) : status;
}

absl::StatusOr<std::unique_ptr<Server>> Server::Open(const ServerOptions& options) {
  return Open(options, nullptr);
}

absl::StatusOr<std::unique_ptr<Server>> Server::Open(const ServerOptions& options,
                                                     std::unique_ptr<store::Store> store) {
  absl::Status status = runtime::MakeWritableFolder(options.state_dir);
  if (!status.ok()) return status;
  absl::StatusOr<runtime::LockFile> lock = runtime::LockFile::Acquire(options.state_dir + "/lock");
  if (!lock.ok()) return lock.status();
  // First of all: it may make the certificate that the others read.
  absl::StatusOr<std::unique_ptr<access::Enrolment>> enrolment = OpenEnrolment(options);
  if (!enrolment.ok()) return OfOption(enrolment.status());
  auto credentials = CredentialsOf(options);
  if (!credentials.ok()) return OfOption(credentials.status());
  absl::StatusOr<std::unique_ptr<access::Gate>> gate = OpenGate(options);
  if (!gate.ok()) return OfOption(gate.status());
  RemoveCopy(options.state_dir + "/" + kCopyName);  // of a process that was killed
  status = runtime::MakeWritableFolder(options.files_folder());
  if (!status.ok()) return status;
  if (store == nullptr) {
    auto opened = store::Store::Open(options.state_dir + "/" + kDatabaseName);
    if (!opened.ok()) return opened.status();
    store = *std::move(opened);
  }
  auto audit = access::AuditLog::Open({.folder = options.state_dir + "/audit",
                                       .lines_max = options.audit_lines,
                                       .kept_bytes_max = options.audit_bytes});
  if (!audit.ok()) return audit.status();
  absl::StatusOr<std::unique_ptr<BlobStore>> blobs = OpenBlobs(options);
  if (!blobs.ok()) return blobs.status();
  absl::StatusOr<MeshSecrets> mesh_secrets = MeshSecrets::Open(options.files_folder());
  if (!mesh_secrets.ok()) return mesh_secrets.status();
  ServerImpl::Parts parts = {.lock = *std::move(lock),
                             .store = std::move(store),
                             .blobs = *std::move(blobs),
                             .audit = *std::move(audit),
                             .enrolment = *std::move(enrolment),
                             .gate = *std::move(gate),
                             .credentials = *std::move(credentials),
                             .mesh_secrets = *std::move(mesh_secrets)};
  auto server = std::make_unique<ServerImpl>(options, std::move(parts));
  status = server->Start();
  if (!status.ok()) return status;
  return server;
}

}  // namespace tactus::service
