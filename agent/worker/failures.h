// What an error says of a worker's failure: which field it is of, whether another try may go well,
// and whether it is the group's.

#pragma once

#include "absl/status/status.h"
#include "agent/life/failure.h"

namespace tactus::worker {

// The error of a device, a file or a connection, as Unavailable: another try, perhaps elsewhere,
// may not meet it. Requires: an error.
absl::Status OfTheNode(const absl::Status& status);

// Likewise of a checkpoint's file. One that is damaged (DataLoss) is of no use to anybody: then it
// is of the field that says so.
absl::Status Unreadable(const absl::Status& status);

// The failure of an error: transient, so that the job is tried again, where that may go well:
// Unavailable, DataLoss, Aborted. With the field, where the error is of one (data::AtField).
life::Failure FailureOf(const absl::Status& status);

// The same of what needs the group, and says that it fell apart as Unavailable.
life::Failure InGroup(const absl::Status& status);

}  // namespace tactus::worker
