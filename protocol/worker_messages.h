// What a job and one of its workers say to each other, as the coordinator's core, the worker and
// the simulator have it in memory; proto/tactus/v1/worker.proto is the schema and says what each
// field means.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "policies/plan.h"
#include "protocol/result_names.h"

namespace tactus::protocol {

// How the buffers of a group's collectives travel.
enum class TransportKind {
  kByDevice,  // not said: NCCL where the worker has a GPU, else TCP
  kTcp,       // between the memories of hosts
  kNccl,      // between those of GPUs
  kStaged,    // by TCP; those of GPUs by way of their hosts' memories
};
// In the order of the enumerators, as messages and records have them.
inline constexpr auto kTransportNames =
    std::to_array<std::string_view>({"", "tcp", "nccl", "staged"});
constexpr std::string_view NameOf(TransportKind kind) {
  return kTransportNames[static_cast<std::size_t>(kind)];
}

// ---- Down. Start, the first message, is not the core's: agents and workers have it.

struct GroupMessage {
  std::uint64_t generation = 0;
  std::uint32_t rank = 0;
  std::uint32_t size = 0;
  policies::Plan plan{};
  // By rank: the index of its node among the group's nodes, in order of first appearance.
  std::vector<std::uint32_t> nodes{};
  TransportKind transport = TransportKind::kByDevice;  // the same for all members
  // Mean time between losses of the group; 0: no checkpoints while it trains.
  double loss_seconds = 0;
  // Of a group that goes on where another was lost: the rounds that each member has applied, by
  // rank. Who has fewer than the most takes over the state of the lowest rank of those. Empty: it
  // begins as its job says.
  std::vector<std::uint64_t> rounds{};
  // What the members prove to one another that they know; of this generation alone. The core leaves
  // it empty, and so do tapes: what speaks with agents fills it in.
  std::string secret{};
  bool encrypted = false;  // what members send each other
};
struct PeersMessage {
  std::uint64_t generation = 0;
  std::vector<std::string> endpoints{};
};
struct StopMessage {
  std::string reason{};
  bool discard = false;
  bool suspend = false;  // with a checkpoint, to go on later; not with discard
  // With suspend: no checkpoint and no end, but the next group, as that of GroupLostMessage.
  // Workers that do not know it are suspended.
  bool regroup = false;
  // With regroup: ranks that the next group will not have, as far as is known. What encodings have
  // left with them goes to those who stay.
  std::vector<std::uint32_t> leaving{};
};
using ToWorker = std::variant<GroupMessage, PeersMessage, policies::Plan, StopMessage>;

// ---- Up.

// What a program says of itself that the file of its job cannot.
struct ProgramFacts {
  std::uint32_t batch = 0;            // samples of a step, of a worker, to begin with
  std::string optimizer{};            // of policies/optimizers.h
  double momentum = 0;                // of sgd
  std::optional<double> clip_norm{};  // EngineOptions::clip_norm
  // Of the names and shapes of its parameters, and of its optimizer: what all members have alike.
  std::uint64_t hash = 0;

  friend bool operator==(const ProgramFacts&, const ProgramFacts&) = default;
};
struct ReadyMessage {
  std::uint64_t parameters = 0;
  std::uint64_t train_samples = 0;
  std::uint64_t validation_samples = 0;
  double samples_per_second = 0;          // tried out; 0: it did not
  std::string nccl_version{};             // "2.28.9", "none"; empty: no GPU, or it does not say
  std::vector<std::string> encodings{};   // that it knows; empty: dense alone
  std::optional<ProgramFacts> program{};  // of a worker that is one
  std::uint32_t mesh_version = 0;         // collective::kMeshVersion; 0: it knows no meshes
};
struct EndpointMessage {
  std::uint64_t generation = 0;
  std::string endpoint{};
};
struct ReportMessage {
  std::uint64_t generation = 0;
  policies::Report report{};
  std::uint32_t out_of_memory = 0;  // passes since the former report that were repeated in pieces
  // Where there were such: samples of a pass from then on, as more did not fit.
  std::uint32_t pass_samples_max = 0;
  // Of one that may share its process: in use of its device's memory, or of the host's by its
  // process; 0: not known, or it shares with nobody.
  std::uint64_t memory_used_bytes = 0;
};
// The validation result, as rank 0 said it.
struct EvaluatedMessage {
  double loss = 0;
  double accuracy = -1;  // -1: the loss has no notion of it
  std::uint64_t samples = 0;
  std::uint64_t rounds = 0;  // applied before the parameters that it is of; 0: not said
};
// A validation while the group trains, or at its end.
struct ValidatedMessage {
  std::uint64_t generation = 0;
  std::uint64_t rounds = 0, epoch = 0, trained_samples = 0;
  double train_seconds = 0;  // when it ended
  double loss = 0;
  double accuracy = -1;
  std::uint64_t samples = 0;
  double seconds = 0;  // that it took
  // Of the best one so far, this one included; no samples: none had a finite loss.
  double best_loss = 0;
  double best_accuracy = -1;
  std::uint64_t best_samples = 0, best_rounds = 0;
  std::uint32_t since_best = 0;  // made in a row since then
};
// A checkpoint taken while the group trains.
struct CheckpointedMessage {
  std::uint64_t generation = 0;
  std::string file{};
  std::uint64_t rounds = 0, samples_global = 0, epochs = 0, epoch_consumed = 0;
  double train_loss = 0;
  double train_seconds = 0;
  double still_seconds = 0;
  double write_seconds = 0;
  std::string sha256{};  // this and the size are the agent's
  std::uint64_t size_bytes = 0;
};
// The folder of their files, and the file of one: "checkpoints/GENERATION-ROUNDS.safetensors". Two
// groups of a job may come by the same round, one of them with its file still on its way.
inline constexpr const char* kCheckpointFolder = "checkpoints/";
inline std::string CheckpointFileOf(const CheckpointedMessage& message) {
  return kCheckpointFolder + std::to_string(message.generation) + "-" +
         std::to_string(message.rounds) + ".safetensors";
}
// Files in kSnapshotFolder: a group's, and those of a job that the coordinator keeps.
inline constexpr std::size_t kSnapshotsMax = 1000;
// FailedMessage::field where the checkpoint that was to be gone on from is damaged or not there.
inline constexpr const char* kCheckpointField = "checkpoint";
// A member's last word.
struct FinishedMessage {
  std::string reason{};
  std::uint64_t rounds = 0, samples = 0, samples_global = 0, epochs = 0;
  double train_loss = 0;
  double train_seconds = 0;
  std::vector<std::string> files{};
  std::uint64_t parameters_hash = 0;
  bool suspended = false;
};
// Where a worker stands. It says so once a second to its agent, which tells the coordinator on its
// asking, and adds what it sees of the process.
struct StandingMessage {
  std::uint64_t generation = 0;         // of its group; 0: none yet
  std::uint64_t batches = 0;            // micro-batches done
  std::uint64_t bytes = 0;              // that collectives moved
  bool waits = false;                   // a collective of its is under way
  std::vector<std::uint32_t> awaits{};  // ranks whose bytes it waits for, as far as it knows
  // These are the agent's.
  bool stopped = false;          // by a signal or a debugger
  bool storage = false;          // a thread of its waits for a disk
  double silent_seconds = 0;     // since it said so last
  double processor_seconds = 0;  // that the process took
};
// The group has fallen apart under this worker, which keeps what it holds and awaits another one.
struct GroupLostMessage {
  std::uint64_t generation = 0;
  std::uint64_t rounds = 0;             // applied, since the job's start
  std::string reason{};                 // what it saw of it
  std::vector<std::uint32_t> blames{};  // ranks whose connections failed, as far as it knows
  // All members were asked to and left it after the same round: nothing is lost, nobody is to
  // blame.
  bool planned = false;
};
// Parameters that all members should hold alike were not, and are again. Of those that were right
// the lowest rank says so.
struct DifferedMessage {
  std::uint64_t generation = 0;
  std::uint64_t rounds = 0;            // applied before
  std::vector<std::uint32_t> wrong{};  // ranks
  bool majority = false;               // else nobody knows who was wrong
};
// The members have chosen which samples epochs are made of. From rank 0.
struct SelectedMessage {
  std::uint64_t generation = 0;
  std::uint64_t rounds = 0;  // applied before
  std::uint64_t epoch = 0;   // completed before
  std::uint64_t number = 0;  // of the choice, from 1
  std::string facts{};       // for a person
  double seconds = 0;        // that the group stood still for it
};
struct FailedMessage {
  std::string field{};
  std::string message{};
  std::uint64_t lost_generation = 0;
  bool transient = false;  // a device, a file or a connection failed, not the job
};
using FromWorker =
    std::variant<ReadyMessage, EndpointMessage, ReportMessage, EvaluatedMessage, FinishedMessage,
                 FailedMessage, CheckpointedMessage, StandingMessage, ValidatedMessage,
                 GroupLostMessage, DifferedMessage, SelectedMessage>;

}  // namespace tactus::protocol
