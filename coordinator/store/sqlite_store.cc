#include <charconv>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "coordinator/codec/record_codec.h"
#include "coordinator/store/schema.h"
#include "coordinator/store/sqlite_connection.h"
#include "coordinator/store/store.h"

namespace tactus::store {
namespace {

constexpr int kBusyTimeoutMs = 1000;

constexpr const char* kPutJob =
    "INSERT INTO jobs (id, name, request_id, state, is_final, revision, create_time, update_time,"
    "                  spec, record) "
    "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) "
    "ON CONFLICT (id) DO UPDATE SET name = ?2, request_id = ?3, state = ?4, is_final = ?5,"
    "  revision = ?6, create_time = ?7, update_time = ?8, spec = ?9, record = ?10";
constexpr const char* kPutRound =
    "INSERT OR REPLACE INTO rounds (job, round, record) VALUES (?1, ?2, ?3)";
constexpr const char* kPutDecision =
    "INSERT OR REPLACE INTO decisions (job, plan_version, axis, record) VALUES (?1, ?2, ?3, ?4)";
constexpr const char* kJobByName = "SELECT spec, record FROM jobs WHERE name = ?1";
constexpr const char* kJobByRequest = "SELECT spec, record FROM jobs WHERE request_id = ?1";
constexpr const char* kJobsBelow =
    "SELECT spec, record FROM jobs WHERE id < ?1 ORDER BY id DESC LIMIT ?2";
constexpr const char* kUnfinished = "SELECT spec, record FROM jobs WHERE is_final = 0 ORDER BY id";
constexpr const char* kRoundsAbove =
    "SELECT record FROM rounds WHERE job = ?1 AND round > ?2 ORDER BY round LIMIT ?3";
constexpr const char* kDecisionsAbove =
    "SELECT record FROM decisions WHERE job = ?1 AND (plan_version, axis) > (?2, ?3) "
    "ORDER BY plan_version, axis LIMIT ?4";
constexpr const char* kLastId = "SELECT ifnull(max(id), 0) FROM jobs";

// SQLite's integers are signed; our numbers stay below 2^63.
std::int64_t Signed(std::uint64_t value) {
  TACTUS_CHECK(value <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()));
  return static_cast<std::int64_t>(value);
}

// The number after `prefix` in a page token.
absl::StatusOr<std::int64_t> ParseToken(const std::string& token, const std::string& prefix) {
  std::int64_t number = -1;
  if (token.starts_with(prefix)) {
    const char* end = token.data() + token.size();
    const auto parsed = std::from_chars(token.data() + prefix.size(), end, number);
    if (parsed.ec == std::errc() && parsed.ptr == end && number >= 0) return number;
  }
  return absl::InvalidArgumentError("page_token: not a token of this listing");
}

class SqliteStore final : public Store {
 public:
  explicit SqliteStore(Connection connection) : connection_(std::move(connection)) {}

  // Prepares the statements; to be called once, first.
  absl::Status Prepare();

  absl::Status Write(const WriteBatch& batch) override;
  absl::StatusOr<job::JobRecord> FindJob(const std::string& name) override;
  absl::StatusOr<job::JobRecord> FindJobByRequest(const std::string& request_id) override;
  absl::StatusOr<Page<job::JobRecord>> ListJobs(int page_size,
                                                const std::string& page_token) override;
  absl::StatusOr<std::vector<job::JobRecord>> UnfinishedJobs() override;
  absl::StatusOr<Page<job::RoundRecord>> ListRounds(JobId job, int page_size,
                                                    const std::string& page_token) override;
  absl::StatusOr<Page<job::DecisionRecord>> ListDecisions(JobId job, int page_size,
                                                          const std::string& page_token) override;
  absl::StatusOr<std::uint64_t> LastJobId() override;

 private:
  // Set by Prepare, never empty afterwards.
  struct Statements {
    Statement begin, commit, put_job, put_round, put_decision, job_by_name, job_by_request,
        jobs_below, unfinished, rounds_above, decisions_above, last_id;
  };

  absl::Status Run(Statement& statement);
  absl::Status PutAll(const WriteBatch& batch);
  absl::Status PutJob(const job::JobRecord& record);
  absl::Status PutRound(const job::RoundRecord& record);
  absl::Status PutDecision(const job::DecisionRecord& record);
  absl::StatusOr<job::JobRecord> FindOne(Statement& query, const std::string& key,
                                         std::string_view what);
  absl::StatusOr<std::vector<job::JobRecord>> ReadJobs(Statement& query);

  const Connection connection_;  // outlives the statements
  std::optional<Statements> statements_;
};

absl::Status SqliteStore::Prepare() {
  constexpr const char* kAll[] = {"BEGIN IMMEDIATE", "COMMIT",     kPutJob,         kPutRound,
                                  kPutDecision,      kJobByName,   kJobByRequest,   kJobsBelow,
                                  kUnfinished,       kRoundsAbove, kDecisionsAbove, kLastId};
  std::vector<Statement> made;
  for (const char* sql : kAll) {
    absl::StatusOr<Statement> statement = Statement::Prepare(connection_.get(), sql);
    if (!statement.ok()) return statement.status();
    made.push_back(*std::move(statement));
  }
  statements_.emplace(Statements{std::move(made[0]), std::move(made[1]), std::move(made[2]),
                                 std::move(made[3]), std::move(made[4]), std::move(made[5]),
                                 std::move(made[6]), std::move(made[7]), std::move(made[8]),
                                 std::move(made[9]), std::move(made[10]), std::move(made[11])});
  return absl::OkStatus();
}

absl::Status SqliteStore::Run(Statement& statement) {
  const absl::StatusOr<bool> row = statement.Step();
  return row.status();
}

absl::Status SqliteStore::Write(const WriteBatch& batch) {
  absl::Status status = Run(statements_->begin);
  if (!status.ok()) return status;
  status = PutAll(batch);
  if (status.ok()) status = Run(statements_->commit);
  // Some errors have rolled back already.
  if (!status.ok() && sqlite3_get_autocommit(connection_.get()) == 0) {
    Execute(connection_.get(), "ROLLBACK").IgnoreError();
  }
  return status;
}

absl::Status SqliteStore::PutAll(const WriteBatch& batch) {
  for (const job::JobRecord& record : batch.jobs) {
    const absl::Status status = PutJob(record);
    if (!status.ok()) return status;
  }
  for (const job::RoundRecord& record : batch.rounds) {
    const absl::Status status = PutRound(record);
    if (!status.ok()) return status;
  }
  for (const job::DecisionRecord& record : batch.decisions) {
    const absl::Status status = PutDecision(record);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status SqliteStore::PutRound(const job::RoundRecord& record) {
  Statement& put = statements_->put_round;
  put.BindInt(1, Signed(record.job.value));
  put.BindInt(2, Signed(record.round));
  put.BindBlob(3, codec::EncodeRound(record));
  return Run(put);
}

absl::Status SqliteStore::PutDecision(const job::DecisionRecord& record) {
  Statement& put = statements_->put_decision;
  put.BindInt(1, Signed(record.job.value));
  put.BindInt(2, Signed(record.decision.plan_version));
  put.BindInt(3, static_cast<std::int64_t>(record.decision.axis));
  put.BindBlob(4, codec::EncodeDecision(record));
  return Run(put);
}

absl::Status SqliteStore::PutJob(const job::JobRecord& record) {
  Statement& put = statements_->put_job;
  put.BindInt(1, Signed(record.id.value));
  put.BindText(2, record.name);
  if (record.request_id.empty()) {
    put.BindNull(3);
  } else {
    put.BindText(3, record.request_id);
  }
  put.BindInt(4, static_cast<std::int64_t>(record.state));
  put.BindInt(5, job::IsFinal(record.state) ? 1 : 0);
  put.BindInt(6, Signed(record.revision));
  put.BindInt(7, record.create_time);
  put.BindInt(8, record.update_time);
  put.BindBlob(9, record.spec);
  put.BindBlob(10, codec::EncodeJob(record));
  const absl::Status status = Run(put);
  if (status.code() == absl::StatusCode::kAlreadyExists) {
    return absl::AlreadyExistsError("job " + record.name +
                                    ": its name or request id is taken by another job");
  }
  return status;
}

// Reads the present row of a query for "spec, record".
absl::StatusOr<job::JobRecord> ReadJob(const Statement& row) {
  absl::StatusOr<job::JobRecord> record = codec::DecodeJob(row.ColumnBytes(1));
  if (record.ok()) record->spec = row.ColumnBytes(0);
  return record;
}

// All rows of a query for "record".
template <typename T>
absl::StatusOr<std::vector<T>> ReadRecords(Statement& query,
                                           absl::StatusOr<T> (*decode)(std::string_view)) {
  std::vector<T> records;
  while (true) {
    const absl::StatusOr<bool> row = query.Step();
    if (!row.ok()) return row.status();
    if (!*row) return records;
    absl::StatusOr<T> record = decode(query.ColumnBytes(0));
    if (!record.ok()) {
      query.Reset();
      return record.status();
    }
    records.push_back(*std::move(record));
  }
}

absl::StatusOr<job::JobRecord> SqliteStore::FindOne(Statement& query, const std::string& key,
                                                    std::string_view what) {
  query.BindText(1, key);
  const absl::StatusOr<bool> row = query.Step();
  if (!row.ok()) return row.status();
  if (!*row) return absl::NotFoundError(std::string(what) + " '" + key + "': no such job");
  absl::StatusOr<job::JobRecord> record = ReadJob(query);
  query.Reset();
  return record;
}

absl::StatusOr<job::JobRecord> SqliteStore::FindJob(const std::string& name) {
  return FindOne(statements_->job_by_name, name, "job");
}

absl::StatusOr<job::JobRecord> SqliteStore::FindJobByRequest(const std::string& request_id) {
  return FindOne(statements_->job_by_request, request_id, "request");
}

absl::StatusOr<std::vector<job::JobRecord>> SqliteStore::ReadJobs(Statement& query) {
  std::vector<job::JobRecord> jobs;
  while (true) {
    const absl::StatusOr<bool> row = query.Step();
    if (!row.ok()) return row.status();
    if (!*row) return jobs;
    absl::StatusOr<job::JobRecord> record = ReadJob(query);
    if (!record.ok()) {
      query.Reset();
      return record.status();
    }
    jobs.push_back(*std::move(record));
  }
}

absl::StatusOr<Page<job::JobRecord>> SqliteStore::ListJobs(int page_size,
                                                           const std::string& page_token) {
  TACTUS_CHECK(page_size > 0);
  std::int64_t below = std::numeric_limits<std::int64_t>::max();
  if (!page_token.empty()) {
    const absl::StatusOr<std::int64_t> parsed = ParseToken(page_token, "jobs-below-");
    if (!parsed.ok()) return parsed.status();
    below = *parsed;
  }
  Statement& query = statements_->jobs_below;
  query.BindInt(1, below);
  query.BindInt(2, std::int64_t{page_size} + 1);
  absl::StatusOr<std::vector<job::JobRecord>> jobs = ReadJobs(query);
  if (!jobs.ok()) return jobs.status();
  Page<job::JobRecord> page{.items = *std::move(jobs), .next = ""};
  if (page.items.size() > static_cast<std::size_t>(page_size)) {
    page.items.pop_back();
    page.next = "jobs-below-" + std::to_string(page.items.back().id.value);
  }
  return page;
}

absl::StatusOr<std::vector<job::JobRecord>> SqliteStore::UnfinishedJobs() {
  return ReadJobs(statements_->unfinished);
}

absl::StatusOr<Page<job::RoundRecord>> SqliteStore::ListRounds(JobId job, int page_size,
                                                               const std::string& page_token) {
  TACTUS_CHECK(page_size > 0);
  const std::string prefix = "rounds-" + std::to_string(job.value) + "-above-";
  std::int64_t above = -1;
  if (!page_token.empty()) {
    const absl::StatusOr<std::int64_t> parsed = ParseToken(page_token, prefix);
    if (!parsed.ok()) return parsed.status();
    above = *parsed;
  }
  Statement& query = statements_->rounds_above;
  query.BindInt(1, Signed(job.value));
  query.BindInt(2, above);
  query.BindInt(3, std::int64_t{page_size} + 1);
  absl::StatusOr<std::vector<job::RoundRecord>> rounds = ReadRecords(query, codec::DecodeRound);
  if (!rounds.ok()) return rounds.status();
  Page<job::RoundRecord> page{.items = *std::move(rounds), .next = ""};
  if (page.items.size() > static_cast<std::size_t>(page_size)) {
    page.items.pop_back();
    page.next = prefix + std::to_string(page.items.back().round);
  }
  return page;
}

// A place between decisions: after one of a plan and axis, as one number.
constexpr std::int64_t kAxes = 16;

absl::StatusOr<Page<job::DecisionRecord>> SqliteStore::ListDecisions(
    JobId job, int page_size, const std::string& page_token) {
  TACTUS_CHECK(page_size > 0);
  const std::string prefix = "decisions-" + std::to_string(job.value) + "-above-";
  std::int64_t above = -1;
  if (!page_token.empty()) {
    const absl::StatusOr<std::int64_t> parsed = ParseToken(page_token, prefix);
    if (!parsed.ok()) return parsed.status();
    above = *parsed;
  }
  Statement& query = statements_->decisions_above;
  query.BindInt(1, Signed(job.value));
  query.BindInt(2, above < 0 ? -1 : above / kAxes);
  query.BindInt(3, above % kAxes);
  query.BindInt(4, std::int64_t{page_size} + 1);
  absl::StatusOr<std::vector<job::DecisionRecord>> decisions =
      ReadRecords(query, codec::DecodeDecision);
  if (!decisions.ok()) return decisions.status();
  Page<job::DecisionRecord> page{.items = *std::move(decisions), .next = ""};
  if (page.items.size() > static_cast<std::size_t>(page_size)) {
    page.items.pop_back();
    const policies::Decision& last = page.items.back().decision;
    page.next = prefix + std::to_string(Signed(last.plan_version) * kAxes +
                                        static_cast<std::int64_t>(last.axis));
  }
  return page;
}

absl::StatusOr<std::uint64_t> SqliteStore::LastJobId() {
  Statement& query = statements_->last_id;
  const absl::StatusOr<bool> row = query.Step();
  if (!row.ok()) return row.status();
  const auto last = static_cast<std::uint64_t>(query.ColumnInt(0));
  query.Reset();
  return last;
}

// SQLite tries once more without creating the file, and that attempt says "not found" where the
// folder is there but not writable.
absl::Status CannotOpen(const std::string& path, const absl::Status& status) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::absolute(path, error).parent_path();
  if (absl::IsNotFound(status) && std::filesystem::is_directory(folder, error)) {
    return absl::PermissionDeniedError(path + ": the folder is not writable");
  }
  return status;
}

absl::StatusOr<Connection> Connect(const std::string& path) {
  sqlite3* opened = nullptr;
  const int code = sqlite3_open_v2(
      path.c_str(), &opened,
      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
      nullptr);
  Connection connection(opened);  // to be closed even when it failed
  if (code != SQLITE_OK) return CannotOpen(path, ConnectionStatus(opened, code, path));
  if (sqlite3_db_readonly(opened, "main") == 1) {
    return absl::PermissionDeniedError(path + ": not writable");
  }
  return connection;
}

absl::Status Annotate(const std::string& path, const absl::Status& status) {
  return absl::Status(status.code(), path + ": " + std::string(status.message()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Store>> Store::Open(const std::string& path) {
  absl::StatusOr<Connection> connection = Connect(path);
  if (!connection.ok()) return connection.status();
  sqlite3* const db = connection->get();
  sqlite3_busy_timeout(db, kBusyTimeoutMs);
  // Exclusive before the first access: no second process, and no shared memory beside the file.
  absl::Status status = Execute(db,
                                "PRAGMA locking_mode = EXCLUSIVE;"
                                "PRAGMA journal_mode = WAL;"
                                "PRAGMA synchronous = FULL;"
                                "BEGIN EXCLUSIVE; COMMIT");
  if (status.ok()) status = Migrate(db, SchemaSteps());
  if (!status.ok()) return Annotate(path, status);
  auto store = std::make_unique<SqliteStore>(*std::move(connection));
  status = store->Prepare();
  if (!status.ok()) return Annotate(path, status);
  return store;
}

}  // namespace tactus::store
