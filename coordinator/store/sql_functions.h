// Functions of ours that SQL may call.

#pragma once

#include <sqlite3.h>

#include "absl/status/status.h"

namespace tactus::store {

// Adds to the connection:
//   job_label(labels, key)   the value of a label in the column `labels`; '' where there is none
//   record_labels(record)    the column `labels` for a job's record; empty for a damaged one
absl::Status AddSqlFunctions(sqlite3* connection);

}  // namespace tactus::store
