// `tactus replay`: a coordinator's tape against the core of this program.

#pragma once

#include <string>

#include "client/render/exit_code.h"
#include "client/render/screen.h"
#include "client/verbs/command_line.h"
#include "coordinator/tape/replay.h"

namespace tactus::client {

// What a replay found, as a table or as one JSON object. Pure.
std::string ReplayText(const tape::Replayed& replayed, OutputFormat format);

// kOk: no difference. kGeneric: a difference. kUsage: not a tape, or one that is cut or damaged.
ExitCode Replay(const ReplayCommand& command, const Screen& screen);

}  // namespace tactus::client
