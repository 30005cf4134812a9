// Who leads, of the coordinators that share a PostgreSQL: the newest row of the table `terms`.
//
// A term has an epoch, which is above that of every former one, and a holder, which is a process.
// It lasts until its row says that it ended, and may be ended when the lease, the one row of
// another table, has run out or is another's: so a renewal does not wait for a transaction. Each
// transaction that writes first adds itself to the row of its term (BeginWrite), where that has not
// ended, and so holds the row until it commits; whoever ends a term waits for that. So no
// transaction of a former term commits after a later one has begun, whatever was paused in between:
// clocks say only when it may be ended.

#pragma once

#include <libpq-fe.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/time.h"
#include "coordinator/store/postgres_connection.h"

namespace tactus::store {

// Of a coordinator that leads or would.
struct Claim {
  std::string holder{};   // of this process, and never another's
  std::string address{};  // where it is reached
  Duration lease{};
};

// A name that no other process has. Error: Unavailable.
absl::StatusOr<std::string> NewHolder();

struct Term {
  std::uint64_t epoch = 0;  // 0: nobody has ever led
  std::string holder{};
  std::string address{};
  bool over = true;  // it has ended, or may be ended
};

// Errors of all of these: as RunText.
absl::StatusOr<Term> NewestTerm(PGconn* connection);

// Ends the newest term, when that is over, and begins one; answers with the newest term then, which
// is another's where that is not over. In a transaction of its own.
absl::StatusOr<Term> TakeLead(PGconn* connection, const Claim& claim);

// Ends the term and begins the next of the same holder, in a transaction of its own: its epoch is
// above `at_least`. Errors: Aborted, the term has ended.
absl::StatusOr<std::uint64_t> BeginNextTerm(PGconn* connection, const Claim& claim,
                                            std::uint64_t epoch, std::uint64_t at_least);

// Begins a transaction that writes. Errors: Aborted, the term has ended; nothing is begun then.
absl::Status BeginWrite(PGconn* connection, std::uint64_t epoch);

// Ends the term, as its holder goes.
absl::Status EndTerm(PGconn* connection, std::uint64_t epoch);

// Aborted, with who leads, as far as the database says.
absl::Status Superseded(PGconn* connection);

// Renews the lease of a holder on a thread and a connection of its own, until it is destroyed or
// lost it.
class LeaseKeeper {
 public:
  struct Options {
    PostgresDial dial{};
    std::string holder{};
    Duration lease{};
    Duration renewal{};
    Instant taken{};  // when the holder asked for it
    std::function<void(const absl::Status&)> lost{};
  };
  explicit LeaseKeeper(Options options);
  ~LeaseKeeper();
  LeaseKeeper(const LeaseKeeper&) = delete;
  LeaseKeeper& operator=(const LeaseKeeper&) = delete;

  // The lease has not run out, by this machine's clock and counted from when it was asked for: no
  // other can have one. Any thread.
  bool Holds() const;

  // Says that it is lost, once. Any thread.
  void Lose(const absl::Status& status);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tactus::store
