// How workers become a group: all have loaded the same, all say where they are, all learn of all.

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/job/actions.h"

namespace tactus::job {

// What all members of a group must have loaded alike.
struct LoadedCount {
  std::uint64_t ReadyMessage::*value;
  const char* noun;
  const char* field;  // of the job file
};
inline constexpr std::array<LoadedCount, 3> kLoadedCounts = {
    {{&ReadyMessage::parameters, "parameters", "model"},
     {&ReadyMessage::train_samples, "training samples", "data"},
     {&ReadyMessage::validation_samples, "validation samples", "data"}}};

// What a worker says that it is as a program; 0: it is none.
std::uint64_t ProgramHash(const ReadyMessage& ready);

// A member that loaded something else than the rest.
struct Mismatch {
  std::uint32_t rank = 0;       // the odd one
  std::uint32_t reference = 0;  // the lowest rank with the value of most
  std::string noun{};           // "training samples"
  std::string field{};          // of the job file, to blame
  std::uint64_t found = 0;      // of `rank`
  std::uint64_t expected = 0;   // of `reference`
  bool is_count = true;         // else they are hashes, which tell people nothing
};

// "worker 2 on node b has 99 parameters, worker 1 on node a has 10". members: by rank.
std::string WordsOf(const Mismatch& mismatch, const std::vector<MemberRecord>& members);

// By rank: the index of the member's node among the group's nodes, in order of first appearance.
std::vector<std::uint32_t> NodesOf(const std::vector<MemberRecord>& members);

// The forming of one generation. It starts loading, meets once Begin names the generation, and is
// formed once all endpoints are in. What comes in the wrong phase or twice does nothing. One of
// members who trained before meets at once.
class GroupFormation {
 public:
  enum class Phase { kLoading, kMeeting, kFormed };

  explicit GroupFormation(std::uint32_t size) : ready_(size), endpoints_(size) {}

  // Of members who have all loaded. phase: kMeeting; kFormed: another coordinator saw them meet.
  GroupFormation(std::uint32_t size, std::uint64_t generation, Phase phase)
      : phase_(phase), generation_(generation), endpoints_(size) {}

  // A member has loaded. True when it was the last one: FindMismatch, then Begin, are due.
  bool SetReady(std::uint32_t rank, const ReadyMessage& ready);

  // The first count (parameters, training samples, validation samples), or else what programs are,
  // or of those that split a model the version by which they do, that is not equal on all, and the
  // first rank that differs from what most have; on a tie the lowest rank's value is right.
  std::optional<Mismatch> FindMismatch(bool of_meshes) const;

  // Requires: loading, all ready.
  void Begin(std::uint64_t generation);

  // A member says where it is. True when it was the last one: the group is formed.
  bool SetEndpoint(std::uint32_t rank, const EndpointMessage& endpoint);

  Phase phase() const { return phase_; }
  std::vector<std::string> endpoints() const;  // by rank; requires: all said theirs
  std::vector<std::uint32_t> Missing() const;  // ranks that the present phase waits for
  // Who keeps the group from its first round, and with what. members: by rank.
  std::string Obstacle(const std::vector<MemberRecord>& members) const;
  // What rank 0 has loaded, and so all. Requires: all have loaded since it began.
  const ReadyMessage& loaded() const;
  // What their program says of itself; nothing: they are none. Requires: all have loaded.
  const std::optional<ProgramFacts>& facts() const { return ready_.front()->program; }
  // Beside dense, that all members know. Requires: likewise.
  std::vector<policies::Encoding> encodings() const;
  // Samples/s that the members tried out, by rank; 0: not. Requires: likewise.
  std::vector<double> speeds() const;
  std::vector<std::string> nccl_versions() const;

 private:
  Phase phase_ = Phase::kLoading;
  std::uint64_t generation_ = 0;
  std::vector<std::optional<ReadyMessage>> ready_{};
  std::vector<std::optional<std::string>> endpoints_{};
};

}  // namespace tactus::job
