// Replicas that are meshes, for the engine's tests: each member has a part of the unknowns of least
// squares, and a replica does what a worker does that holds all of them.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "agent/collective/mesh_groups.h"
#include "agent/collective/places.h"
#include "agent/collective/transport.h"
#include "agent/engine/round_engine.h"
#include "cuda/device.h"

namespace tactus::engine::mesh_task {

using collective::Completion;
using collective::MeshShape;
using collective::Progress;
using policies::Plan;
using policies::Synchronization;

// Each sample is one random equation in the unknowns. Some of these are cut up over all places, the
// others over the columns alone, with a copy in each row, as a linear layer's biases.
inline constexpr std::size_t kSplit = 16;
inline constexpr std::size_t kCopied = 8;
inline constexpr std::size_t kUnknowns = kSplit + kCopied;
inline constexpr std::uint64_t kSamples = 157;
inline constexpr std::uint64_t kPeriod = 3;

struct Meeting {
  const MeshShape& shape;
  collective::Transport& world;
  collective::MeshGroups& groups;
};

// What happens in one group.
struct Stage {
  Plan plan{};
  // Before a step of a member, whose gradients may be spoilt; false: it is dead.
  std::function<bool(int rank, RoundEngine& engine, std::span<float> gradients)> before_step =
      [](int, RoundEngine&, std::span<float>) { return true; };
  std::function<double(int rank, std::uint64_t round)> added_loss = [](int, std::uint64_t) {
    return 0.0;
  };
  // After a step; false: the member gives the group up.
  std::function<bool(int rank, RoundEngine& engine)> after_step = [](int, RoundEngine&) {
    return true;
  };
  // Whether a member does not hear what its replica's sums came to, by their number.
  std::function<bool(int rank, int sum)> loses_sum = [](int, int) { return false; };
};

// A member that lives through several groups.
class PartHolder {
 public:
  PartHolder(EngineOptions options, const MeshShape& shape, int rank,
             std::unique_ptr<cuda::Device> device = cuda::MakeHostDevice("cpu:0"));

  cuda::Device& device() { return *device_; }
  Member& member() { return *member_; }
  const std::vector<policies::Report>& reports() const { return reports_; }
  // Samples that it has passed over, also for nothing; and those of the window that the last group
  // went on with, as its engine said.
  const std::vector<std::uint64_t>& passed() const { return passed_; }
  const std::vector<std::uint64_t>& before() const { return before_; }
  // How often it has asked for sums over its replica.
  int sums() const { return sums_; }
  std::vector<float> parameters() const;
  EngineState State();

  // visit(the number in a buffer of this member's, the one among all, whether it counts here)
  void ForEach(const std::function<void(std::size_t, std::size_t, bool)>& visit) const;

  // Until the end, or the group is lost; nothing: it is dead.
  std::optional<Outcome> TrainIn(const Meeting& meeting, const Stage& stage,
                                 const std::vector<std::uint64_t>& rounds);

 private:
  // What a mesh's pass leaves: each member's part of the gradient of all members' samples. False:
  // the replica is lost.
  bool Pass(const Meeting& meeting, const Batch& batch, std::span<float> gradients,
            std::span<double> loss_sum);

  const MeshShape shape_;
  const collective::Place place_;
  const std::unique_ptr<cuda::Device> device_;
  const cuda::SegmentTable segments_;
  cuda::Buffer parameters_;
  std::optional<Member> member_;
  std::vector<std::uint64_t> passed_;
  std::vector<std::uint64_t> before_;
  std::vector<policies::Report> reports_;
  int sums_ = 0;
};

// Replicas of one shape.
class Replicas {
 public:
  using OpenDevice = std::function<std::unique_ptr<cuda::Device>(int rank)>;
  Replicas(
      const EngineOptions& options, const MeshShape& shape, int count,
      const OpenDevice& open = [](int) { return cuda::MakeHostDevice("cpu:0"); });

  PartHolder& operator[](std::size_t rank) const { return *members_[rank]; }
  std::size_t size() const { return members_.size(); }
  // One that misses a member is ended.
  void EndLast() { members_.resize(members_.size() - static_cast<std::size_t>(shape_.devices())); }

  // goes_on: from another group.
  std::vector<std::optional<Outcome>> Train(const Stage& stage, bool goes_on = false);

  // Of the first replica, which is what all have.
  std::vector<float> Parameters() const;

 private:
  const MeshShape shape_;
  std::vector<std::unique_ptr<PartHolder>> members_;
};

struct Way {
  std::string name;
  EngineOptions options{};
};

inline void PrintTo(const Way& way, std::ostream* out) { *out << way.name; }

Way WayOf(std::string name, OptimizerOptions optimizer);
Way OfSgd(std::string name = "Sgd");
Way OfAdam();
Way OfLamb();
// Its gradients are cut to a norm.
Way Clipped(Way way);
std::vector<Way> AllWays();

// Sums over its replica in a local step: the gradient's norm, and of LAMB those of the layers.
int SumsOfStep(const Way& way);

// Of windows. sizes: of a step, by replica.
Plan PlanOf(const MeshShape& shape, const std::vector<std::uint32_t>& sizes);
// Of single steps.
Plan PlanOfSteps(const MeshShape& shape, const std::vector<std::uint32_t>& sizes);

double Distance(const std::vector<float>& one, const std::vector<float>& other);
inline double Length(const std::vector<float>& one) {
  return Distance(one, std::vector<float>(one.size()));
}

// "Name2x2" of a way and a mesh.
std::string NameOf(const Way& way, const MeshShape& shape);

}  // namespace tactus::engine::mesh_task
