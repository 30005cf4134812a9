#include "coordinator/store/postgres_lease.h"

#include <sys/random.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <utility>

#include "absl/strings/escaping.h"
#include "runtime/control_thread.h"
#include "runtime/now.h"

namespace tactus::store {
namespace {

constexpr std::size_t kHolderBytes = 12;
constexpr const char* kNewest =
    "SELECT epoch, terms.holder, address,"
    "  ended IS NOT NULL OR lease.holder <> terms.holder OR until <= clock_timestamp()"
    "  FROM terms, lease ORDER BY epoch DESC LIMIT 1";
// Who ends a term is alone with its row; see BeginWrite.
constexpr const char* kLockNewest =
    "SELECT epoch FROM terms ORDER BY epoch DESC LIMIT 1 FOR UPDATE";
// Beginnings of terms take turns.
constexpr const char* kTakeTurn =
    "BEGIN; SELECT pg_advisory_xact_lock(7070, hashtext(current_schema()))";
constexpr const char* kEnd =
    "UPDATE terms SET ended = clock_timestamp() WHERE epoch = $1 AND ended IS NULL";
constexpr const char* kBegin =
    "INSERT INTO terms (epoch, holder, address, begun)"
    "  SELECT greatest(coalesce(max(epoch), 0), $1) + 1, $2, $3, clock_timestamp() FROM terms"
    "  RETURNING epoch";
constexpr const char* kTake =
    "UPDATE lease SET holder = $1, until = clock_timestamp() + $2 * interval '1 microsecond'";
constexpr const char* kRenew =
    "UPDATE lease SET until = clock_timestamp() + $2 * interval '1 microsecond' WHERE holder = $1";

std::int64_t Microseconds(Duration span) {
  return std::chrono::duration_cast<std::chrono::microseconds>(span).count();
}

absl::StatusOr<Term> ReadNewest(PGconn* connection) {
  const absl::StatusOr<PostgresResult> rows = RunText(connection, kNewest);
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
  const absl::StatusOr<PostgresResult> result = RunOnce(connection, kBegin, parameters);
  if (!result.ok()) return result.status();
  return static_cast<std::uint64_t>(IntAt(result->get(), 0, 0));
}

// The lease, of whoever holds it or, by kTake, of whoever takes it. Rows that changed.
absl::StatusOr<std::int64_t> Extend(PGconn* connection, const char* sql, const std::string& holder,
                                    Duration lease) {
  PostgresParameters parameters;
  parameters.SetText(1, holder);
  parameters.SetInt(2, Microseconds(lease));
  const absl::StatusOr<PostgresResult> result = RunOnce(connection, sql, parameters);
  if (!result.ok()) return result.status();
  return RowsChanged(result->get());
}

void GiveUp(PGconn* connection) { RunText(connection, "ROLLBACK").IgnoreError(); }

}  // namespace

absl::StatusOr<std::string> NewHolder() {
  std::string bytes(kHolderBytes, '\0');
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return absl::UnavailableError("store: no random numbers");
  }
  return absl::BytesToHexString(bytes);
}

absl::StatusOr<Term> NewestTerm(PGconn* connection) { return ReadNewest(connection); }

absl::StatusOr<Term> TakeLead(PGconn* connection, const Claim& claim) {
  absl::Status status = RunText(connection, kTakeTurn).status();
  // What is true once the row is ours; waiting for it may take as long as a lease.
  if (status.ok()) status = RunText(connection, kLockNewest).status();
  if (!status.ok()) {
    GiveUp(connection);
    return status;
  }
  absl::StatusOr<Term> newest = ReadNewest(connection);
  if (!newest.ok() || !newest->over) {
    GiveUp(connection);
    return newest;
  }
  status = End(connection, newest->epoch).status();
  absl::StatusOr<std::uint64_t> epoch = 0;
  if (status.ok()) epoch = Begin(connection, claim, newest->epoch);
  if (status.ok()) status = epoch.status();
  if (status.ok()) status = Extend(connection, kTake, claim.holder, claim.lease).status();
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
  explicit Impl(Options options) : options_(std::move(options)), renewed_(options_.taken) {
    thread_.Post([this] {
      timer_ = std::make_unique<runtime::Timer>(thread_);
      Repeat();
    });
  }
  ~Impl() {
    thread_.RunAndWait([this] { timer_.reset(); });
    thread_.Stop();
  }

  bool Holds() const { return !lost_ && runtime::Now() - renewed_.load() < options_.lease; }

  void Lose(const absl::Status& status) {
    if (lost_.exchange(true) || !options_.lost) return;
    options_.lost(status);
  }

 private:
  void Repeat() {
    const Instant asked = runtime::Now();
    const absl::Status status = Renew();
    if (status.ok()) renewed_ = asked;
    if (absl::IsAborted(status)) return Lose(status);
    if (!Holds()) {
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
    const absl::StatusOr<std::int64_t> rows =
        Extend(connection_.get(), kRenew, options_.holder, options_.lease);
    if (!rows.ok()) return rows.status();
    if (*rows > 0) return absl::OkStatus();
    return Superseded(connection_.get());
  }

  const Options options_;
  std::atomic<bool> lost_ = false;  // the storage thread may say it as well
  std::atomic<Instant> renewed_;    // written by the thread
  // Of the thread:
  PostgresConnection connection_;
  std::unique_ptr<runtime::Timer> timer_;
  runtime::ControlThread thread_;  // last: it uses the others
};

LeaseKeeper::LeaseKeeper(Options options) : impl_(std::make_unique<Impl>(std::move(options))) {}
LeaseKeeper::~LeaseKeeper() = default;

bool LeaseKeeper::Holds() const { return impl_->Holds(); }

void LeaseKeeper::Lose(const absl::Status& status) { impl_->Lose(status); }

}  // namespace tactus::store
