// One kind of message of an agent, TACTUS_FUZZ_MESSAGE, through sessions, translation and core. The
// first byte of the input says how far the job has come; the rest is the message as it is on the
// wire.

#include <google/protobuf/stubs/logging.h>

#include <cstdint>

#include "runtime/logging.h"
#include "tactus/agent/v1/session.pb.h"
#include "tests/fuzz/small_cluster.h"

namespace tactus::fuzz {
namespace {

// The next message of the session.
agent::v1::FromAgent Numbered(SmallCluster& cluster) {
  agent::v1::FromAgent message;
  message.set_sequence(cluster.NextSequence());
  return message;
}

[[maybe_unused]] void Give(SmallCluster& cluster, const agent::v1::Hello& hello) {
  agent::v1::FromAgent first;
  *first.mutable_hello() = hello;
  // In place of the agent's stream, or beside it.
  cluster.Open(first);
}

[[maybe_unused]] void Give(SmallCluster& cluster, const agent::v1::FromWorker& said) {
  agent::v1::FromAgent message = Numbered(cluster);
  *message.mutable_from_worker() = said;
  cluster.Say(message);
}

[[maybe_unused]] void Give(SmallCluster& cluster, const agent::v1::WorkerExited& exited) {
  agent::v1::FromAgent message = Numbered(cluster);
  *message.mutable_worker_exited() = exited;
  cluster.Say(message);
}

// The envelope: numbers and acknowledgements that make no sense, and contents of any kind.
[[maybe_unused]] void Give(SmallCluster& cluster, const agent::v1::FromAgent& message) {
  cluster.Say(message);
}

}  // namespace
}  // namespace tactus::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return -1;
  tactus::agent::v1::TACTUS_FUZZ_MESSAGE message;
  if (!message.ParseFromArray(data + 1, static_cast<int>(size - 1))) return -1;
  tactus::fuzz::SmallCluster cluster(
      static_cast<tactus::fuzz::Stage>(data[0] % tactus::fuzz::kStages));
  tactus::fuzz::Give(cluster, message);
  cluster.End();
  return 0;
}

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  google::protobuf::SetLogHandler(nullptr);
  return tactus::runtime::StartLogging({.level = "off"}).ok() ? 0 : 1;
}
