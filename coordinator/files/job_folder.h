// Where the files of a job are, and how they go.

#pragma once

#include <string>

namespace tactus::service {

// <state>/jobs/<id>: results and logs.
std::string JobFolder(const std::string& state_folder, const std::string& job_id);

// Removes a folder with all that is in it; what cannot be removed is logged. Blocking.
void RemoveFolder(const std::string& folder);

}  // namespace tactus::service
