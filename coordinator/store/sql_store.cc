#include "coordinator/store/sql_store.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "base/check.h"
#include "coordinator/codec/record_codec.h"
#include "coordinator/store/integrity.h"
#include "coordinator/store/job_columns.h"
#include "coordinator/store/job_query.h"
#include "coordinator/store/page_token.h"

namespace tactus::store {
namespace {

constexpr std::uint64_t kNumberMax = std::numeric_limits<std::int64_t>::max();

// Not OR REPLACE, which would delete another job that has the name or the request id.
constexpr const char* kPutJob =
    "INSERT INTO jobs (id, name, request_id, state, is_final, priority, revision, create_time,"
    "                  update_time, end_time, labels, blobs, spec, record) "
    "VALUES (?1, ?2, nullif(?3, ''), ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14) "
    "ON CONFLICT (id) DO UPDATE SET name = ?2, request_id = nullif(?3, ''), state = ?4,"
    "  is_final = ?5, priority = ?6, revision = ?7, create_time = ?8, update_time = ?9,"
    "  end_time = ?10, labels = ?11, blobs = ?12, spec = ?13, record = ?14";
constexpr const char* kForgetRounds = "DELETE FROM rounds WHERE job = ?1 AND round >= ?2";
constexpr const char* kPutRound =
    "INSERT INTO rounds (job, round, record) VALUES (?1, ?2, ?3)"
    "  ON CONFLICT (job, round) DO UPDATE SET record = ?3";
constexpr const char* kForgetValidations = "DELETE FROM validations WHERE job = ?1 AND rounds > ?2";
constexpr const char* kPutValidation =
    "INSERT INTO validations (job, rounds, record) VALUES (?1, ?2, ?3)"
    "  ON CONFLICT (job, rounds) DO UPDATE SET record = ?3";
constexpr const char* kValidationCount = "SELECT count(*) FROM validations WHERE job = ?1";
constexpr const char* kHalveValidations =
    "DELETE FROM validations WHERE job = ?1 AND rounds IN (SELECT rounds FROM ("
    "  SELECT rounds, row_number() OVER (ORDER BY rounds DESC) AS place FROM validations"
    "  WHERE job = ?1) AS placed WHERE place % 2 = 0)";
constexpr const char* kValidations =
    "SELECT record FROM validations WHERE job = ?1"
    "  AND ?1 NOT IN (SELECT job FROM forgotten) ORDER BY rounds";
constexpr const char* kPutDecision =
    "INSERT INTO decisions (job, plan_version, axis, record) VALUES (?1, ?2, ?3, ?4)"
    "  ON CONFLICT (job, plan_version, axis) DO UPDATE SET record = ?4";
constexpr const char* kPutNode =
    "INSERT INTO nodes (name, record) VALUES (?1, ?2)"
    "  ON CONFLICT (name) DO UPDATE SET record = ?2";
constexpr const char* kDropNode = "DELETE FROM nodes WHERE name = ?1";
constexpr const char* kPutMemory =
    "INSERT INTO memories (job, memory) VALUES (?1, ?2)"
    "  ON CONFLICT (job) DO UPDATE SET memory = ?2";
constexpr const char* kDropMemory = "DELETE FROM memories WHERE job = ?1";
constexpr const char* kMemories = "SELECT job, memory FROM memories ORDER BY job";
constexpr const char* kPutPrior =
    "INSERT INTO priors (key, number, prior) VALUES (?1, ?2, ?3)"
    "  ON CONFLICT (key) DO UPDATE SET number = ?2, prior = ?3";
constexpr const char* kDropPrior = "DELETE FROM priors WHERE key = ?1";
constexpr const char* kPriors = "SELECT key, number, prior FROM priors ORDER BY key";
constexpr const char* kJobById = "SELECT spec, record, id, name FROM jobs WHERE id = ?1";
constexpr const char* kJobByName = "SELECT spec, record, id, name FROM jobs WHERE name = ?1";
constexpr const char* kJobByRequest =
    "SELECT spec, record, id, name FROM jobs WHERE request_id = ?1";
constexpr const char* kUnfinished =
    "SELECT spec, record, id, name FROM jobs WHERE is_final = 0 ORDER BY id";
constexpr const char* kRoundsAbove =
    "SELECT record FROM rounds WHERE job = ?1 AND round > ?2"
    "  AND ?1 NOT IN (SELECT job FROM forgotten) ORDER BY round LIMIT ?4";
constexpr const char* kDecisionsAbove =
    "SELECT record FROM decisions WHERE job = ?1 AND (plan_version, axis) > (?2, ?3)"
    "  AND ?1 NOT IN (SELECT job FROM forgotten) ORDER BY plan_version, axis LIMIT ?4";
constexpr const char* kDecision =
    "SELECT record FROM decisions WHERE job = ?1 AND plan_version = ?2 AND axis = ?3"
    "  AND ?1 NOT IN (SELECT job FROM forgotten)";
constexpr const char* kDecisionsNewest =
    "SELECT record FROM decisions WHERE job = ?1"
    "  AND ?1 NOT IN (SELECT job FROM forgotten) ORDER BY plan_version DESC, axis DESC LIMIT ?2";
constexpr const char* kRoundFrom =
    "SELECT record FROM rounds WHERE job = ?1 AND round >= ?2"
    "  AND ?1 NOT IN (SELECT job FROM forgotten) ORDER BY round LIMIT ?3";
constexpr const char* kRoundLast =
    "SELECT record FROM rounds WHERE job = ?1 ORDER BY round DESC LIMIT 1";
// Counts no further than ?3: the question is only whether there are so many.
constexpr const char* kRoundCount =
    "SELECT count(*) FROM (SELECT 1 FROM rounds WHERE job = ?1 AND round >= ?2 LIMIT ?3) AS "
    "counted";
// Ids are given once: `meta` knows the highest of those that were deleted.
constexpr const char* kLastId =
    "SELECT max(value, (SELECT coalesce(max(id), 0) FROM jobs)) FROM meta WHERE key = "
    "'last_job_id'";
constexpr const char* kNumbers =
    "SELECT stem, max(number) FROM"
    "  (SELECT stem, number FROM numbered UNION ALL SELECT stem, number FROM names) AS given"
    "  GROUP BY stem";
constexpr const char* kNumbersFrom = "SELECT value FROM meta WHERE key = 'names_from'";
constexpr const char* kRetentionTime = "SELECT value FROM meta WHERE key = 'retention_time'";
constexpr const char* kKeepRetentionTime =
    "INSERT INTO meta (key, value) VALUES ('retention_time', ?1)"
    "  ON CONFLICT (key) DO UPDATE SET value = ?1";
constexpr const char* kNewestUpdate = "SELECT coalesce(max(update_time), 0) FROM jobs";
constexpr const char* kNodes = "SELECT record, name FROM nodes ORDER BY name";
constexpr const char* kBlobsBehind =
    "SELECT id, blobs FROM jobs WHERE id > ?1"
    "  UNION ALL SELECT id, blobs FROM set_aside WHERE id > ?1 ORDER BY id LIMIT ?2";
// Ids are given once: see kLastId.
constexpr const char* kKeepAside =
    "INSERT INTO set_aside (id, name, reason, blobs, spec, record) "
    "SELECT id, name, ?2, blobs, spec, record FROM jobs WHERE id = ?1 "
    "ON CONFLICT (id) DO UPDATE SET name = excluded.name, reason = ?2, blobs = excluded.blobs,"
    "  spec = excluded.spec, record = excluded.record";
constexpr const char* kKeepId = "UPDATE meta SET value = max(value, ?1) WHERE key = 'last_job_id'";
constexpr const char* kDropJob = "DELETE FROM jobs WHERE id = ?1";
constexpr const char* kRecordWithOtherBlobs =
    "SELECT spec, record FROM jobs WHERE id = ?1 AND blobs <> ?2";

// Reads the present row of a query for "spec, record".
absl::StatusOr<job::JobRecord> ReadJob(const Statement& row) {
  absl::StatusOr<job::JobRecord> record = codec::DecodeJob(row.ColumnBytes(1));
  if (record.ok()) record->spec = row.ColumnBytes(0);
  return record;
}

// What `read` (const Statement& -> StatusOr) makes of each row of a bound query.
template <typename Read>
auto ReadAll(const absl::StatusOr<Statement*>& query, const Read& read)
    -> absl::StatusOr<std::vector<typename decltype(read(**query))::value_type>> {
  if (!query.ok()) return query.status();
  std::vector<typename decltype(read(**query))::value_type> records;
  const absl::Status status = ForEachRow(**query, [&](const Statement& row) {
    auto record = read(row);
    if (record.ok()) records.push_back(*std::move(record));
    return record.status();
  });
  if (!status.ok()) return status;
  return records;
}

// The same where each row is a record that `decode` reads.
template <typename Decode>
auto DecodeAll(const absl::StatusOr<Statement*>& query, const Decode& decode) {
  return ReadAll(query, [&](const Statement& row) { return decode(row.ColumnBytes(0)); });
}

// Drops the item beyond the page, which says only that there is another page.
template <typename T, typename Token>
Page<T> PageOf(std::vector<T> items, int page_size, const Token& token_after) {
  Page<T> page{.items = std::move(items), .next = ""};
  if (page.items.size() > static_cast<std::size_t>(page_size)) {
    page.items.pop_back();
    page.next = token_after(page.items.back());
  }
  return page;
}

}  // namespace

absl::Status SqlStore::Write(const job::WriteBatch& batch) {
  superseding_.clear();
  const absl::Status status = statements_.Transact([&] { return PutAll(batch); });
  if (!status.ok()) return status;
  // Not before the commit: until then the record that names them may be the one that stays.
  std::move(superseding_.begin(), superseding_.end(), std::back_inserter(superseded_));
  if (superseded_.size() > kSupersededMax) {
    superseded_.erase(superseded_.begin(),
                      superseded_.end() - static_cast<std::ptrdiff_t>(kSupersededMax));
  }
  return absl::OkStatus();
}

absl::Status SqlStore::PutAll(const job::WriteBatch& batch) {
  for (const job::JobRecord& record : batch.jobs) {
    const absl::Status status = PutJob(record);
    if (!status.ok()) return status;
  }
  for (const job::RoundsFrom& rounds : batch.forgotten) {
    const std::int64_t job = Signed(rounds.job.value);
    absl::Status status = statements_.Run(kForgetRounds, job, Signed(rounds.from));
    if (status.ok()) status = statements_.Run(kForgetValidations, job, Signed(rounds.from));
    if (!status.ok()) return status;
  }
  for (const job::RoundRecord& record : batch.rounds) {
    const absl::Status status =
        statements_.Run(kPutRound, Signed(record.job.value), Signed(record.round),
                        Blob{codec::EncodeRound(record)});
    if (!status.ok()) return status;
  }
  for (const job::ValidationRecord& record : batch.validations) {
    const absl::Status status = PutValidation(record);
    if (!status.ok()) return status;
  }
  for (const job::DecisionRecord& record : batch.decisions) {
    const absl::Status status = statements_.Run(
        kPutDecision, Signed(record.job.value), Signed(record.decision.plan_version),
        static_cast<std::int64_t>(record.decision.axis), Blob{codec::EncodeDecision(record)});
    if (!status.ok()) return status;
  }
  for (const job::NodeRecord& record : batch.nodes) {
    const absl::Status status = PutNode(record);
    if (!status.ok()) return status;
  }
  for (const job::MemoryRecord& record : batch.memories) {
    const absl::Status status = PutMemory(record);
    if (!status.ok()) return status;
  }
  for (const job::PriorRecord& record : batch.priors) {
    const absl::Status status = PutPrior(record);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status SqlStore::PutNode(const job::NodeRecord& record) {
  // Only marks are kept: what else is known of a node comes from its agent.
  if (!record.cordoned && !record.draining) return statements_.Run(kDropNode, record.name);
  return statements_.Run(kPutNode, record.name, Blob{codec::EncodeNode(record)});
}

absl::Status SqlStore::PutValidation(const job::ValidationRecord& record) {
  const std::int64_t job = Signed(record.job.value);
  const absl::Status status = statements_.Run(kPutValidation, job, Signed(record.rounds),
                                              Blob{codec::EncodeValidation(record)});
  if (!status.ok()) return status;
  const absl::StatusOr<std::int64_t> count = statements_.Number(kValidationCount, 0, job);
  if (!count.ok()) return count.status();
  return *count <= kValidationsMax ? absl::OkStatus() : statements_.Run(kHalveValidations, job);
}

absl::Status SqlStore::PutMemory(const job::MemoryRecord& record) {
  const std::int64_t job = Signed(record.job.value);
  if (record.memory.empty()) return statements_.Run(kDropMemory, job);
  return statements_.Run(kPutMemory, job, Blob{record.memory});
}

absl::Status SqlStore::PutPrior(const job::PriorRecord& record) {
  if (record.prior.empty()) return statements_.Run(kDropPrior, record.key);
  return statements_.Run(kPutPrior, record.key, Signed(record.number), Blob{record.prior});
}

absl::Status SqlStore::PutJob(const job::JobRecord& record) {
  std::string blobs;
  for (const std::string& hash : BlobsOf(record)) blobs += hash;
  // One that trains has none yet, and is written often; one that is over may have dropped its own.
  const bool may_supersede = record.checkpoint || job::IsFinal(record.state);
  absl::Status status = may_supersede ? NoteSuperseded(record, blobs) : absl::OkStatus();
  if (!status.ok()) return status;
  status = statements_.Run(
      kPutJob, Signed(record.id.value), record.name, record.request_id,
      static_cast<std::int64_t>(record.state), std::int64_t{job::IsFinal(record.state)},
      std::int64_t{record.settings.priority}, Signed(record.revision), record.create_time,
      record.update_time, EndTimeOf(record), Blob{PackLabels(record.labels)}, blobs,
      Blob{record.spec}, Blob{codec::EncodeJob(record)});
  if (status.code() == absl::StatusCode::kAlreadyExists) {
    return absl::AlreadyExistsError("job " + record.name +
                                    ": its name or request id is taken by another job");
  }
  return status;
}

// `blobs`: of the record. A record of before that cannot be read names nothing that could go.
absl::Status SqlStore::NoteSuperseded(const job::JobRecord& record, const std::string& blobs) {
  const absl::StatusOr<Statement*> query =
      statements_.Bind(kRecordWithOtherBlobs, Signed(record.id.value), blobs);
  if (!query.ok()) return query.status();
  return ForEachRow(**query, [&](const Statement& row) {
    const absl::StatusOr<job::JobRecord> before = ReadJob(row);
    if (!before.ok()) return absl::OkStatus();
    const auto note = [&](const job::CheckpointRecord& checkpoint) {
      if (blobs.find(checkpoint.sha256) == blobs.npos) superseding_.push_back(checkpoint.sha256);
    };
    if (before->checkpoint) note(*before->checkpoint);
    for (const job::CheckpointRecord& former : before->former_checkpoints) note(former);
    return absl::OkStatus();
  });
}

absl::StatusOr<job::JobRecord> SqlStore::FindOne(const char* sql, const std::string& key,
                                                 const std::string& what) {
  const std::size_t before = set_aside_.size();
  auto found = ReadReadable(statements_.Bind(sql, key));
  if (!found.ok()) return found.status();
  if (!found->empty()) return std::move(found->front());
  if (set_aside_.size() == before) {
    return absl::NotFoundError(what + " '" + key + "': no such job");
  }
  return absl::DataLossError(what + " '" + key +
                             "': it was set aside: " + set_aside_.back().reason);
}

absl::StatusOr<std::vector<job::JobRecord>> SqlStore::ReadReadable(
    const absl::StatusOr<Statement*>& query) {
  if (!query.ok()) return query.status();
  std::vector<job::JobRecord> readable;
  std::vector<SetAsideJob> unreadable;
  absl::Status status = ForEachRow(**query, [&](const Statement& row) {
    absl::StatusOr<job::JobRecord> record = ReadJob(row);
    if (record.ok()) {
      readable.push_back(*std::move(record));
    } else {
      unreadable.push_back({.id = JobId{static_cast<std::uint64_t>(row.ColumnInt(2))},
                            .name = row.ColumnBytes(3),
                            .reason = std::string(record.status().message())});
    }
    return absl::OkStatus();
  });
  for (SetAsideJob& job : unreadable) {
    if (status.ok()) status = SetAside(std::move(job));
  }
  if (!status.ok()) return status;
  return readable;
}

absl::Status SqlStore::SetAside(SetAsideJob job) {
  const std::int64_t id = Signed(job.id.value);
  const absl::Status status = statements_.Transact([&] {
    absl::Status kept = statements_.Run(kKeepAside, id, job.reason);
    if (kept.ok()) kept = statements_.Run(kKeepId, id);
    if (kept.ok()) kept = KeepName(statements_, id);
    return kept.ok() ? statements_.Run(kDropJob, id) : kept;
  });
  if (status.ok()) set_aside_.push_back(std::move(job));
  return status;
}

absl::StatusOr<job::JobRecord> SqlStore::FindJob(const std::string& name) {
  return FindOne(kJobByName, name, "job");
}

absl::StatusOr<job::JobRecord> SqlStore::FindJobByRequest(const std::string& request_id) {
  return FindOne(kJobByRequest, request_id, "request");
}

absl::StatusOr<std::vector<job::JobRecord>> SqlStore::ReadJobs(
    const std::vector<std::int64_t>& ids) {
  std::vector<job::JobRecord> jobs;
  for (const std::int64_t id : ids) {
    auto found = ReadReadable(statements_.Bind(kJobById, id));
    if (!found.ok()) return found.status();
    std::move(found->begin(), found->end(), std::back_inserter(jobs));
  }
  return jobs;
}

absl::StatusOr<Page<job::JobRecord>> SqlStore::ListJobs(const JobQuery& query) {
  TACTUS_CHECK(query.page_size > 0);
  auto conditions = ParseJobFilter(query.filter);
  if (!conditions.ok()) return conditions.status();
  const absl::StatusOr<JobOrder> order = ParseJobOrder(query.order_by);
  if (!order.ok()) return order.status();
  const std::string name = "jobs\n" + query.filter + "\n" + query.order_by;
  const Listing listing{.server = server_id_, .query = name};
  JobSelection selection{.conditions = *std::move(conditions),
                         .order = *order,
                         .after = {},
                         .rows_max = query.page_size + 1};
  if (!query.page_token.empty()) {
    absl::StatusOr<PagePosition> after = DecodePageToken(listing, query.page_token);
    if (!after.ok()) return after.status();
    selection.after = *std::move(after);
  }
  const absl::StatusOr<std::unique_ptr<Statement>> select = SelectJobIds(*database_, selection);
  if (!select.ok()) return select.status();
  const auto ids = ReadAll(select->get(), [](const Statement& row) {
    return absl::StatusOr<std::int64_t>(row.ColumnInt(0));
  });
  if (!ids.ok()) return ids.status();
  auto jobs = ReadJobs(*ids);
  if (!jobs.ok()) return jobs.status();
  // Without those that were just set aside the page is another one.
  if (jobs->size() < ids->size()) return ListJobs(query);
  return PageOf(*std::move(jobs), query.page_size, [&](const job::JobRecord& last) {
    return EncodePageToken(listing, JobPosition(*order, last));
  });
}

absl::StatusOr<std::vector<job::JobRecord>> SqlStore::UnfinishedJobs() {
  return ReadReadable(statements_.Bind(kUnfinished));
}

absl::StatusOr<std::vector<job::MemoryRecord>> SqlStore::Memories() {
  return ReadAll(statements_.Bind(kMemories), [](const Statement& row) {
    return absl::StatusOr<job::MemoryRecord>(
        {.job = JobId{static_cast<std::uint64_t>(row.ColumnInt(0))}, .memory = row.ColumnBytes(1)});
  });
}

absl::StatusOr<std::vector<job::PriorRecord>> SqlStore::Priors() {
  return ReadAll(statements_.Bind(kPriors), [](const Statement& row) {
    return absl::StatusOr<job::PriorRecord>({.key = row.ColumnBytes(0),
                                             .number = static_cast<std::uint64_t>(row.ColumnInt(1)),
                                             .prior = row.ColumnBytes(2)});
  });
}

template <typename Decode, typename Place>
auto SqlStore::ListHistory(const HistoryPage& asked, const Decode& decode, const Place& place)
    -> absl::StatusOr<Page<typename decltype(decode(""))::value_type>> {
  TACTUS_CHECK(asked.page_size > 0);
  const std::string name = asked.query + "\n" + std::to_string(asked.job.value);
  const Listing listing{.server = server_id_, .query = name};
  PagePosition after{.number = -1, .second = -1, .text = {}};
  if (!asked.page_token.empty()) {
    const absl::StatusOr<PagePosition> decoded = DecodePageToken(listing, asked.page_token);
    if (!decoded.ok()) return decoded.status();
    after = *decoded;
  }
  after.number = std::max(after.number, asked.above);
  auto records = DecodeAll(statements_.Bind(asked.sql, Signed(asked.job.value), after.number,
                                            after.second, std::int64_t{asked.page_size} + 1),
                           decode);
  if (!records.ok()) return records.status();
  return PageOf(*std::move(records), asked.page_size,
                [&](const auto& last) { return EncodePageToken(listing, place(last)); });
}

absl::StatusOr<Page<job::RoundRecord>> SqlStore::ListRounds(JobId job, int page_size,
                                                            const std::string& page_token,
                                                            std::uint64_t first_round) {
  const std::int64_t above = Signed(std::min(first_round, kNumberMax)) - 1;
  return ListHistory({kRoundsAbove, "rounds", job, page_size, page_token, above},
                     codec::DecodeRound, [](const job::RoundRecord& last) {
                       return PagePosition{.number = Signed(last.round), .second = 0, .text = {}};
                     });
}

absl::StatusOr<Page<job::DecisionRecord>> SqlStore::ListDecisions(JobId job, int page_size,
                                                                  const std::string& page_token) {
  return ListHistory({kDecisionsAbove, "decisions", job, page_size, page_token},
                     codec::DecodeDecision, [](const job::DecisionRecord& last) {
                       return PagePosition{.number = Signed(last.decision.plan_version),
                                           .second = static_cast<std::int64_t>(last.decision.axis),
                                           .text = {}};
                     });
}

absl::StatusOr<job::DecisionRecord> SqlStore::FindDecision(JobId job,
                                                           const policies::DecisionKey& key) {
  auto found = DecodeAll(
      statements_.Bind(kDecision, Signed(job.value), Signed(std::min(key.plan_version, kNumberMax)),
                       static_cast<std::int64_t>(key.axis)),
      codec::DecodeDecision);
  if (!found.ok()) return found.status();
  if (found->empty()) return absl::NotFoundError("decision " + policies::IdOf(key) + ": none");
  return std::move(found->front());
}

absl::StatusOr<std::vector<job::DecisionRecord>> SqlStore::NewestDecisions(JobId job, int count) {
  TACTUS_CHECK(count > 0);
  auto newest =
      DecodeAll(statements_.Bind(kDecisionsNewest, Signed(job.value), std::int64_t{count}),
                codec::DecodeDecision);
  if (newest.ok()) std::ranges::reverse(*newest);
  return newest;
}

absl::StatusOr<std::vector<job::RoundRecord>> SqlStore::SampleRounds(JobId job, int points_max,
                                                                     std::uint64_t first_round) {
  TACTUS_CHECK(points_max >= 2);
  const std::int64_t id = Signed(job.value);
  const std::int64_t all = points_max;
  const std::int64_t begin = Signed(std::min(first_round, kNumberMax));
  const absl::StatusOr<std::int64_t> count = statements_.Number(kRoundCount, 0, id, begin, all + 1);
  if (!count.ok()) return count.status();
  const auto from = [&](std::int64_t round, std::int64_t limit) {
    return DecodeAll(statements_.Bind(kRoundFrom, id, round, limit), codec::DecodeRound);
  };
  if (*count <= all) return from(begin, all);
  auto points = from(begin, 1);
  if (!points.ok() || points->empty()) return points;
  const auto last = DecodeAll(statements_.Bind(kRoundLast, id), codec::DecodeRound);
  if (!last.ok()) return last.status();
  const std::uint64_t first = points->front().round;
  const std::uint64_t span = last->front().round - first;
  for (std::int64_t i = 1; i < all; ++i) {
    // In 128 bits: a round's number times a number of points may pass 64.
    const std::uint64_t target =
        first + static_cast<std::uint64_t>(static_cast<unsigned __int128>(span) *
                                           static_cast<std::uint64_t>(i) /
                                           static_cast<std::uint64_t>(all - 1));
    if (target <= points->back().round) continue;  // a gap between rounds: the same one again
    auto point = from(Signed(target), 1);
    if (!point.ok()) return point.status();
    std::move(point->begin(), point->end(), std::back_inserter(*points));
  }
  return points;
}

absl::StatusOr<std::vector<job::ValidationRecord>> SqlStore::ListValidations(JobId job) {
  return DecodeAll(statements_.Bind(kValidations, Signed(job.value)), codec::DecodeValidation);
}

absl::StatusOr<std::uint64_t> SqlStore::LastJobId() {
  const absl::StatusOr<std::int64_t> last = statements_.Number(kLastId, 0);
  if (!last.ok()) return last.status();
  return static_cast<std::uint64_t>(*last);
}

absl::StatusOr<JobNumbers::Given> SqlStore::Numbers() {
  const absl::StatusOr<std::int64_t> floor = statements_.Number(kNumbersFrom, 0);
  if (!floor.ok()) return floor.status();
  const absl::StatusOr<Statement*> query = statements_.Bind(kNumbers);
  if (!query.ok()) return query.status();
  JobNumbers::Given given{.floor = static_cast<std::uint64_t>(*floor)};
  const absl::Status status = ForEachRow(**query, [&](const Statement& row) {
    given.last[row.ColumnBytes(0)] = static_cast<std::uint64_t>(row.ColumnInt(1));
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return given;
}

absl::StatusOr<protocol::CoordinatorIdentity> SqlStore::BeginEpoch(std::uint64_t at_least) {
  const absl::StatusOr<std::uint64_t> epoch = database_->BeginEpoch(at_least);
  if (!epoch.ok()) return epoch.status();
  return protocol::CoordinatorIdentity{.server = server_id_, .epoch = *epoch};
}

absl::StatusOr<std::vector<job::NodeRecord>> SqlStore::Nodes() {
  return ReadAll(statements_.Bind(kNodes), [](const Statement& row) {
    absl::StatusOr<job::NodeRecord> node = codec::DecodeNode(row.ColumnBytes(0));
    // Whatever was said of it: nothing new starts there until it is said again.
    if (!node.ok()) node = job::NodeRecord{.name = row.ColumnBytes(1), .cordoned = true};
    return node;
  });
}

absl::Status SqlStore::DeleteJob(JobId job) { return pruner_.Delete(Signed(job.value)); }

absl::StatusOr<NamedBlobs> SqlStore::BlobsInUse(JobId after, int jobs_max) {
  TACTUS_CHECK(jobs_max > 0);
  NamedBlobs named;
  int jobs = 0;
  const absl::StatusOr<Statement*> query =
      statements_.Bind(kBlobsBehind, Signed(after.value), std::int64_t{jobs_max});
  if (!query.ok()) return query.status();
  const absl::Status status = ForEachRow(**query, [&](const Statement& row) {
    const std::string hashes = row.ColumnBytes(1);
    for (std::size_t at = 0; at < hashes.size(); at += kHashDigits) {
      named.sha256.push_back(hashes.substr(at, kHashDigits));
    }
    named.last = JobId{static_cast<std::uint64_t>(row.ColumnInt(0))};
    ++jobs;
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  if (jobs < jobs_max) named.last.reset();
  std::sort(named.sha256.begin(), named.sha256.end());
  named.sha256.erase(std::unique(named.sha256.begin(), named.sha256.end()), named.sha256.end());
  return named;
}

std::vector<std::string> SqlStore::TakeSuperseded() { return std::exchange(superseded_, {}); }

std::vector<SetAsideJob> SqlStore::TakeSetAside() { return std::exchange(set_aside_, {}); }

absl::StatusOr<job::WallTime> SqlStore::RetentionTime() {
  const absl::StatusOr<std::int64_t> kept = statements_.Number(kRetentionTime, 0);
  if (!kept.ok() || *kept != 0) return kept;
  return statements_.Number(kNewestUpdate, 0);
}

absl::Status SqlStore::KeepRetentionTime(job::WallTime time) {
  return statements_.Transact([&] { return statements_.Run(kKeepRetentionTime, time); });
}

absl::StatusOr<bool> SqlStore::Prune(const Retention& retention, job::WallTime now,
                                     std::vector<GoneJob>& gone) {
  return pruner_.Piece(retention, now, gone);
}

absl::StatusOr<std::unique_ptr<StoreCopy>> SqlStore::BeginCopy(const std::string& path) {
  return database_->BeginCopy(path);
}

absl::StatusOr<std::vector<std::string>> SqlStore::CheckIntegrity() {
  return FindProblems(statements_);
}

}  // namespace tactus::store
