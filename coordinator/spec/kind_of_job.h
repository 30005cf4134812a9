// Which jobs are of one kind.

#pragma once

#include <string>

#include "coordinator/spec/resolve.h"

namespace tactus::spec {

// Equal for jobs with the same model, data, optimizer and section `adapt`, with defaults written
// out; but for what of the latter is frozen, which a user changes as the job trains. 32 hexadecimal
// digits.
std::string KindOfJob(const ResolvedSpec& spec);

}  // namespace tactus::spec
