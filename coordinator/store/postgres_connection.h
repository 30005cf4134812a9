// PostgreSQL's client library with owners and statuses: the only place that calls its C interface.

#pragma once

#include <libpq-fe.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/time.h"

namespace tactus::store {

struct FinishConnection {
  void operator()(PGconn* connection) const { PQfinish(connection); }
};
using PostgresConnection = std::unique_ptr<PGconn, FinishConnection>;

struct ClearResult {
  void operator()(PGresult* result) const { PQclear(result); }
};
using PostgresResult = std::unique_ptr<PGresult, ClearResult>;

// The code for a SQLSTATE; Unavailable for an empty one, with which a connection breaks.
absl::StatusCode CodeOfSqlState(std::string_view state);

// Where a database is, for people: "postgresql://HOST:PORT/NAME", without whatever is secret.
// Errors: InvalidArgument, the address cannot be read.
absl::StatusOr<std::string> PostgresName(const std::string& address);

// How a connection is made.
struct PostgresDial {
  std::string address{};      // postgresql://..., as libpq has it; what it says is followed
  std::string application{};  // what the server calls the connection
  // A peer that does not answer at all is given up after so long, 1 s or more.
  Duration silence = Seconds(5);
};

// Errors: Unavailable, nobody answers, or the server starts or stops; PermissionDenied; NotFound,
// no such database; InvalidArgument, the address cannot be read.
absl::StatusOr<PostgresConnection> DialPostgres(const PostgresDial& dial);

// Runs statements without parameters; the result is that of the last. Rows come as text.
// Errors: CodeOfSqlState's, with the server's words in one line.
absl::StatusOr<PostgresResult> RunText(PGconn* connection, const std::string& sql);

// Parameters of a statement, and what they are.
class PostgresParameters {
 public:
  // Parameters count from 1.
  void SetInt(int parameter, std::int64_t value);
  void SetText(int parameter, std::string value);
  void SetBlob(int parameter, std::string value);
  void Clear() { bytes_.clear(); }

  int count() const { return static_cast<int>(bytes_.size()); }
  const Oid* types() const { return types_.data(); }
  std::vector<const char*> values() const;
  std::vector<int> lengths() const;
  std::vector<int> formats() const { return std::vector<int>(bytes_.size(), 1); }

 private:
  void Set(int parameter, Oid type, std::string value);

  std::vector<std::string> bytes_;
  std::vector<Oid> types_;
};

// The same with parameters, at once or by the name under which PreparePostgres knows it. Rows come
// as bytes.
absl::StatusOr<PostgresResult> RunOnce(PGconn* connection, const std::string& sql,
                                       const PostgresParameters& parameters);
absl::StatusOr<PostgresResult> RunPrepared(PGconn* connection, const std::string& name,
                                           const PostgresParameters& parameters);
absl::Status PreparePostgres(PGconn* connection, const std::string& name, const std::string& sql,
                             const PostgresParameters& parameters);

// Rows that go into a table in one stream, which takes a tenth of the time of a statement each.
// Within a transaction. One thread; outlived by the connection, which does nothing else meanwhile.
class RowStream {
 public:
  explicit RowStream(PGconn* connection) : connection_(connection) {}
  ~RowStream();  // one that has not ended puts nothing, and fails its transaction
  RowStream(const RowStream&) = delete;
  RowStream& operator=(const RowStream&) = delete;

  // Of these columns of `table`, of which each row has all, in their order.
  absl::Status Begin(const std::string& table, const std::vector<std::string>& columns);
  void BeginRow();
  void PutInt(std::int64_t value);
  void PutBytes(std::string_view bytes);  // of a text or blob
  void PutNull();
  // Sends what waits, where that is worth it.
  absl::Status EndRow();
  // Errors of these: as RunText has them, of whichever row it was.
  absl::Status End();

 private:
  absl::Status Send();

  PGconn* const connection_;
  std::int16_t columns_ = 0;
  std::string waiting_;
  bool open_ = false;
};

// Of a row that came as bytes; a NULL is 0, and empty.
std::int64_t IntAt(const PGresult* result, int row, int column);
std::string BytesAt(const PGresult* result, int row, int column);

// Whether the column is of numbers, whichever way its rows came.
bool IsNumber(const PGresult* result, int column);

// Of a row that came as text.
std::string TextAt(const PGresult* result, int row, int column);
std::int64_t RowsChanged(PGresult* result);

}  // namespace tactus::store
