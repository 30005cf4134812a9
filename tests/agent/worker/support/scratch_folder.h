// Folders for what tests write.

#pragma once

#include <string>

namespace tactus::worker {

// A folder of its own under the test's temporary folder.
std::string MakeFolder(const std::string& name);

}  // namespace tactus::worker
