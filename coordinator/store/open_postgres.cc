#include <cstdint>
#include <string>
#include <utility>

#include "base/check.h"
#include "coordinator/store/postgres_database.h"
#include "coordinator/store/postgres_lease.h"
#include "coordinator/store/postgres_schema.h"
#include "coordinator/store/shared_store.h"
#include "coordinator/store/sql_store.h"
#include "runtime/now.h"

namespace tactus::store {
namespace {

absl::StatusOr<std::string> ServerIdOf(PGconn* connection) {
  const absl::StatusOr<PostgresResult> rows = RunText(connection, "SELECT id FROM server");
  if (!rows.ok()) return rows.status();
  if (PQntuples(rows->get()) == 0) {
    return absl::DataLossError("store: the database has no server id");
  }
  return TextAt(rows->get(), 0, 0);
}

// The tables, within the term: a newer program does not change them under a leader.
absl::Status BringUpToDate(PGconn* connection, std::uint64_t epoch) {
  absl::Status status = BeginWrite(connection, epoch);
  if (!status.ok()) return status;
  status = MigratePostgres(connection);
  if (status.ok()) return RunText(connection, "COMMIT").status();
  RunText(connection, "ROLLBACK").IgnoreError();
  return status;
}

}  // namespace

absl::Status SharedStoreOptions::Validate() const { return PostgresName(address).status(); }

std::string NameOf(const SharedStoreOptions& options) {
  const absl::StatusOr<std::string> name = PostgresName(options.address);
  TACTUS_CHECK(name.ok());
  return *name;
}

absl::StatusOr<Candidacy> TryToLead(const SharedStoreOptions& options) {
  absl::StatusOr<std::string> holder = NewHolder();
  if (!holder.ok()) return holder.status();
  const Claim claim{
      .holder = *std::move(holder), .address = options.leader, .lease = options.lease};
  const PostgresDial dial{.address = options.address,
                          .application = "tactus-coordinator " + claim.holder,
                          .silence = options.lease};
  absl::StatusOr<PostgresConnection> connection = DialStore(dial, options.lease);
  if (!connection.ok()) return connection.status();
  absl::Status status = LayPostgresGround(connection->get());
  if (!status.ok()) return status;
  const Instant asked = runtime::Now();
  absl::StatusOr<Term> term = NewestTerm(connection->get());
  if (term.ok() && term->over) term = TakeLead(connection->get(), claim);
  if (!term.ok()) return term.status();
  if (term->holder != claim.holder) return Candidacy{.store = nullptr, .leader = term->address};
  status = BringUpToDate(connection->get(), term->epoch);
  absl::StatusOr<std::string> server_id = ServerIdOf(connection->get());
  if (status.ok()) status = server_id.status();
  if (!status.ok()) {
    EndTerm(connection->get(), term->epoch).IgnoreError();
    return status;
  }
  PostgresDatabase::Options led{.dial = dial,
                                .claim = claim,
                                .epoch = term->epoch,
                                .lease = {.dial = dial,
                                          .holder = claim.holder,
                                          .lease = options.lease,
                                          .renewal = options.renewal,
                                          .taken = asked,
                                          .lost = options.lost}};
  auto database = std::make_unique<PostgresDatabase>(*std::move(connection), std::move(led));
  return Candidacy{.store = std::make_unique<SqlStore>(std::move(database), *std::move(server_id)),
                   .leader = claim.address};
}

}  // namespace tactus::store
