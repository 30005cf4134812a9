// What of the tree of files a worker may read where no roots were named: all but what is private.

#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/box/landlock.h"

namespace tactus::box {

// A file, by what does not change with its name.
using FileId = std::pair<dev_t, ino_t>;

// Lets all that is there be read but what is at `hidden` and below. Landlock has no rule that
// takes away what another one gives, so each folder on the way to a hidden place is gone through,
// and what is beside it is allowed one by one: what is made there later is not readable to a
// process with these rules, and these folders' names cannot be listed. Returns those folders.
//
// `hidden`: absolute and without links; what does not exist is passed over. `tops`: names in the
// root folder that alone are allowed; empty: all. At most kEntriesMax entries of one folder are
// allowed.
inline constexpr std::size_t kEntriesMax = 1u << 16;
absl::StatusOr<std::set<FileId>> AllowAllBut(LandlockRules& rules,
                                             const std::vector<std::string>& hidden,
                                             const std::set<std::string, std::less<>>& tops = {});

}  // namespace tactus::box
