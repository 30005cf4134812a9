// The verbs that talk to a coordinator. Each prints data and messages, and returns how the program
// ends.

#pragma once

#include "client/api/client.h"
#include "client/render/exit_code.h"
#include "client/render/screen.h"
#include "client/verbs/command_line.h"

namespace tactus::client {

// Jobs: verbs.cc, job_verbs.cc and, for traces and plots, history_verbs.cc.
ExitCode Submit(const SubmitCommand& command, api::Client& client, const Screen& screen);
ExitCode Describe(const DescribeCommand& command, api::Client& client, const Screen& screen);
ExitCode Explain(const ExplainCommand& command, api::Client& client, const Screen& screen);
ExitCode DrawPlot(const PlotCommand& command, api::Client& client, const Screen& screen);
ExitCode Trace(const TraceCommand& command, api::Client& client, const Screen& screen);
ExitCode Watch(const WatchCommand& command, api::Client& client, const Screen& screen);
ExitCode Download(const DownloadCommand& command, api::Client& client, const Screen& screen);
ExitCode Wait(const WaitCommand& command, api::Client& client, const Screen& screen);
ExitCode Logs(const LogsCommand& command, api::Client& client, const Screen& screen);
ExitCode Update(const UpdateCommand& command, api::Client& client, const Screen& screen);
ExitCode Cancel(const CancelCommand& command, api::Client& client, const Screen& screen);
ExitCode Pause(const PauseCommand& command, api::Client& client, const Screen& screen);
ExitCode Resume(const ResumeCommand& command, api::Client& client, const Screen& screen);
ExitCode Delete(const DeleteCommand& command, api::Client& client, const Screen& screen);

// Lists: list_verbs.cc. Requires: command.output is set.
ExitCode Get(const GetCommand& command, api::Client& client, const Screen& screen);

// The fleet on a screen: top.cc.
ExitCode Top(const TopCommand& command, api::Client& client, const Screen& screen);

// Nodes and the coordinator itself: admin_verbs.cc.
ExitCode ChangeNode(const NodeCommand& command, api::Client& client, const Screen& screen);
ExitCode Backup(const BackupCommand& command, api::Client& client, const Screen& screen);
ExitCode SetLogLevel(const LogLevelCommand& command, api::Client& client, const Screen& screen);
ExitCode CheckIntegrity(const IntegrityCommand& command, api::Client& client, const Screen& screen);

}  // namespace tactus::client
