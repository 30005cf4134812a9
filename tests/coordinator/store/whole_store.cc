#include "tests/coordinator/store/whole_store.h"

#include <gtest/gtest.h>

#include <set>

namespace tactus::store {

absl::Status CopyWhole(Store& store, const std::string& path) {
  const auto copy = store.BeginCopy(path);
  if (!copy.ok()) return copy.status();
  while (true) {
    const absl::StatusOr<bool> whole = (*copy)->Step();
    if (!whole.ok() || *whole) return whole.status();
  }
}

// Stretches of two, so that there are several.
std::vector<std::string> AllBlobs(Store& store) {
  std::set<std::string> all;
  std::optional<JobId> after = JobId{0};
  while (after.has_value()) {
    const absl::StatusOr<NamedBlobs> named = store.BlobsInUse(*after, 2);
    EXPECT_TRUE(named.ok()) << named.status();
    if (!named.ok()) break;
    all.insert(named->sha256.begin(), named->sha256.end());
    after = named->last;
  }
  return {all.begin(), all.end()};
}

}  // namespace tactus::store
