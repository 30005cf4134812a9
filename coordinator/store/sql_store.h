// The store over one database, whichever it is.

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/store/database.h"
#include "coordinator/store/retention.h"
#include "coordinator/store/statements.h"
#include "coordinator/store/store.h"

namespace tactus::store {

class SqlStore final : public Store {
 public:
  // A database with the tables as they are now.
  //   server_id  the database's, for page tokens
  SqlStore(std::unique_ptr<Database> database, std::string server_id)
      : database_(std::move(database)), server_id_(std::move(server_id)) {}

  absl::Status Write(const job::WriteBatch& batch) override;
  absl::StatusOr<job::JobRecord> FindJob(const std::string& name) override;
  absl::StatusOr<job::JobRecord> FindJobByRequest(const std::string& request_id) override;
  absl::StatusOr<Page<job::JobRecord>> ListJobs(const JobQuery& query) override;
  absl::StatusOr<std::vector<job::JobRecord>> UnfinishedJobs() override;
  absl::StatusOr<std::vector<job::MemoryRecord>> Memories() override;
  absl::StatusOr<std::vector<job::PriorRecord>> Priors() override;
  absl::StatusOr<Page<job::RoundRecord>> ListRounds(JobId job, int page_size,
                                                    const std::string& page_token,
                                                    std::uint64_t first_round = 0) override;
  absl::StatusOr<Page<job::DecisionRecord>> ListDecisions(JobId job, int page_size,
                                                          const std::string& page_token) override;
  absl::StatusOr<job::DecisionRecord> FindDecision(JobId job,
                                                   const policies::DecisionKey& key) override;
  absl::StatusOr<std::vector<job::DecisionRecord>> NewestDecisions(JobId job, int count) override;
  absl::StatusOr<std::vector<job::RoundRecord>> SampleRounds(
      JobId job, int points_max, std::uint64_t first_round = 0) override;
  absl::StatusOr<std::vector<job::ValidationRecord>> ListValidations(JobId job) override;
  absl::StatusOr<std::uint64_t> LastJobId() override;
  absl::StatusOr<JobNumbers::Given> Numbers() override;
  absl::StatusOr<protocol::CoordinatorIdentity> BeginEpoch(std::uint64_t at_least) override;
  absl::StatusOr<std::vector<job::NodeRecord>> Nodes() override;
  bool Leads() const override { return database_->Leads(); }
  absl::Status DeleteJob(JobId job) override;
  absl::StatusOr<NamedBlobs> BlobsInUse(JobId after, int jobs_max) override;
  std::vector<std::string> TakeSuperseded() override;
  std::vector<SetAsideJob> TakeSetAside() override;
  absl::StatusOr<job::WallTime> RetentionTime() override;
  absl::Status KeepRetentionTime(job::WallTime time) override;
  absl::StatusOr<bool> Prune(const Retention& retention, job::WallTime now,
                             std::vector<GoneJob>& gone) override;
  absl::StatusOr<std::unique_ptr<StoreCopy>> BeginCopy(const std::string& path) override;
  absl::StatusOr<std::vector<std::string>> CheckIntegrity() override;

 private:
  // A page of a job's history.
  struct HistoryPage {
    const char* sql = nullptr;  // job, number, second, limit -> record
    std::string query{};        // what a token of it belongs to
    JobId job{};
    int page_size = 1;
    const std::string& page_token;
    std::int64_t above = -1;  // numbers up to this one are left out
  };

  absl::Status PutAll(const job::WriteBatch& batch);
  absl::Status PutJob(const job::JobRecord& record);
  absl::Status NoteSuperseded(const job::JobRecord& record, const std::string& blobs);
  absl::Status PutValidation(const job::ValidationRecord& record);
  absl::Status PutMemory(const job::MemoryRecord& record);
  absl::Status PutPrior(const job::PriorRecord& record);
  absl::Status PutNode(const job::NodeRecord& record);
  absl::StatusOr<job::JobRecord> FindOne(const char* sql, const std::string& key,
                                         const std::string& what);
  absl::StatusOr<std::vector<job::JobRecord>> ReadReadable(const absl::StatusOr<Statement*>& query);
  absl::Status SetAside(SetAsideJob job);
  absl::StatusOr<std::vector<job::JobRecord>> ReadJobs(const std::vector<std::int64_t>& ids);
  template <typename Decode, typename Place>
  auto ListHistory(const HistoryPage& asked, const Decode& decode, const Place& place)
      -> absl::StatusOr<Page<typename decltype(decode(""))::value_type>>;

  const std::unique_ptr<Database> database_;  // outlives the statements
  const std::string server_id_;
  Statements statements_{*database_};
  HistoryPruner pruner_{statements_};
  std::vector<std::string> superseding_;  // of the write that runs
  std::vector<std::string> superseded_;   // of those that succeeded; see TakeSuperseded
  std::vector<SetAsideJob> set_aside_;    // see TakeSetAside
};

}  // namespace tactus::store
