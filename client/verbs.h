// The verbs that talk to a coordinator. Each prints data and messages, and returns how the program
// ends.

#pragma once

#include "client/command_line.h"
#include "client/connection.h"
#include "client/exit_code.h"
#include "client/screen.h"

namespace tactus::client {

ExitCode Submit(const SubmitCommand& command, Connection& connection, const Screen& screen);
ExitCode Get(const GetCommand& command, Connection& connection, const Screen& screen);
ExitCode Explain(const ExplainCommand& command, Connection& connection, const Screen& screen);
ExitCode Watch(const WatchCommand& command, Connection& connection, const Screen& screen);
ExitCode Cancel(const CancelCommand& command, Connection& connection, const Screen& screen);
ExitCode Download(const DownloadCommand& command, Connection& connection, const Screen& screen);

}  // namespace tactus::client
