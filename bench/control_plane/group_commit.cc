// bench_group_commit FOLDER RECORD_BYTES SECONDS BATCH: what SQLite itself can do. Rows of one
// record in transactions of BATCH, each durable (WAL, synchronous=FULL) before the next begins;
// prints rows a second.

#include <sqlite3.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

void Run(sqlite3* database, const char* sql) {
  if (sqlite3_exec(database, sql, nullptr, nullptr, nullptr) == SQLITE_OK) return;
  std::fprintf(stderr, "bench_group_commit: %s: %s\n", sql, sqlite3_errmsg(database));
  std::exit(1);
}

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: %s FOLDER RECORD_BYTES SECONDS BATCH\n", argv[0]);
    return 64;
  }
  const std::string path = std::string(argv[1]) + "/group_commit.db";
  const std::string record(std::strtoul(argv[2], nullptr, 10), 'r');
  const double seconds = std::strtod(argv[3], nullptr);
  const long batch = std::strtol(argv[4], nullptr, 10);
  sqlite3* database = nullptr;
  if (sqlite3_open(path.c_str(), &database) != SQLITE_OK) return 1;
  Run(database, "PRAGMA journal_mode=WAL");
  Run(database, "PRAGMA synchronous=FULL");
  Run(database, "CREATE TABLE rows (id INTEGER PRIMARY KEY, record BLOB NOT NULL)");
  sqlite3_stmt* insert = nullptr;
  sqlite3_prepare_v2(database, "INSERT INTO rows (record) VALUES (?)", -1, &insert, nullptr);
  sqlite3_bind_blob(insert, 1, record.data(), static_cast<int>(record.size()), SQLITE_STATIC);
  long rows = 0;
  const double begin = Now();
  while (Now() - begin < seconds) {
    Run(database, "BEGIN IMMEDIATE");
    for (long i = 0; i < batch; ++i, ++rows) {
      if (sqlite3_step(insert) != SQLITE_DONE) return 1;
      sqlite3_reset(insert);
    }
    Run(database, "COMMIT");
  }
  std::printf("%.1f\n", static_cast<double>(rows) / (Now() - begin));
  sqlite3_finalize(insert);
  sqlite3_close(database);
  return 0;
}
