// What `tactus replay` finds: a coordinator's tape against the core of this program.

#pragma once

#include <string>

#include "client/render/tables.h"
#include "coordinator/tape/replay.h"

namespace tactus::client {

// As a table or as one JSON object. Pure.
std::string ReplayText(const tape::Replayed& replayed, OutputFormat format);

}  // namespace tactus::client
