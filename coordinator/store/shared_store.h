// A store that several coordinators share, of which one leads: PostgreSQL's.

#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/time.h"
#include "coordinator/store/store.h"

namespace tactus::store {

struct SharedStoreOptions {
  std::string address{};  // of the database: postgresql://USER@HOST:PORT/NAME, as libpq has it
  std::string leader{};   // where agents and clients reach this coordinator when it leads
  // Who leads, leads for so long after its last word, by the database's clock, and says one in each
  // renewal. Requires: renewal <= lease / 3.
  Duration lease = Seconds(5);
  Duration renewal = Seconds(1);
  // Called once when the store that was opened can be written no more: another leads (Aborted), or
  // the lease has run out unrenewed (Unavailable). From the storage thread or one of the store's.
  std::function<void(const absl::Status&)> lost{};

  // Errors: InvalidArgument, the address.
  absl::Status Validate() const;
};

struct Candidacy {
  std::unique_ptr<Store> store{};  // null: another leads
  std::string leader{};            // where it is
};

// Leads, when nobody does: ends the term of whoever led before, whose writes fail from then on
// however late they come, and begins one. Blocking, for a second or so; called again and again by
// whoever stands by.
//
// The store that it answers with is written with a condition in each transaction: that the term
// goes on. Its term ends with it. Pieces of Prune do not look at Retention::bytes: PostgreSQL
// cannot say what is in use. A copy (BeginCopy) is a database of the embedded kind.
//
// Errors: Unavailable, the database does not answer; PermissionDenied; NotFound, no such database;
// FailedPrecondition, a newer program's tables.
absl::StatusOr<Candidacy> TryToLead(const SharedStoreOptions& options);

// The database, for people, without what is secret. Requires: options that Validate passes.
std::string NameOf(const SharedStoreOptions& options);

}  // namespace tactus::store
