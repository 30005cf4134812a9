// The coordinator in one object: store, core, services, metrics. What main and the tests start.

#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/time.h"
#include "coordinator/access/bounds.h"
#include "coordinator/backup/backups.h"
#include "coordinator/bucket/bucket_options.h"
#include "coordinator/files/transfer_slots.h"
#include "coordinator/files/upkeep.h"
#include "coordinator/store/store.h"
#include "coordinator/tape/tape_writer.h"
#include "identity/credentials.h"

namespace tactus::service {

// Checked by Validate, which main calls and Open requires.
struct ServerOptions {
  std::string listen = "127.0.0.1:7070";       // host:port; port 0 takes a free one
  std::string state_dir = {};                  // absolute or relative; made when missing
  std::string metrics_listen = "127.0.0.1:0";  // host:port, or "off"
  // A store that coordinators share, of which one leads: see store::SharedStoreOptions. Empty: the
  // embedded one, in `state_dir`.
  std::string store = {};
  Duration lease = Seconds(5);  // 1 s to 10 min
  std::string advertise = {};   // host:port by which others reach `listen`; empty: as it stands
  // Folder of blobs and of jobs' files, for all coordinators of a store; empty: `state_dir`.
  std::string files_dir = {};
  // Where blobs are; no place: in the files' folder.
  bucket::BucketOptions blobs = {};
  // The folder was restored from a backup: agents are to obey although they have seen newer epochs,
  // which ends those of their workers that the backup does not know.
  bool restored = false;
  // Bytes of a tape at most, TapeWriter::kBytesMin or more; 0: no tape is written.
  std::uint64_t tape_bytes = tape::TapeWriter::kBytesDefault;
  // Of jobs that are over: how long they are kept, and of the database, the size above which the
  // oldest of them go.
  Duration retain_jobs = std::chrono::hours(24 * 90);   // an hour or more
  std::uint64_t retain_bytes = std::uint64_t{8} << 30;  // 16 MiB or more
  backup::BackupOptions backup = {};
  identity::Security security = {};
  std::string policy_file = {};  // of access::Gate; empty: its standard one. With TLS alone
  access::BoundsOptions bounds = {};
  // Of room on the disk, see DiskFloor; unset: as that has it.
  std::optional<std::uint64_t> disk_floor = {};
  std::uint64_t audit_bytes = std::uint64_t{1} << 30;  // of the audit log's files; 1 MiB or more
  // That gRPC may hold of calls and connections; 16 MiB or more. Above, it takes from whoever has
  // most.
  std::uint64_t api_bytes = std::uint64_t{1} << 30;
  // Of tactus admin init-ca: the coordinator gives certificates, its own too; empty: it gives none.
  std::string authority_folder = {};
  Duration certificate_life = std::chrono::hours(24 * 7);  // 30 s to 90 days
  // No flags of their own; other than the defaults in tests.
  Upkeep::Intervals upkeep = {};
  Duration look_at_rules = Seconds(5);  // as access::GateOptions has it
  TransferSlots::Limits transfers = {};
  std::size_t audit_lines = 4096;         // as access::AuditOptions has lines_max
  std::size_t unfinished_jobs = 100'000;  // jobs that are not over, at most

  // Errors: InvalidArgument, the first option that is wrong.
  absl::Status Validate() const;

  const std::string& files_folder() const { return files_dir.empty() ? state_dir : files_dir; }
};

// Serves from Open to Shutdown.
class Server {
 public:
  // Opens the store in `state_dir`, takes up its unfinished jobs and serves; the second with a
  // store that this coordinator leads.
  // Errors: InvalidArgument or FailedPrecondition, a file of --tls-dir or the policy is wrong;
  // Unavailable, an address is taken or another coordinator has the folder;
  // PermissionDenied, FailedPrecondition or ResourceExhausted, the folder is not writable; of the
  // bucket, as bucket::Bucket has them;
  // DataLoss, the store is damaged.
  static absl::StatusOr<std::unique_ptr<Server>> Open(const ServerOptions& options);
  static absl::StatusOr<std::unique_ptr<Server>> Open(const ServerOptions& options,
                                                      std::unique_ptr<store::Store> store);

  virtual ~Server() = default;

  // host:port in use.
  virtual const std::string& address() const = 0;
  // Empty: metrics are off.
  virtual const std::string& metrics_address() const = 0;

  // Ends streams and calls, writes what waits, stops. Jobs keep running at their agents. At most
  // about a second, unless the disk of a backup that is under way hangs; the second call does
  // nothing.
  virtual void Shutdown() = 0;
};

}  // namespace tactus::service
