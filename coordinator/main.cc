// tactus-coordinator: reads the command line, serves until SIGTERM or SIGINT.

#include <grpc/support/log.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "coordinator/backup/import.h"
#include "coordinator/backup/restore.h"
#include "coordinator/service/open_blobs.h"
#include "coordinator/service/server.h"
#include "coordinator/store/shared_store.h"
#include "coordinator/turns.h"
#include "runtime/daemon_flags.h"
#include "runtime/logging.h"
#include "runtime/options.h"
#include "runtime/process.h"
#include "runtime/service_manager.h"

namespace tactus {
namespace {

constexpr char kOff[] = "off";
constexpr char kAuto[] = "auto";

struct Arguments {
  service::ServerOptions server;
  // Parsed into server by Complete.
  std::string retain_jobs = {};
  std::string certificate_life = {};
  std::string backup_every = kOff;
  std::string lease = {};
  std::string disk_floor = kAuto;
  backup::RestoreOrder restore = {};  // no backup: serve
  std::string import_from = {};       // empty: serve
  runtime::DaemonFlags daemon = {};
  std::string address_file = {};  // empty: none
};

// CLI11 names units that nobody writes, and throws where it finds none.
bool IsSize(std::string& text) {
  std::string size = text;  // which is changed on the way, whatever comes of it
  try {
    if (!CLI::AsSizeValue(false)(size).empty()) return false;
  } catch (const CLI::ValidationError&) {
    return false;
  }
  text = size;
  return true;
}

std::string ReadSize(std::string& text) {
  if (IsSize(text)) return "";
  return "found \"" + text + "\", allowed is a size such as 256MiB or 8GiB";
}

CLI::Validator SizeText() { return {ReadSize, "SIZE"}; }

std::string ReadFloor(std::string& text) {
  if (text == kAuto || IsSize(text)) return "";
  return "found \"" + text + "\", allowed is auto, or a size such as 5GiB";
}

void DeclareBounds(CLI::App& app, Arguments& arguments) {
  access::BoundsOptions& bounds = arguments.server.bounds;
  app.add_option("--connections-per-host", bounds.connections_per_host,
                 "Connections of one address at once; more are closed")
      ->envname("TACTUS_CONNECTIONS_PER_HOST")
      ->capture_default_str();
  app.add_option("--calls-per-user", bounds.calls_per_user,
                 "Calls and streams of one user or node at once, without --tls-dir of one address; "
                 "agents' open streams aside")
      ->envname("TACTUS_CALLS_PER_USER")
      ->capture_default_str();
  app.add_option("--nodes-per-host", bounds.nodes_per_host,
                 "Nodes that one address may bring, without --tls-dir")
      ->envname("TACTUS_NODES_PER_HOST")
      ->capture_default_str();
  app.add_option(
         "--upload-bytes-per-user", bounds.upload_bytes_per_user,
         "Size of the uploads that are kept for one user, without --tls-dir for one address")
      ->envname("TACTUS_UPLOAD_BYTES_PER_USER")
      ->transform(SizeText())
      ->capture_default_str();
  app.add_option(
         "--disk-floor", arguments.disk_floor,
         "Room on the disk of the state folder below which uploads and jobs are refused, as "
         "checkpoints and results need it, such as 5GiB; auto: 1GiB, and of a small disk a "
         "twentieth")
      ->envname("TACTUS_DISK_FLOOR")
      ->transform(CLI::Validator(ReadFloor, "SIZE"))
      ->capture_default_str();
  app.add_option("--audit-bytes", arguments.server.audit_bytes,
                 "Size at most of the audit log, of which the oldest files go, such as 1GiB")
      ->envname("TACTUS_AUDIT_BYTES")
      ->transform(SizeText())
      ->capture_default_str();
  app.add_option("--api-memory", arguments.server.api_bytes,
                 "Memory that calls and connections may hold, such as 1GiB")
      ->envname("TACTUS_API_MEMORY")
      ->transform(SizeText())
      ->capture_default_str();
}

void DeclareBackups(CLI::App& app, Arguments& arguments) {
  app.add_option("--backup-every", arguments.backup_every,
                 "How often the state folder is backed up to --backup-dir, such as 6h, or off")
      ->envname("TACTUS_BACKUP_EVERY")
      ->capture_default_str();
  app.add_option("--backup-dir", arguments.server.backup.folder,
                 "Folder of this coordinator's backups, best on another disk; it is not made")
      ->envname("TACTUS_BACKUP_DIR");
  app.add_option("--backup-keep", arguments.server.backup.keep,
                 "How many backups are kept; older ones are removed")
      ->envname("TACTUS_BACKUP_KEEP")
      ->capture_default_str();
  CLI::Option* const restore =
      app.add_option("--restore-from", arguments.restore.backup,
                     "Make --state-dir, which is not there or empty, of this backup and exit")
          ->configurable(false);
  app.add_flag("--restore-damaged", arguments.restore.damaged_too,
               "With --restore-from: also of a backup that is damaged, as far as it is whole")
      ->configurable(false)
      ->needs(restore);
}

void DeclareSharing(CLI::App& app, Arguments& arguments) {
  app.add_option("--store", arguments.server.store,
                 "postgresql://USER@HOST:PORT/NAME: a database that several coordinators share, of "
                 "which one leads; default: an embedded one in --state-dir. A password is better "
                 "kept in the file that PGPASSFILE names")
      ->envname("TACTUS_STORE");
  app.add_option("--files-dir", arguments.server.files_dir,
                 "With --store: folder of models, checkpoints, results and logs, the same for all "
                 "coordinators; default: --state-dir, which is each one's own")
      ->envname("TACTUS_FILES_DIR");
  app.add_option("--import-from", arguments.import_from,
                 "With --store, of a database that is empty: take over the record of a coordinator "
                 "that had an embedded one, of its --state-dir or of a backup, and exit")
      ->configurable(false);
  app.add_option(
         "--advertise", arguments.server.advertise,
         "With --store: host:port by which others reach this coordinator; default: --listen")
      ->envname("TACTUS_ADVERTISE");
  app.add_option("--lease", arguments.lease,
                 "With --store: how long whoever leads is waited for once it is silent, such as 5s")
      ->envname("TACTUS_LEASE")
      ->capture_default_str();
}

void DeclareBlobs(CLI::App& app, bucket::BucketOptions& blobs) {
  app.add_option("--blobs", blobs.place,
                 "s3://BUCKET/PREFIX: a bucket for models, checkpoints and results, which several "
                 "coordinators may share; default: the folder blobs of --state-dir (--files-dir), "
                 "by way of which they come, and from which what is there goes to the bucket. Its "
                 "keys are AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN of the "
                 "environment, or in --blobs-credentials")
      ->envname("TACTUS_BLOBS");
  app.add_option("--blobs-endpoint", blobs.endpoint,
                 "With --blobs: https://HOST:PORT of a server that speaks S3; default: Amazon's")
      ->envname("TACTUS_BLOBS_ENDPOINT");
  app.add_option("--blobs-region", blobs.region, "With --blobs: region of the bucket")
      ->envname("TACTUS_BLOBS_REGION")
      ->capture_default_str();
  app.add_option("--blobs-credentials", blobs.keys_file,
                 "With --blobs: file with the bucket's keys, as ~/.aws/credentials has them under "
                 "[default], which others may not read; it is read anew when they change")
      ->envname("TACTUS_BLOBS_CREDENTIALS");
  app.add_option("--blobs-ca", blobs.authority_file,
                 "With --blobs: file of the certificates (PEM) that the endpoint's is held to; "
                 "default: the system's")
      ->envname("TACTUS_BLOBS_CA");
}

// Of the environment alone: a command line is everybody's to read.
bucket::Keys KeysOfEnvironment() {
  const auto read = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  return {.id = read("AWS_ACCESS_KEY_ID"),
          .secret = read("AWS_SECRET_ACCESS_KEY"),
          .token = read("AWS_SESSION_TOKEN")};
}

void DeclareSecurity(CLI::App& app, Arguments& arguments) {
  app.add_option("--tls-dir", arguments.server.security.tls_dir,
                 "Folder with ca.pem, cert.pem and key.pem, as tactus admin issue --coordinator "
                 "writes them: everybody who calls is asked for a certificate")
      ->envname("TACTUS_COORDINATOR_TLS_DIR");
  app.add_option("--policy", arguments.server.policy_file,
                 "File that says who has which role, with --tls-dir; without it all nodes are "
                 "nodes, all users submitters, and the user admin an admin")
      ->envname("TACTUS_POLICY");
  app.add_flag("--insecure", arguments.server.security.insecure,
               "Plain, without identities, though the address is not loopback")
      ->envname("TACTUS_COORDINATOR_INSECURE");
  app.add_option(
         "--ca-dir", arguments.server.authority_folder,
         "Folder of an authority, of tactus admin init-ca: this coordinator gives nodes and "
         "users their certificates, and keeps its own in --tls-dir; whoever has no "
         "certificate may then connect, to show a token and for nothing else")
      ->envname("TACTUS_CA_DIR");
  app.add_option("--certificate-life", arguments.certificate_life,
                 "How long those certificates are valid; they are renewed at two thirds of it")
      ->envname("TACTUS_CERTIFICATE_LIFE")
      ->capture_default_str();
}

void Declare(CLI::App& app, Arguments& arguments) {
  app.set_version_flag("--version", std::string("tactus-coordinator ") + TACTUS_VERSION);
  app.add_option("--listen", arguments.server.listen,
                 "Address of the API, host:port; port 0: a free one")
      ->envname("TACTUS_LISTEN")
      ->capture_default_str();
  app.add_option("--state-dir", arguments.server.state_dir,
                 "Folder of the database and the results")
      ->envname("TACTUS_STATE_DIR")
      ->capture_default_str();
  DeclareSecurity(app, arguments);
  app.add_option("--metrics-listen", arguments.server.metrics_listen,
                 "Address of the status page and /metrics, host:port, or off")
      ->envname("TACTUS_METRICS_LISTEN")
      ->capture_default_str();
  app.add_option("--tape-bytes", arguments.server.tape_bytes,
                 "Size at most of the tape of events below the state folder, such as 256MiB; 0: no "
                 "tape")
      ->envname("TACTUS_TAPE_BYTES")
      ->transform(SizeText())
      ->capture_default_str();
  app.add_option("--retain-jobs", arguments.retain_jobs,
                 "How long a job that is over is kept, with its history and files, such as 90d")
      ->envname("TACTUS_RETAIN_JOBS")
      ->capture_default_str();
  app.add_option("--retain-bytes", arguments.server.retain_bytes,
                 "Size of the database above which the oldest jobs that are over go, such as 8GiB")
      ->envname("TACTUS_RETAIN_BYTES")
      ->transform(SizeText())
      ->capture_default_str();
  app.add_flag(
      "--restored", arguments.server.restored,
      "The state folder was restored from a backup: have agents obey it, which ends workers "
      "of jobs that it does not know");
  DeclareSharing(app, arguments);
  DeclareBlobs(app, arguments.server.blobs);
  DeclareBounds(app, arguments);
  DeclareBackups(app, arguments);
  app.add_option("--address-file", arguments.address_file,
                 "File to write once serving: grpc=HOST:PORT and metrics=HOST:PORT, a line each");
  runtime::DeclareDaemonFlags(app, arguments.daemon);
}

int Complain(runtime::Exit exit, const std::string& message) {
  std::fprintf(stderr, "tactus-coordinator: %s\n", message.c_str());
  return static_cast<int>(exit);
}

runtime::Exit ExitOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
      return runtime::Exit::kConfiguration;
    case absl::StatusCode::kUnavailable:
      return runtime::Exit::kUnavailable;
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kResourceExhausted:
      return runtime::Exit::kCannotCreate;
    default:
      return runtime::Exit::kFailure;
  }
}

// gRPC's own lines become ours, at debug.
void LogForGrpc(gpr_log_func_args* line) {
  runtime::Logger("grpc")->debug("grpc said text={}", runtime::Quoted(line->message));
}

sigset_t EndingSignals(bool shared) {
  sigset_t signals;
  sigemptyset(&signals);
  if (shared) sigaddset(&signals, kStepDown);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

// Where --address-file asks for it.
absl::Status WriteAddresses(const Arguments& arguments, const std::string& address,
                            const std::string& metrics) {
  if (arguments.address_file.empty()) return absl::OkStatus();
  const absl::Status status = runtime::WriteFileWhole(
      arguments.address_file, "grpc=" + address + "\nmetrics=" + metrics + "\n");
  return {status.code(), status.ok() ? "" : "address-file: " + std::string(status.message())};
}

int ServeInTurns(const Arguments& arguments, const sigset_t& signals,
                 const runtime::ServiceManager& manager) {
  const absl::Status status =
      TakeTurns({.server = arguments.server,
                 .signals = signals,
                 .manager = manager,
                 .listening = [&](const std::string& address, const std::string& metrics) {
                   return WriteAddresses(arguments, address, metrics);
                 }});
  if (!status.ok()) return Complain(ExitOf(status), std::string(status.message()));
  return static_cast<int>(runtime::Exit::kOk);
}

int Serve(const Arguments& arguments, const sigset_t& signals,
          const runtime::ServiceManager& manager) {
  const auto log = runtime::Logger("main");
  const service::ServerOptions& options = arguments.server;
  log->info(
      "starting version={} listen={} tls_dir={} insecure={} policy={} ca_dir={} "
      "certificate_life={} state_dir={} store={} blobs={} "
      "metrics_listen={} tape_bytes={} retain_jobs={} "
      "retain_bytes={} backup_every={} backup_dir={} backup_keep={} log_level={}",
      TACTUS_VERSION, options.listen, runtime::Quoted(options.security.tls_dir),
      options.security.insecure, runtime::Quoted(options.policy_file),
      runtime::Quoted(options.authority_folder), arguments.certificate_life,
      runtime::Quoted(options.state_dir),
      options.store.empty() ? "embedded" : store::NameOf({.address = options.store}),
      options.blobs.place.empty() ? "folder" : runtime::Quoted(NameOf(options.blobs)),
      options.metrics_listen, options.tape_bytes, runtime::FormatDuration(options.retain_jobs),
      options.retain_bytes, arguments.backup_every, runtime::Quoted(options.backup.folder),
      options.backup.keep, arguments.daemon.logging.level);
  const access::BoundsOptions& bounds = options.bounds;
  log->info(
      "bounds connections_per_host={} calls_per_user={} nodes_per_host={} upload_bytes_per_user={} "
      "disk_floor={} audit_bytes={} api_memory={}",
      bounds.connections_per_host, bounds.calls_per_user, bounds.nodes_per_host,
      bounds.upload_bytes_per_user, arguments.disk_floor, options.audit_bytes, options.api_bytes);
  if (!options.store.empty() && !options.blobs.place.empty()) {
    const absl::Status probed = service::ProbeBlobs(options.blobs);
    if (!probed.ok()) return Complain(ExitOf(probed), std::string(probed.message()));
  }
  if (!options.store.empty()) return ServeInTurns(arguments, signals, manager);
  auto server = service::Server::Open(options);
  if (!server.ok()) {
    const bool damaged = absl::IsDataLoss(server.status());
    return Complain(damaged ? runtime::Exit::kCannotCreate : ExitOf(server.status()),
                    std::string(server.status().message()) +
                        (damaged ? "; --restore-from makes a new folder of a backup" : ""));
  }
  log->info("serving address={} metrics_address={}", (*server)->address(),
            (*server)->metrics_address());
  const absl::Status status =
      WriteAddresses(arguments, (*server)->address(), (*server)->metrics_address());
  if (!status.ok()) {
    return Complain(runtime::Exit::kCannotCreate, std::string(status.message()));
  }
  manager.Ready("serving at " + (*server)->address());
  int signal = 0;
  sigwait(&signals, &signal);
  log->info("stopping signal={}", signal);
  manager.Stopping();
  (*server)->Shutdown();
  return static_cast<int>(runtime::Exit::kOk);
}

// Before anything of a coordinator is there: it must not have the folder open.
int RestoreBackup(const Arguments& arguments) {
  backup::RestoreOrder order = arguments.restore;
  order.state_folder = arguments.server.state_dir;
  const absl::StatusOr<backup::RestoreReport> report = backup::Restore(order);
  if (!report.ok())
    return Complain(ExitOf(report.status()), std::string(report.status().message()));
  for (const std::string& problem : report->problems) std::printf("damaged: %s\n", problem.c_str());
  std::printf("restored %s to %s: the database and %zu files, %.1f MB\n", order.backup.c_str(),
              order.state_folder.c_str(), report->files, static_cast<double>(report->bytes) * 1e-6);
  std::printf("next, once: tactus-coordinator --state-dir %s --restored, and the options it had\n",
              order.state_folder.c_str());
  return static_cast<int>(runtime::Exit::kOk);
}

// Likewise.
int ImportStore(const Arguments& arguments) {
  const service::ServerOptions& options = arguments.server;
  const absl::StatusOr<backup::ImportReport> report =
      backup::Import({.from = arguments.import_from,
                      .state_folder = options.state_dir,
                      .files_folder = options.files_folder(),
                      .blobs = options.blobs,
                      .to = {.address = options.store, .lease = options.lease}});
  if (!report.ok())
    return Complain(ExitOf(report.status()), std::string(report.status().message()));
  std::printf("imported %s to %s: %llu jobs, %llu rounds, %llu rows, read back and equal\n",
              arguments.import_from.c_str(), store::NameOf({.address = options.store}).c_str(),
              static_cast<unsigned long long>(report->rows.jobs),
              static_cast<unsigned long long>(report->rows.rounds),
              static_cast<unsigned long long>(report->rows.rows));
  if (report->missing > 0) {
    std::printf(
        "%zu of %zu files that jobs name are not in %s yet: copy blobs/ and jobs/ of %s there\n",
        report->missing, report->files, options.files_folder().c_str(),
        arguments.import_from.c_str());
  }
  for (const std::string& name : report->to_copy) {
    std::printf("copy %s/%s to %s\n", arguments.import_from.c_str(), name.c_str(),
                options.files_folder().c_str());
  }
  std::printf("next: this command without --import-from%s, and with the options that it had\n",
              report->from_backup ? ", once with --restored" : "");
  return static_cast<int>(runtime::Exit::kOk);
}

// What the command line says as text, and what of it is wrong.
absl::Status Complete(Arguments& arguments) {
  const absl::StatusOr<Duration> retain_jobs = runtime::ParseDuration(arguments.retain_jobs);
  if (!retain_jobs.ok()) {
    return absl::InvalidArgumentError("retain-jobs: " +
                                      std::string(retain_jobs.status().message()));
  }
  arguments.server.retain_jobs = *retain_jobs;
  const absl::StatusOr<Duration> life = runtime::ParseDuration(arguments.certificate_life);
  if (!life.ok()) {
    return absl::InvalidArgumentError("certificate-life: " + std::string(life.status().message()));
  }
  arguments.server.certificate_life = *life;
  if (arguments.backup_every != kOff) {
    const absl::StatusOr<Duration> every = runtime::ParseDuration(arguments.backup_every);
    if (!every.ok() || *every == Duration::zero()) {
      return absl::InvalidArgumentError(
          "backup-every: " + (every.ok() ? "found 0, allowed is off, or a time such as 6h"
                                         : std::string(every.status().message())));
    }
    arguments.server.backup.every = *every;
  }
  const absl::StatusOr<Duration> lease = runtime::ParseDuration(arguments.lease);
  if (!lease.ok()) {
    return absl::InvalidArgumentError("lease: " + std::string(lease.status().message()));
  }
  arguments.server.lease = *lease;
  if (!arguments.server.store.empty() && !arguments.restore.backup.empty()) {
    return absl::InvalidArgumentError(
        "restore-from: found beside --store; a backup makes an embedded store, and --import-from "
        "puts one into a database");
  }
  if (arguments.server.store.empty() && !arguments.import_from.empty()) {
    return absl::InvalidArgumentError("import-from: found without --store, which it fills");
  }
  if (arguments.disk_floor != kAuto)
    arguments.server.disk_floor = std::stoull(arguments.disk_floor);
  return arguments.server.Validate();
}

int Main(int argc, char** argv) {
  ::umask(0077);  // all that it writes is its user's alone
  Arguments arguments;
  arguments.retain_jobs = runtime::FormatDuration(arguments.server.retain_jobs);
  arguments.lease = runtime::FormatDuration(arguments.server.lease);
  arguments.certificate_life = runtime::FormatDuration(arguments.server.certificate_life);
  arguments.server.blobs.keys = KeysOfEnvironment();
  arguments.server.state_dir = runtime::FoldersFromEnvironment().state + "/coordinator";
  CLI::App app("The Tactus coordinator: holds jobs and nodes, decides how jobs run.");
  Declare(app, arguments);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(runtime::Exit::kUsage);
  }
  const auto complain = [&](const absl::Status& wrong) {
    return Complain(ExitOf(wrong),
                    runtime::WithSource(app, argc, argv, std::string(wrong.message())));
  };
  absl::Status status = Complete(arguments);
  if (!status.ok()) return complain(status);
  if (app.got_subcommand("config")) {
    runtime::ShowConfig(app, argc, argv);
    return static_cast<int>(runtime::Exit::kOk);
  }
  if (!arguments.restore.backup.empty()) return RestoreBackup(arguments);
  if (!arguments.import_from.empty()) return ImportStore(arguments);
  const runtime::ServiceManager manager = runtime::ServiceManager::TakeFromEnvironment();
  // Blocked before any thread is there, so that only sigwait gets them.
  const sigset_t signals = EndingSignals(!arguments.server.store.empty());
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  if (arguments.daemon.parent_death_signal) runtime::EndWithParent();
  runtime::RaiseFileLimit();
  status = runtime::StartLogging(arguments.daemon.logging);
  if (!status.ok()) return complain(status);
  gpr_set_log_verbosity(GPR_LOG_SEVERITY_ERROR);
  gpr_set_log_function(LogForGrpc);
  const int exit = Serve(arguments, signals, manager);
  gpr_set_log_function(nullptr);
  runtime::StopLogging();
  return exit;
}

}  // namespace
}  // namespace tactus

int main(int argc, char** argv) { return tactus::Main(argc, argv); }
