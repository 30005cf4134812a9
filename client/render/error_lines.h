// Errors of calls as a person reads them.

#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/render/exit_code.h"
#include "client/render/screen.h"

namespace tactus::client {

// The lines that tell a person about `status`, with what to do next where that is known. With field
// violations one a field, "job.yaml: field: what", else "subject: message", or the message alone
// when `subject` is empty.
std::vector<std::string> ErrorLines(const absl::Status& status, const std::string& subject);

// Says them; returns how the program ends.
ExitCode ReportError(const absl::Status& status, const Screen& screen,
                     const std::string& subject = "");

}  // namespace tactus::client
