#include "coordinator/store/postgres_lease.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <utility>

#include "runtime/control_thread.h"
#include "runtime/now.h"

namespace tactus::store {
namespace {

constexpr const char* kNewest =
    "SELECT epoch, holder, address, ended IS NOT NULL OR until <= clock_timestamp() FROM terms"
    "  ORDER BY epoch DESC LIMIT 1";
// Who ends a term is alone with its row; see BeginWrite.
constexpr const char* kNewestAlone =
    "SELECT epoch, holder, address, ended IS NOT NULL OR until <= clock_timestamp() FROM terms"
    "  ORDER BY epoch DESC LIMIT 1 FOR UPDATE";
// Beginnings of terms take turns.
constexpr const char* kTakeTurn =
    "BEGIN; SELECT pg_advisory_xact_lock(7070, hashtext(current_schema()))";
constexpr const char* kEnd =
    "UPDATE terms SET ended = clock_timestamp() WHERE epoch = $1 AND ended IS NULL";
constexpr const char* kBegin =
    "INSERT INTO terms (epoch, holder, address, begun, until)"
    "  SELECT greatest(coalesce((SELECT max(epoch) FROM terms), 0), $1) + 1, $2, $3, now_,"
    "         now_ + $4 * interval '1 microsecond'"
    "  FROM clock_timestamp() AS now_ RETURNING epoch";
constexpr const char* kRenew =
    "UPDATE terms SET until = clock_timestamp() + $2 * interval '1 microsecond'"
    "  WHERE holder = $1 AND ended IS NULL";

std::int64_t Microseconds(Duration span) {
  return std::chrono::duration_cast<std::chrono::microseconds>(span).count();
}

absl::StatusOr<Term> ReadTerm(PGconn* connection, const char* sql) {
  const absl::StatusOr<PostgresResult> rows = RunText(connection, sql);
  if (!rows.ok()) return rows.status();
  if (PQntuples(rows->get()) == 0) return Term{};
  const PGresult* const row = rows->get();
  return Term{.epoch = std::strtoull(TextAt(row, 0, 0).c_str(), nullptr, 10),
              .holder = TextAt(row, 0, 1),
              .address = TextAt(row, 0, 2),
              .over = TextAt(row, 0, 3) == "t"};
}

// Rows that it ended: 1, or 0 when it has ended already.
absl::StatusOr<std::int64_t> End(PGconn* connection, std::uint64_t epoch) {
  PostgresParameters parameters;
  parameters.SetInt(1, static_cast<std::int64_t>(epoch));
  const absl::StatusOr<PostgresResult> result = RunOnce(connection, kEnd, parameters);
  if (!result.ok()) return result.status();
  return RowsChanged(result->get());
}

absl::StatusOr<std::uint64_t> Begin(PGconn* connection, const Claim& claim,
                                    std::uint64_t at_least) {
  PostgresParameters parameters;
  parameters.SetInt(1, static_cast<std::int64_t>(at_least));
  parameters.SetText(2, claim.holder);
  parameters.SetText(3, claim.address);
  parameters.SetInt(4, Microseconds(claim.lease));
  const absl::StatusOr<PostgresResult> result = RunOnce(connection, kBegin, parameters);
  if (!result.ok()) return result.status();
  return static_cast<std::uint64_t>(IntAt(result->get(), 0, 0));
}

void GiveUp(PGconn* connection) { RunText(connection, "ROLLBACK").IgnoreError(); }

}  // namespace

absl::StatusOr<Term> NewestTerm(PGconn* connection) { return ReadTerm(connection, kNewest); }

absl::StatusOr<Term> TakeLead(PGconn* connection, const Claim& claim) {
  absl::Status status = RunText(connection, kTakeTurn).status();
  if (!status.ok()) {
    GiveUp(connection);
    return status;
  }
  absl::StatusOr<Term> newest = ReadTerm(connection, kNewestAlone);
  if (!newest.ok() || !newest->over) {
    GiveUp(connection);
    return newest;
  }
  status = End(connection, newest->epoch).status();
  absl::StatusOr<std::uint64_t> epoch = 0;
  if (status.ok()) epoch = Begin(connection, claim, newest->epoch);
  if (status.ok()) status = epoch.status();
  if (status.ok()) status = RunText(connection, "COMMIT").status();
  if (!status.ok()) {
    GiveUp(connection);
    return status;
  }
  return Term{.epoch = *epoch, .holder = claim.holder, .address = claim.address, .over = false};
}

absl::StatusOr<std::uint64_t> BeginNextTerm(PGconn* connection, const Claim& claim,
                                            std::uint64_t epoch, std::uint64_t at_least) {
  absl::Status status = RunText(connection, kTakeTurn).status();
  if (!status.ok()) {
    GiveUp(connection);
    return status;
  }
  const absl::StatusOr<std::int64_t> ended = End(connection, epoch);
  if (ended.ok() && *ended == 0) {
    GiveUp(connection);
    return Superseded(connection);
  }
  status = ended.status();
  absl::StatusOr<std::uint64_t> next = 0;
  if (status.ok()) next = Begin(connection, claim, at_least);
  if (status.ok()) status = next.status();
  if (status.ok()) status = RunText(connection, "COMMIT").status();
  if (status.ok()) return next;
  GiveUp(connection);
  return status;
}

absl::Status BeginWrite(PGconn* connection, std::uint64_t epoch) {
  // One message: a transaction costs a round trip less.
  const absl::StatusOr<PostgresResult> result = RunText(
      connection,
      "BEGIN; UPDATE terms SET writes = writes + 1, last_write = clock_timestamp() WHERE epoch = " +
          std::to_string(epoch) + " AND ended IS NULL");
  if (!result.ok()) {
    GiveUp(connection);
    return result.status();
  }
  if (RowsChanged(result->get()) == 1) return absl::OkStatus();
  GiveUp(connection);
  return Superseded(connection);
}

absl::Status EndTerm(PGconn* connection, std::uint64_t epoch) {
  return End(connection, epoch).status();
}

absl::Status Superseded(PGconn* connection) {
  const absl::StatusOr<Term> newest = NewestTerm(connection);
  if (!newest.ok() || newest->epoch == 0) {
    return absl::AbortedError("store: this coordinator leads no more");
  }
  return absl::AbortedError("store: this coordinator leads no more: " + newest->address +
                            " does, since epoch " + std::to_string(newest->epoch));
}

class LeaseKeeper::Impl {
 public:
  explicit Impl(Options options) : options_(std::move(options)) {
    thread_.Post([this] {
      renewed_ = runtime::Now();
      timer_ = std::make_unique<runtime::Timer>(thread_);
      Repeat();
    });
  }
  ~Impl() {
    thread_.RunAndWait([this] { timer_.reset(); });
    thread_.Stop();
  }

  void Lose(const absl::Status& status) {
    if (lost_.exchange(true) || !options_.lost) return;
    options_.lost(status);
  }

 private:
  void Repeat() {
    const absl::Status status = Renew();
    if (status.ok()) renewed_ = runtime::Now();
    if (absl::IsAborted(status)) return Lose(status);
    if (runtime::Now() - renewed_ > options_.lease) {
      return Lose(absl::UnavailableError("store: the lease ran out unrenewed: " +
                                         std::string(status.message())));
    }
    timer_->After(options_.renewal, [this] { Repeat(); });
  }

  absl::Status Renew() {
    if (connection_ == nullptr || PQstatus(connection_.get()) != CONNECTION_OK) {
      absl::StatusOr<PostgresConnection> made = DialPostgres(options_.dial);
      if (!made.ok()) return made.status();
      connection_ = *std::move(made);
    }
    PostgresParameters parameters;
    parameters.SetText(1, options_.holder);
    parameters.SetInt(2, Microseconds(options_.lease));
    // Twice: a term that ended for the next of the same holder while this waited for its row is not
    // seen the first time.
    for (int attempt = 0; attempt < 2; ++attempt) {
      const absl::StatusOr<PostgresResult> result = RunOnce(connection_.get(), kRenew, parameters);
      if (!result.ok()) return result.status();
      if (RowsChanged(result->get()) > 0) return absl::OkStatus();
    }
    return Superseded(connection_.get());
  }

  const Options options_;
  std::atomic<bool> lost_ = false;  // the storage thread may say it as well
  // Of the thread:
  Instant renewed_;
  PostgresConnection connection_;
  std::unique_ptr<runtime::Timer> timer_;
  runtime::ControlThread thread_;  // last: it uses the others
};

LeaseKeeper::LeaseKeeper(Options options) : impl_(std::make_unique<Impl>(std::move(options))) {}
LeaseKeeper::~LeaseKeeper() = default;

void LeaseKeeper::Lose(const absl::Status& status) { impl_->Lose(status); }

}  // namespace tactus::store
