#include "tests/coordinator/store/temporary_folder.h"

#include <stdlib.h>

#include <filesystem>

#include "base/check.h"

namespace tactus::store {

TemporaryFolder::TemporaryFolder() {
  path_ = (std::filesystem::temp_directory_path() / "tactus-store-XXXXXX").string();
  TACTUS_CHECK(mkdtemp(path_.data()) != nullptr);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace tactus::store
