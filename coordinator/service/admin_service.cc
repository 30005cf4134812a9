#include "coordinator/service/admin_service.h"

#include <set>
#include <utility>
#include <vector>

#include "coordinator/service/backup_call.h"
#include "coordinator/service/calls.h"
#include "runtime/status.h"

namespace tactus::service {
namespace {

constexpr int kPage = 1000;
// Lines of an answer; the last one says how many more there are.
constexpr int kProblemsMax = 1000;

absl::Status Admitted(const std::string& peer) {
  if (IsLocal(peer)) return absl::OkStatus();
  return runtime::WithReason(
      absl::PermissionDeniedError("admin: found a call from " + peer +
                                  ", allowed are calls from the coordinator's own machine"),
      {.reason = "NOT_LOCAL"});
}

void AddProblem(const std::string& problem, v1::CheckIntegrityResponse& response) {
  if (response.problems_size() < kProblemsMax) response.add_problems(problem);
}

// Storage thread. Reads every job once more, to say how many there are.
absl::Status CheckStore(store::Store& store, v1::CheckIntegrityResponse& response) {
  const absl::StatusOr<std::vector<std::string>> problems = store.CheckIntegrity();
  if (!problems.ok()) return problems.status();
  for (const std::string& problem : *problems) AddProblem(problem, response);
  store::JobQuery query = {.page_size = kPage};
  do {
    const absl::StatusOr<store::Page<job::JobRecord>> page = store.ListJobs(query);
    if (!page.ok()) {
      AddProblem("jobs: cannot be listed: " + std::string(page.status().message()), response);
      break;
    }
    response.set_jobs(response.jobs() + page->items.size());
    query.page_token = page->next;
  } while (!query.page_token.empty());
  return absl::OkStatus();
}

// Files' thread.
void CheckBlobs(const BlobStore& blobs, const std::set<std::string>& used,
                v1::CheckIntegrityResponse& response) {
  for (const std::string& sha256 : used) {
    response.set_blobs(response.blobs() + 1);
    const absl::StatusOr<BlobStore::State> state = blobs.Find(sha256);
    if (state.ok() && state->complete) continue;
    AddProblem("blob " + sha256 + ": " +
                   (state.ok() ? "is named by a job and not there"
                               : std::string(state.status().message())),
               response);
  }
}

}  // namespace

bool IsLocal(const std::string& peer) {
  return peer.starts_with("ipv4:127.") || peer.starts_with("unix:") ||
         peer.starts_with("unix-abstract:") || peer.starts_with("ipv6:[::1]") ||
         peer.starts_with("ipv6:%5B::1%5D") || peer.starts_with("ipv6:[::ffff:127.") ||
         peer.starts_with("ipv6:%5B::ffff:127.");
}

grpc::ServerWriteReactor<v1::BackupChunk>* AdminService::Backup(
    grpc::CallbackServerContext* context, const v1::BackupRequest*) {
  return StartBackup(around_, Admitted(context->peer()), backing_up_);
}

grpc::ServerUnaryReactor* AdminService::CheckIntegrity(grpc::CallbackServerContext* context,
                                                       const v1::CheckIntegrityRequest*,
                                                       v1::CheckIntegrityResponse* response) {
  const UnaryCall call(context, around_.metrics, "Admin/CheckIntegrity");
  if (!call.Admit()) return call.reactor();
  const absl::Status admitted = Admitted(context->peer());
  if (!admitted.ok()) {
    call.Finish(admitted);
    return call.reactor();
  }
  around_.storage.Post([this, call, response] {
    const absl::Status checked = CheckStore(around_.store, *response);
    const absl::StatusOr<std::vector<std::string>> used = around_.store.BlobsInUse();
    if (!checked.ok() || !used.ok()) return call.Finish(checked.ok() ? used.status() : checked);
    around_.files.Post([this, call, response, used = *used] {
      CheckBlobs(around_.blobs, {used.begin(), used.end()}, *response);
      call.Finish(absl::OkStatus());
    });
  });
  return call.reactor();
}

}  // namespace tactus::service
