// LogLines of an agent, from the session to the logs on disk. The first byte of the input says how
// far the job has come; the rest is the message as it is on the wire, taken twice.

#include <google/protobuf/stubs/logging.h>

#include <cstdint>
#include <filesystem>

#include "coordinator/files/log_sink.h"
#include "coordinator/files/log_store.h"
#include "runtime/control_thread.h"
#include "runtime/logging.h"
#include "tests/fuzz/require.h"
#include "tests/fuzz/scratch_folder.h"
#include "tests/fuzz/small_cluster.h"

namespace tactus::fuzz {
namespace {

runtime::ControlThread& Files() {
  static runtime::ControlThread thread;
  return thread;
}

// What is kept was said, where it was said to be.
void Check(const service::LogStore& logs, const agent::v1::LogLines& lines) {
  const std::vector<service::LogPiece> kept = logs.Read("alpha-1", WorkerId{lines.worker_id()}, 0);
  std::size_t bytes = 0;
  for (const service::LogPiece& piece : kept) {
    Require(piece.offset >= lines.offset(), "nothing is kept that was not said");
    const std::uint64_t from = piece.offset - lines.offset();
    Require(from <= lines.text().size(), "a piece lies within what was said");
    Require(lines.text().compare(from, piece.text.size(), piece.text) == 0,
            "the text is kept as it was said");
    bytes += piece.text.size();
  }
  Require(bytes <= lines.text().size(), "what is said twice is kept once");
}

void Run(Stage stage, const agent::v1::LogLines& lines) {
  service::LogStore logs(ScratchFolder());
  SmallCluster cluster(stage);
  service::LogSink sink({.find = [&](const std::string& name) { return cluster.Find(name); },
                         .files = Files(),
                         .logs = logs});
  cluster.SetTakeLog(
      [&](const std::string& node, const agent::v1::LogLines& taken) { sink.Take(node, taken); });
  for (int time = 0; time < 2; ++time) {
    agent::v1::FromAgent message;
    message.set_sequence(cluster.NextSequence());
    *message.mutable_log_lines() = lines;
    cluster.Say(message);
  }
  Files().RunAndWait([&] { Check(logs, lines); });
  for (const auto& entry : std::filesystem::directory_iterator(ScratchFolder())) {
    Require(entry.path().filename() == "alpha-1", "only the job's own folder is written to");
  }
  Files().RunAndWait([&] { logs.Forget("alpha-1"); });
  cluster.End();
}

}  // namespace
}  // namespace tactus::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return -1;
  tactus::agent::v1::LogLines lines;
  if (!lines.ParseFromArray(data + 1, static_cast<int>(size - 1))) return -1;
  tactus::fuzz::Run(static_cast<tactus::fuzz::Stage>(data[0] % tactus::fuzz::kStages), lines);
  return 0;
}

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  google::protobuf::SetLogHandler(nullptr);
  return tactus::runtime::StartLogging({.level = "off"}).ok() ? 0 : 1;
}
