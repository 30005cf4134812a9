#include "coordinator/service/integrity_call.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/files/blob_scan.h"
#include "coordinator/files/state_folder.h"
#include "coordinator/files/store_copying.h"

namespace tactus::service {
namespace {

constexpr int kPage = 1000;
// Lines of an answer.
constexpr int kProblemsMax = 1000;
// Looked for in one task of the files' thread.
constexpr std::size_t kBlobsAtOnce = 1000;

class IntegrityCheck : public std::enable_shared_from_this<IntegrityCheck> {
 public:
  IntegrityCheck(const AdminService::Surroundings& surroundings, const UnaryCall& call,
                 v1::CheckIntegrityResponse* response)
      : around_(surroundings), call_(call), response_(*response) {}

  void Start(grpc::CallbackServerContext* context) {
    CopyStore({.storage = around_.storage,
               .store = around_.store,
               .path = Path(),
               .cancelled = [context] { return context->IsCancelled(); }},
              [self = shared_from_this()](const absl::Status& copied) {
                if (!copied.ok()) return self->Answer(copied);
                self->around_.inspection.Post([self] { self->OnCopied(); });
              });
  }

 private:
  std::string Path() const { return around_.state_folder + "/" + kCopyName; }

  void Answer(const absl::Status& status) {
    *around_.copy_slot = false;
    call_.Finish(status);
  }

  void AddProblem(const std::string& problem) {
    if (response_.problems_size() < kProblemsMax) response_.add_problems(problem);
  }

  // Inspection thread.
  void OnCopied() {
    const absl::Status inspected = Inspect();
    RemoveCopy(Path());
    if (!inspected.ok()) return Answer(inspected);
    Scan(used_, [self = shared_from_this()] {
      self->around_.files.Post([self] {
        self->around_.blobs.Refresh([self](const absl::Status& status) {
          if (!status.ok()) self->AddProblem("blobs: " + std::string(status.message()));
          self->LookForBlobs(self->used_.begin());
        });
      });
    });
  }

  // The copy has the damage that the database has.
  absl::Status Inspect() {
    const absl::StatusOr<std::unique_ptr<store::Store>> copy = store::Store::Open(Path());
    if (absl::IsDataLoss(copy.status())) {
      AddProblem("file: cannot be opened: " + std::string(copy.status().message()));
      return absl::OkStatus();
    }
    if (!copy.ok()) return copy.status();
    const absl::StatusOr<std::vector<std::string>> problems = (*copy)->CheckIntegrity();
    if (!problems.ok()) return problems.status();
    for (const std::string& problem : *problems) AddProblem(problem);
    store::JobQuery query = {.page_size = kPage};
    do {
      const absl::StatusOr<store::Page<job::JobRecord>> page = (*copy)->ListJobs(query);
      if (!page.ok()) {
        AddProblem("jobs: cannot be listed: " + std::string(page.status().message()));
        break;
      }
      response_.set_jobs(response_.jobs() + page->items.size());
      query.page_token = page->next;
    } while (!query.page_token.empty());
    return absl::OkStatus();
  }

  // What jobs name goes into `names`; then `next` is called, on the storage thread.
  void Scan(std::set<std::string>& names, std::function<void()> next) {
    names.clear();
    ScanBlobs(
        {.storage = around_.storage,
         .store = around_.store,
         .names = [self = shared_from_this(),
                   &names](const auto& some) { names.insert(some.begin(), some.end()); },
         .done = [self = shared_from_this(), next = std::move(next)](
                     const absl::Status& status) { status.ok() ? next() : self->Answer(status); }});
  }

  // Files' thread.
  void LookForBlobs(std::set<std::string>::const_iterator next) {
    for (std::size_t i = 0; i < kBlobsAtOnce && next != used_.end(); ++i, ++next) {
      const absl::StatusOr<BlobStore::State> state = around_.blobs.Find(*next);
      if (!state.ok()) AddProblem("blob " + *next + ": " + std::string(state.status().message()));
      if (state.ok() && !state->complete) missing_.push_back(*next);
    }
    if (next != used_.end()) {
      return around_.files.Post([self = shared_from_this(), next] { self->LookForBlobs(next); });
    }
    response_.set_blobs(used_.size());
    if (missing_.empty()) return Answer(absl::OkStatus());
    // Not those that were superseded, and removed, since the jobs were asked.
    Scan(used_, [self = shared_from_this()] { self->SayMissing(); });
  }

  void SayMissing() {
    for (const std::string& sha256 : missing_) {
      if (!used_.contains(sha256)) continue;
      AddProblem("blob " + sha256 + ": is named by a job and not there");
    }
    Answer(absl::OkStatus());
  }

  const AdminService::Surroundings around_;
  const UnaryCall call_;
  v1::CheckIntegrityResponse& response_;  // lives until the call is finished
  // One thread after the other:
  std::set<std::string> used_;
  std::vector<std::string> missing_;
};

}  // namespace

void StartIntegrityCheck(const AdminService::Surroundings& surroundings,
                         grpc::CallbackServerContext* context, const UnaryCall& call,
                         v1::CheckIntegrityResponse* response) {
  if (surroundings.copy_slot->exchange(true)) return call.Finish(AdminService::UnderWay());
  std::make_shared<IntegrityCheck>(surroundings, call, response)->Start(context);
}

}  // namespace tactus::service
