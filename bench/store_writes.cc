// What the coordinator's store costs beside bare SQLite: jobs a second in transactions of 64, each
// durable, the same bytes in the same columns; then how long a store with 10,000 unfinished jobs
// takes to open and to read.
//
//   bench_store FOLDER [transactions]

#include <sqlite3.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/check.h"
#include "coordinator/codec/record_codec.h"
#include "coordinator/store/store.h"

namespace tactus::store {
namespace {

constexpr int kTransactionsDefault = 200;
constexpr int kBatch = 64;
constexpr std::uint64_t kUnfinished = 10'000;

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

job::JobRecord Record(std::uint64_t id) {
  job::JobRecord record;
  record.id = JobId{id};
  record.name = "shakespeare-" + std::to_string(id);
  record.uid = "1b4e28ba-2fa1-11d2-883f-" + std::to_string(id);
  record.request_id = std::to_string(id * 0x9e3779b97f4a7c15ULL) + "-4a8e";
  record.spec = std::string(400, 's');
  record.settings.name = "shakespeare";
  record.labels = {{"team", "vision"}, {"stage", "test"}};
  record.create_time = static_cast<job::WallTime>(1'700'000'000'000'000'000 + id);
  record.update_time = record.create_time;
  for (std::uint64_t rank = 0; rank < 8; ++rank) {
    record.members.push_back({.worker = WorkerId{rank}, .node = "node-a", .device = "cuda:0"});
    record.progress.workers.push_back({.batch_size = 32, .samples = 1000});
    record.progress.plan.batch_sizes.push_back(32);
  }
  return record;
}

void Run(sqlite3* connection, const char* sql) {
  TACTUS_CHECK(sqlite3_exec(connection, sql, nullptr, nullptr, nullptr) == SQLITE_OK);
}

// Jobs a second of prepared statements with bytes that are there already.
double Bare(const std::string& path, int transactions) {
  std::vector<std::string> records;
  for (int i = 0; i < transactions * kBatch; ++i) {
    records.push_back(codec::EncodeJob(Record(static_cast<std::uint64_t>(i) + 1)));
  }
  const job::JobRecord any = Record(1);
  sqlite3* connection = nullptr;
  TACTUS_CHECK(sqlite3_open(path.c_str(), &connection) == SQLITE_OK);
  Run(connection,
      "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
      "CREATE TABLE jobs (id INTEGER PRIMARY KEY, name TEXT UNIQUE, request_id TEXT UNIQUE,"
      "  create_time INTEGER, spec BLOB, record BLOB)");
  sqlite3_stmt* put = nullptr;
  TACTUS_CHECK(sqlite3_prepare_v2(connection, "INSERT INTO jobs VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                                  -1, &put, nullptr) == SQLITE_OK);
  const double begin = Now();
  for (int i = 0; i < transactions * kBatch; ++i) {
    if (i % kBatch == 0) Run(connection, "BEGIN IMMEDIATE");
    const std::string name = "shakespeare-" + std::to_string(i);
    const std::string request = std::to_string(static_cast<unsigned>(i) * 2654435761U) + "-4a8e";
    const std::string& record = records[static_cast<std::size_t>(i)];
    sqlite3_bind_int64(put, 1, i + 1);
    sqlite3_bind_text(put, 2, name.data(), static_cast<int>(name.size()), SQLITE_STATIC);
    sqlite3_bind_text(put, 3, request.data(), static_cast<int>(request.size()), SQLITE_STATIC);
    sqlite3_bind_int64(put, 4, i);
    sqlite3_bind_blob(put, 5, any.spec.data(), static_cast<int>(any.spec.size()), SQLITE_STATIC);
    sqlite3_bind_blob(put, 6, record.data(), static_cast<int>(record.size()), SQLITE_STATIC);
    TACTUS_CHECK(sqlite3_step(put) == SQLITE_DONE);
    sqlite3_reset(put);
    if (i % kBatch == kBatch - 1) Run(connection, "COMMIT");
  }
  const double seconds = Now() - begin;
  sqlite3_finalize(put);
  sqlite3_close(connection);
  return transactions * kBatch / seconds;
}

double Ours(Store& store, int transactions) {
  std::vector<job::WriteBatch> batches(static_cast<std::size_t>(transactions));
  std::uint64_t id = 0;
  for (job::WriteBatch& batch : batches) {
    for (int i = 0; i < kBatch; ++i) batch.jobs.push_back(Record(++id));
  }
  const double begin = Now();
  for (const job::WriteBatch& batch : batches) TACTUS_CHECK(store.Write(batch).ok());
  return transactions * kBatch / (Now() - begin);
}

void Restart(const std::string& path) {
  {
    const auto store = Store::Open(path);
    TACTUS_CHECK(store.ok());
    job::WriteBatch batch;
    for (std::uint64_t id = 1; id <= kUnfinished; ++id) batch.jobs.push_back(Record(id));
    TACTUS_CHECK((*store)->Write(batch).ok());
  }
  double begin = Now();
  const auto store = Store::Open(path);
  TACTUS_CHECK(store.ok());
  std::printf("open, 10,000 jobs            %8.1f ms\n", 1e3 * (Now() - begin));
  begin = Now();
  TACTUS_CHECK((*store)->UnfinishedJobs()->size() == kUnfinished);
  std::printf("read 10,000 unfinished jobs  %8.1f ms\n", 1e3 * (Now() - begin));
  for (const char* filter : {"", "labels.team=vision", "labels.team=nobody AND state=RUNNING",
                             "labels.team=nobody", "priority>5"}) {
    begin = Now();
    TACTUS_CHECK((*store)->ListJobs({.page_size = 50, .filter = filter}).ok());
    std::printf("list 50 of \"%s\": %.1f ms\n", filter, 1e3 * (Now() - begin));
  }
  begin = Now();
  TACTUS_CHECK((*store)->ListJobs({.page_size = 50, .order_by = "priority desc"}).ok());
  std::printf("list 50 by priority          %8.1f ms\n", 1e3 * (Now() - begin));
}

}  // namespace
}  // namespace tactus::store

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s FOLDER [transactions]\n", argv[0]);
    return 64;
  }
  const std::string folder = argv[1];
  const int transactions = argc > 2 ? std::atoi(argv[2]) : tactus::store::kTransactionsDefault;
  for (const char* name : {"bare", "ours", "restart"}) {
    for (const char* end : {"", "-wal"}) std::filesystem::remove(folder + "/" + name + end);
  }
  const double bare = tactus::store::Bare(folder + "/bare", transactions);
  double ours = 0;
  {
    const auto store = tactus::store::Store::Open(folder + "/ours");
    TACTUS_CHECK(store.ok());
    ours = tactus::store::Ours(**store, transactions);
  }
  std::printf("bare SQLite, 64 jobs a transaction  %8.0f jobs/s\n", bare);
  std::printf("the store, 64 jobs a transaction    %8.0f jobs/s  (%.2f of bare)\n", ours,
              ours / bare);
  tactus::store::Restart(folder + "/restart");
  return 0;
}
