#include "coordinator/store/postgres_connection.h"

#include <endian.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>
#include <utility>

namespace tactus::store {
namespace {

// Types of pg_catalog.pg_type, which never change.
constexpr Oid kBytea = 17;
constexpr Oid kInt8 = 20;
constexpr Oid kText = 25;

constexpr int kBytes = 1;  // libpq's word for binary
constexpr const char* kPrefixes[] = {"postgresql://", "postgres://"};

// The library's words take several lines.
std::string OneLine(const char* message) {
  std::string line;
  for (const char c : std::string_view(message == nullptr ? "" : message)) {
    if (c != '\n') {
      line += c == '\t' ? ' ' : c;
    } else if (!line.empty() && line.back() != ' ') {
      line += "; ";
    }
  }
  while (!line.empty() && (line.back() == ' ' || line.back() == ';')) line.pop_back();
  return line;
}

absl::Status StatusOfResult(PGconn* connection, const PGresult* result) {
  const char* state = result == nullptr ? nullptr : PQresultErrorField(result, PG_DIAG_SQLSTATE);
  const std::string message = OneLine(PQerrorMessage(connection));
  return absl::Status(
      CodeOfSqlState(state == nullptr ? "" : state),
      "store: " + message + (state == nullptr ? "" : " (" + std::string(state) + ")"));
}

absl::StatusOr<PostgresResult> Checked(PGconn* connection, PGresult* returned) {
  PostgresResult result(returned);
  const ExecStatusType status = PQresultStatus(returned);
  if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) return result;
  return StatusOfResult(connection, returned);
}

void Ignore(void*, const char*) {}

// The library has no SQLSTATE of a connection that was not made.
absl::StatusCode CodeOfDialling(const std::string& message) {
  for (const char* denied :
       {"authentication failed", "permission denied", "no pg_hba.conf entry"}) {
    if (message.find(denied) != message.npos) return absl::StatusCode::kPermissionDenied;
  }
  return message.find("\" does not exist") != message.npos ? absl::StatusCode::kNotFound
                                                           : absl::StatusCode::kUnavailable;
}

struct FreeOptions {
  void operator()(PQconninfoOption* options) const { PQconninfoFree(options); }
};

}  // namespace

absl::StatusCode CodeOfSqlState(std::string_view state) {
  struct Known {
    std::string_view prefix;
    absl::StatusCode code;
  };
  // The first that fits counts.
  static constexpr Known kKnown[] = {
      {"23505", absl::StatusCode::kAlreadyExists},  // unique_violation
      {"53300", absl::StatusCode::kUnavailable},    // too_many_connections
      {"53", absl::StatusCode::kResourceExhausted},
      {"54", absl::StatusCode::kResourceExhausted},
      {"28", absl::StatusCode::kPermissionDenied},
      {"42501", absl::StatusCode::kPermissionDenied},  // insufficient_privilege
      {"25006", absl::StatusCode::kUnavailable},  // read_only_sql_transaction: a server's standby
      {"25P03", absl::StatusCode::kUnavailable},  // idle_in_transaction_session_timeout
      {"3D000", absl::StatusCode::kNotFound},     // invalid_catalog_name
      {"08", absl::StatusCode::kUnavailable},
      {"40", absl::StatusCode::kUnavailable},     // serialization and deadlocks
      {"55P03", absl::StatusCode::kUnavailable},  // lock_not_available
      {"57", absl::StatusCode::kUnavailable},     // cancelled, shut down, starting
      {"58030", absl::StatusCode::kDataLoss},     // io_error
      {"XX001", absl::StatusCode::kDataLoss},
      {"XX002", absl::StatusCode::kDataLoss},
      {"22021", absl::StatusCode::kInvalidArgument},  // a byte that no text has
  };
  if (state.empty()) return absl::StatusCode::kUnavailable;
  for (const Known& known : kKnown) {
    if (state.starts_with(known.prefix)) return known.code;
  }
  return absl::StatusCode::kInternal;
}

absl::StatusOr<std::string> PostgresName(const std::string& address) {
  const bool known = std::ranges::any_of(
      kPrefixes, [&](const char* prefix) { return address.starts_with(prefix); });
  // Not shown: what cannot be read may hold a password.
  if (!known) return absl::InvalidArgumentError("allowed is postgresql://USER@HOST:PORT/NAME");
  char* wrong = nullptr;
  const std::unique_ptr<PQconninfoOption, FreeOptions> options(
      PQconninfoParse(address.c_str(), &wrong));
  if (options == nullptr) {
    PQfreemem(wrong);
    return absl::InvalidArgumentError(
        "found an address that cannot be read, allowed is postgresql://USER@HOST:PORT/NAME");
  }
  std::string host;
  std::string port;
  std::string name;
  for (const PQconninfoOption* option = options.get(); option->keyword != nullptr; ++option) {
    const std::string value = option->val == nullptr ? "" : option->val;
    if (std::strcmp(option->keyword, "host") == 0) host = value;
    if (std::strcmp(option->keyword, "port") == 0) port = value;
    if (std::strcmp(option->keyword, "dbname") == 0) name = value;
  }
  return "postgresql://" + host + (port.empty() ? "" : ":" + port) + "/" + name;
}

absl::StatusOr<PostgresConnection> DialPostgres(const PostgresDial& dial) {
  const auto silence = std::chrono::duration_cast<std::chrono::milliseconds>(dial.silence).count();
  const std::string milliseconds = std::to_string(silence);
  // The library takes two seconds for one.
  const std::string seconds = std::to_string(std::max<std::int64_t>(2, silence / 1000));
  // What the address says itself counts: it comes last.
  const char* const names[] = {"application_name",
                               "connect_timeout",
                               "tcp_user_timeout",
                               "keepalives_idle",
                               "keepalives_interval",
                               "keepalives_count",
                               "client_encoding",
                               "dbname",
                               nullptr};
  const char* const values[] = {
      dial.application.c_str(), seconds.c_str(), milliseconds.c_str(), "2", "1", "3", "UTF8",
      dial.address.c_str(),     nullptr};
  PostgresConnection connection(PQconnectdbParams(names, values, 1));
  if (connection == nullptr) return absl::ResourceExhaustedError("store: no memory");
  if (PQstatus(connection.get()) != CONNECTION_OK) {
    const std::string message = OneLine(PQerrorMessage(connection.get()));
    return absl::Status(CodeOfDialling(message), "store: " + message);
  }
  PQsetNoticeProcessor(connection.get(), Ignore, nullptr);
  return connection;
}

absl::StatusOr<PostgresResult> RunText(PGconn* connection, const std::string& sql) {
  return Checked(connection, PQexec(connection, sql.c_str()));
}

void PostgresParameters::Set(int parameter, Oid type, std::string value) {
  const auto count = static_cast<std::size_t>(parameter);
  if (bytes_.size() < count) bytes_.resize(count);
  if (types_.size() < count) types_.resize(count);
  bytes_[count - 1] = std::move(value);
  types_[count - 1] = type;
}

void PostgresParameters::SetInt(int parameter, std::int64_t value) {
  const std::uint64_t big = htobe64(static_cast<std::uint64_t>(value));
  std::string bytes(sizeof big, '\0');
  std::memcpy(bytes.data(), &big, sizeof big);
  Set(parameter, kInt8, std::move(bytes));
}

void PostgresParameters::SetText(int parameter, std::string value) {
  Set(parameter, kText, std::move(value));
}

void PostgresParameters::SetBlob(int parameter, std::string value) {
  Set(parameter, kBytea, std::move(value));
}

std::vector<const char*> PostgresParameters::values() const {
  std::vector<const char*> all;
  all.reserve(bytes_.size());
  for (const std::string& bytes : bytes_) all.push_back(bytes.data());
  return all;
}

std::vector<int> PostgresParameters::lengths() const {
  std::vector<int> all;
  all.reserve(bytes_.size());
  for (const std::string& bytes : bytes_) all.push_back(static_cast<int>(bytes.size()));
  return all;
}

absl::StatusOr<PostgresResult> RunOnce(PGconn* connection, const std::string& sql,
                                       const PostgresParameters& parameters) {
  return Checked(connection,
                 PQexecParams(connection, sql.c_str(), parameters.count(), parameters.types(),
                              parameters.values().data(), parameters.lengths().data(),
                              parameters.formats().data(), kBytes));
}

absl::StatusOr<PostgresResult> RunPrepared(PGconn* connection, const std::string& name,
                                           const PostgresParameters& parameters) {
  return Checked(connection, PQexecPrepared(connection, name.c_str(), parameters.count(),
                                            parameters.values().data(), parameters.lengths().data(),
                                            parameters.formats().data(), kBytes));
}

absl::Status PreparePostgres(PGconn* connection, const std::string& name, const std::string& sql,
                             const PostgresParameters& parameters) {
  return Checked(connection, PQprepare(connection, name.c_str(), sql.c_str(), parameters.count(),
                                       parameters.types()))
      .status();
}

namespace {

// Of COPY's binary form: what it begins with, and two numbers, of which neither says anything here.
constexpr std::string_view kCopyBegins("PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0", 19);
constexpr std::size_t kSentAtOnce = 256 << 10;

template <typename Number>
void AppendBig(Number big, std::string& bytes) {
  bytes.append(reinterpret_cast<const char*>(&big), sizeof big);
}

void AppendLength(std::int32_t length, std::string& bytes) {
  AppendBig(htobe32(static_cast<std::uint32_t>(length)), bytes);
}

}  // namespace

RowStream::~RowStream() {
  if (!open_) return;
  PQputCopyEnd(connection_, "given up");
  while (const PostgresResult result{PQgetResult(connection_)}) {
  }
}

absl::Status RowStream::Begin(const std::string& table, const std::vector<std::string>& columns) {
  std::string names;
  for (const std::string& column : columns) names += (names.empty() ? "" : ", ") + column;
  const PostgresResult result(PQexec(
      connection_, ("COPY " + table + " (" + names + ") FROM STDIN (FORMAT binary)").c_str()));
  if (PQresultStatus(result.get()) != PGRES_COPY_IN) {
    return StatusOfResult(connection_, result.get());
  }
  open_ = true;
  columns_ = static_cast<std::int16_t>(columns.size());
  waiting_ = kCopyBegins;
  return absl::OkStatus();
}

void RowStream::BeginRow() { AppendBig(htobe16(static_cast<std::uint16_t>(columns_)), waiting_); }

void RowStream::PutInt(std::int64_t value) {
  AppendLength(sizeof value, waiting_);
  AppendBig(htobe64(static_cast<std::uint64_t>(value)), waiting_);
}

void RowStream::PutBytes(std::string_view bytes) {
  AppendLength(static_cast<std::int32_t>(bytes.size()), waiting_);
  waiting_ += bytes;
}

void RowStream::PutNull() { AppendLength(-1, waiting_); }

absl::Status RowStream::EndRow() {
  return waiting_.size() < kSentAtOnce ? absl::OkStatus() : Send();
}

absl::Status RowStream::Send() {
  const int sent = PQputCopyData(connection_, waiting_.data(), static_cast<int>(waiting_.size()));
  waiting_.clear();
  return sent == 1 ? absl::OkStatus() : StatusOfResult(connection_, nullptr);
}

absl::Status RowStream::End() {
  AppendBig(htobe16(0xffff), waiting_);
  const absl::Status sent = Send();
  if (!sent.ok()) return sent;
  open_ = false;
  if (PQputCopyEnd(connection_, nullptr) != 1) return StatusOfResult(connection_, nullptr);
  absl::Status status;
  while (PGresult* const returned = PQgetResult(connection_)) {
    const absl::Status one = Checked(connection_, returned).status();
    if (status.ok()) status = one;
  }
  return status;
}

std::int64_t IntAt(const PGresult* result, int row, int column) {
  const char* const bytes = PQgetvalue(result, row, column);
  switch (PQgetlength(result, row, column)) {
    case 8: {
      std::uint64_t big = 0;
      std::memcpy(&big, bytes, sizeof big);
      return static_cast<std::int64_t>(be64toh(big));
    }
    case 4: {
      std::uint32_t big = 0;
      std::memcpy(&big, bytes, sizeof big);
      return static_cast<std::int32_t>(be32toh(big));
    }
    default:
      return 0;
  }
}

std::string BytesAt(const PGresult* result, int row, int column) {
  return std::string(PQgetvalue(result, row, column),
                     static_cast<std::size_t>(PQgetlength(result, row, column)));
}

bool IsNumber(const PGresult* result, int column) { return PQftype(result, column) == kInt8; }

std::string TextAt(const PGresult* result, int row, int column) {
  return PQgetvalue(result, row, column);
}

std::int64_t RowsChanged(PGresult* result) {
  const std::string_view text = PQcmdTuples(result);
  std::int64_t rows = 0;
  std::from_chars(text.data(), text.data() + text.size(), rows);
  return rows;
}

}  // namespace tactus::store
