// Stores for tests that hold for every kind of store: the embedded one, and where
// TACTUS_TEST_POSTGRES names a server (tests/support/postgres.py starts one), PostgreSQL's.

#pragma once

#include <memory>
#include <string>

#include "coordinator/store/shared_store.h"
#include "coordinator/store/store.h"

namespace tactus::store {

bool OnPostgres();

// The database of the server that stands for `path`: a schema of its own.
std::string PostgresAddressOf(const std::string& path);

// At `path` (":memory:": a new one each time), created when it is not there. A lease of a killed
// process is waited for: it is a short one.
std::unique_ptr<Store> OpenOrDie(const std::string& path);
absl::StatusOr<std::unique_ptr<Store>> OpenAny(const std::string& path);

// The embedded one, whatever the others are.
std::unique_ptr<Store> OpenFileOrDie(const std::string& path);

// Changes the database from outside, as another version of the program would. Bytes are written
// x'00ff'.
void RunSql(const std::string& path, const std::string& sql);

// What is short enough for tests.
SharedStoreOptions SharedOptions(const std::string& path);

}  // namespace tactus::store
