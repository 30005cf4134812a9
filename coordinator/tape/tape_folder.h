// The folder of a coordinator's tapes: one a start, the newest are kept.

#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "coordinator/job/records.h"

namespace tactus::tape {

inline constexpr std::size_t kTapesMax = 8;

// The path for a tape that begins at `now`, in UTC: FOLDER/2026-05-14T10-11-12.345Z.tape. Makes the
// folder and removes its oldest tapes, so that the new one is the kTapesMax-th at most.
// Errors: as runtime::MakeWritableFolder.
absl::StatusOr<std::string> MakeTapePath(const std::string& folder, job::WallTime now);

// The path of the newest tape. Errors: NotFound, there is none.
absl::StatusOr<std::string> NewestTape(const std::string& folder);

}  // namespace tactus::tape
