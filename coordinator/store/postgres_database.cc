#include "coordinator/store/postgres_database.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <utility>

#include "base/check.h"
#include "coordinator/store/postgres_copy.h"

namespace tactus::store {
namespace {

std::string Milliseconds(Duration span) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(span).count());
}

}  // namespace

std::string NumberedParameters(const std::string& sql) {
  std::string numbered;
  int last = 0;
  for (std::size_t i = 0; i < sql.size(); ++i) {
    if (sql[i] != '?') {
      numbered += sql[i];
      continue;
    }
    numbered += '$';
    const bool has_number =
        i + 1 < sql.size() && std::isdigit(static_cast<unsigned char>(sql[i + 1]));
    if (!has_number) numbered += std::to_string(++last);
  }
  return numbered;
}

absl::StatusOr<PostgresConnection> DialStore(const PostgresDial& dial, Duration lease) {
  absl::StatusOr<PostgresConnection> connection = DialPostgres(dial);
  if (!connection.ok()) return connection;
  // Durable means durable, whatever the server's own file says; what waits longer stays.
  const absl::Status set =
      RunText(connection->get(),
              "SET idle_in_transaction_session_timeout = " + Milliseconds(lease) +
                  ";SET lock_timeout = " + Milliseconds(2 * lease) +
                  ";SELECT set_config('synchronous_commit', 'on', false)"
                  "  WHERE current_setting('synchronous_commit') IN ('off', 'local')")
          .status();
  if (!set.ok()) return set;
  return connection;
}

// Its result is whole after the first step, so that other statements may run between the rows.
class PostgresStatement final : public Statement {
 public:
  PostgresStatement(PostgresDatabase& database, const std::string& sql, std::string name)
      : database_(database), sql_(NumberedParameters(sql)), name_(std::move(name)) {}

  void BindInt(int parameter, std::int64_t value) override { parameters_.SetInt(parameter, value); }
  void BindText(int parameter, const std::string& value) override {
    parameters_.SetText(parameter, value);
  }
  void BindBlob(int parameter, const std::string& value) override {
    parameters_.SetBlob(parameter, value);
  }

  absl::StatusOr<bool> Step() override {
    if (result_ == nullptr) {
      absl::StatusOr<PostgresResult> result = database_.Run(*this);
      if (!result.ok()) {
        Reset();
        return result.status();
      }
      result_ = *std::move(result);
      row_ = -1;
    }
    if (++row_ < PQntuples(result_.get())) return true;
    Reset();
    return false;
  }

  void Reset() override {
    result_.reset();
    parameters_.Clear();
  }

  std::int64_t ColumnInt(int column) const override { return IntAt(result_.get(), row_, column); }
  std::string ColumnBytes(int column) const override {
    return BytesAt(result_.get(), row_, column);
  }

 private:
  friend class PostgresDatabase;

  PostgresDatabase& database_;
  const std::string sql_;
  const std::string name_;         // empty: it runs once
  std::uint64_t prepared_on_ = 0;  // see PostgresDatabase::connections_
  PostgresParameters parameters_;
  PostgresResult result_;  // null: it did not run yet
  int row_ = -1;
};

PostgresDatabase::PostgresDatabase(PostgresConnection connection, Options options)
    : options_(std::move(options)),
      epoch_(options_.epoch),
      connection_(std::move(connection)),
      keeper_(std::make_unique<LeaseKeeper>(options_.lease)) {}

PostgresDatabase::~PostgresDatabase() {
  keeper_.reset();                            // or it would take the end for a loss
  if (broken() && !Reconnect().ok()) return;  // it runs out
  Rollback();
  EndTerm(connection_.get(), epoch_).IgnoreError();
}

bool PostgresDatabase::broken() const {
  return connection_ == nullptr || PQstatus(connection_.get()) != CONNECTION_OK;
}

absl::Status PostgresDatabase::Reconnect() {
  connection_.reset();
  absl::StatusOr<PostgresConnection> made = DialStore(options_.dial, options_.claim.lease);
  if (!made.ok()) return made.status();
  connection_ = *std::move(made);
  ++connections_;
  return absl::OkStatus();
}

absl::Status PostgresDatabase::Noted(absl::Status status) {
  if (absl::IsAborted(status)) keeper_->Lose(status);
  return status;
}

absl::StatusOr<std::unique_ptr<Statement>> PostgresDatabase::Prepare(const std::string& sql,
                                                                     Use use) {
  std::string name;
  if (use == Use::kOften) name = "s" + std::to_string(++statements_);
  return std::make_unique<PostgresStatement>(*this, sql, std::move(name));
}

// Outside of a transaction there are only questions, which are asked again where the connection
// turns out to be broken. Within one, what came before is lost with it.
absl::StatusOr<PostgresResult> PostgresDatabase::Run(PostgresStatement& statement) {
  if (broken()) {
    if (open_) return absl::UnavailableError("store: the connection broke");
    const absl::Status status = Reconnect();
    if (!status.ok()) return status;
  }
  absl::StatusOr<PostgresResult> result = RunOnConnection(statement);
  if (!result.ok() && !open_ && broken()) {
    const absl::Status status = Reconnect();
    if (!status.ok()) return status;
    result = RunOnConnection(statement);
  }
  if (result.ok()) changes_ = RowsChanged(result->get());
  return result;
}

absl::StatusOr<PostgresResult> PostgresDatabase::RunOnConnection(PostgresStatement& statement) {
  PGconn* const connection = connection_.get();
  if (statement.name_.empty()) return RunOnce(connection, statement.sql_, statement.parameters_);
  if (statement.prepared_on_ != connections_) {
    const absl::Status status =
        PreparePostgres(connection, statement.name_, statement.sql_, statement.parameters_);
    if (!status.ok()) return status;
    statement.prepared_on_ = connections_;
  }
  return RunPrepared(connection, statement.name_, statement.parameters_);
}

absl::Status PostgresDatabase::Begin() {
  TACTUS_CHECK(!open_);
  absl::Status status = broken() ? Reconnect() : absl::OkStatus();
  if (!status.ok()) return status;
  status = BeginWrite(connection_.get(), epoch_);
  // One that broke since the last transaction: nothing is lost yet.
  if (!status.ok() && broken()) {
    status = Reconnect();
    if (status.ok()) status = BeginWrite(connection_.get(), epoch_);
  }
  open_ = status.ok();
  return Noted(std::move(status));
}

absl::Status PostgresDatabase::Commit() {
  open_ = false;
  if (broken()) return absl::UnavailableError("store: the connection broke");
  const absl::StatusOr<PostgresResult> result = RunText(connection_.get(), "COMMIT");
  if (!result.ok()) return result.status();
  // A transaction in which something failed is rolled back by this, without an error.
  if (std::string_view(PQcmdStatus(result->get())) == "COMMIT") return absl::OkStatus();
  return absl::InternalError("store: the transaction was rolled back");
}

void PostgresDatabase::Rollback() {
  open_ = false;
  if (broken() || PQtransactionStatus(connection_.get()) == PQTRANS_IDLE) return;
  RunText(connection_.get(), "ROLLBACK").IgnoreError();
}

absl::StatusOr<std::uint64_t> PostgresDatabase::BeginEpoch(std::uint64_t at_least) {
  absl::Status status = broken() ? Reconnect() : absl::OkStatus();
  if (!status.ok()) return status;
  const absl::StatusOr<std::uint64_t> next =
      BeginNextTerm(connection_.get(), options_.claim, epoch_, at_least);
  if (!next.ok()) return Noted(next.status());
  epoch_ = *next;
  return next;
}

absl::StatusOr<std::unique_ptr<StoreCopy>> PostgresDatabase::BeginCopy(const std::string& path) {
  return BeginPostgresCopy(options_.dial, path);
}

}  // namespace tactus::store
