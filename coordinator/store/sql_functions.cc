#include "coordinator/store/sql_functions.h"

#include <optional>
#include <string>
#include <string_view>

#include "coordinator/codec/record_codec.h"
#include "coordinator/store/job_columns.h"
#include "coordinator/store/sqlite_connection.h"

namespace tactus::store {
namespace {

std::string_view BytesOf(sqlite3_value* value) {
  const void* bytes = sqlite3_value_blob(value);
  const int size = sqlite3_value_bytes(value);
  if (bytes == nullptr) return {};
  return {static_cast<const char*>(bytes), static_cast<std::size_t>(size)};
}

void JobLabel(sqlite3_context* context, int, sqlite3_value** arguments) {
  const std::optional<std::string_view> value =
      FindLabel(BytesOf(arguments[0]), BytesOf(arguments[1]));
  const std::string_view text = value.value_or("");
  sqlite3_result_text64(context, text.empty() ? "" : text.data(), text.size(), SQLITE_TRANSIENT,
                        SQLITE_UTF8);
}

void RecordLabels(sqlite3_context* context, int, sqlite3_value** arguments) {
  const absl::StatusOr<job::JobRecord> record = codec::DecodeJob(BytesOf(arguments[0]));
  const std::string packed = record.ok() ? PackLabels(record->labels) : "";
  sqlite3_result_blob64(context, packed.data(), packed.size(), SQLITE_TRANSIENT);
}

using Function = void (*)(sqlite3_context*, int, sqlite3_value**);

absl::Status Add(sqlite3* connection, const char* name, int arguments, Function function) {
  const int code = sqlite3_create_function_v2(
      connection, name, arguments, SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY, nullptr,
      function, nullptr, nullptr, nullptr);
  return ConnectionStatus(connection, code, "store");
}

}  // namespace

absl::Status AddSqlFunctions(sqlite3* connection) {
  const absl::Status status = Add(connection, "job_label", 2, JobLabel);
  if (!status.ok()) return status;
  return Add(connection, "record_labels", 1, RecordLabels);
}

}  // namespace tactus::store
