// PostgreSQL as the store's database, for whoever leads.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/store/database.h"
#include "coordinator/store/postgres_connection.h"
#include "coordinator/store/postgres_lease.h"

namespace tactus::store {

class PostgresStatement;

// The statement with its parameters as PostgreSQL has them: ?1 and a plain ? are $1.
std::string NumberedParameters(const std::string& sql);

// A connection for whoever leads or would: its open transactions end by themselves when it stands
// still for as long as a lease, so that they hold nobody up.
absl::StatusOr<PostgresConnection> DialStore(const PostgresDial& dial, Duration lease);

// A connection that breaks is made anew with the next statement that begins something; what was
// under way fails with Unavailable.
class PostgresDatabase final : public Database {
 public:
  struct Options {
    PostgresDial dial{};
    Claim claim{};
    std::uint64_t epoch = 0;  // of the term that the claim has
    LeaseKeeper::Options lease{};
  };

  // connection: of DialStore, with the tables as they are now.
  PostgresDatabase(PostgresConnection connection, Options options);
  ~PostgresDatabase() override;  // ends the term

  absl::StatusOr<std::unique_ptr<Statement>> Prepare(const std::string& sql, Use use) override;
  absl::Status Begin() override;
  absl::Status Commit() override;
  void Rollback() override;
  std::int64_t changes() const override { return changes_; }
  absl::StatusOr<std::uint64_t> BeginEpoch(std::uint64_t at_least) override;
  // The files keep the room of what was deleted, and there is no cheap way to know how much.
  absl::StatusOr<std::optional<std::int64_t>> BytesUsed() override {
    return std::optional<std::int64_t>();
  }
  absl::StatusOr<bool> ReturnSpace() override { return false; }  // autovacuum's business
  bool Leads() const override { return keeper_->Holds(); }
  absl::StatusOr<std::vector<std::string>> CheckFile() override {
    return std::vector<std::string>();
  }
  absl::StatusOr<std::unique_ptr<StoreCopy>> BeginCopy(const std::string& path) override;

 private:
  friend class PostgresStatement;

  absl::StatusOr<PostgresResult> Run(PostgresStatement& statement);
  absl::StatusOr<PostgresResult> RunOnConnection(PostgresStatement& statement);
  bool broken() const;
  absl::Status Reconnect();
  // `status`, of which the keeper of the lease is told when it says that another leads.
  absl::Status Noted(absl::Status status);

  const Options options_;
  std::uint64_t epoch_;
  PostgresConnection connection_;  // null: it broke and could not be made anew
  std::uint64_t connections_ = 1;  // so many were made: of former ones nothing is prepared
  std::uint64_t statements_ = 0;   // so many have names
  bool open_ = false;              // between Begin and what ends it
  std::int64_t changes_ = 0;
  std::unique_ptr<LeaseKeeper> keeper_;  // null: the term is being ended
};

}  // namespace tactus::store
