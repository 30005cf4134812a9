// Replicas that are meshes of devices, over the doubles of the CUDA runtime and of NCCL: their
// engines train as those of meshes on hosts do. The double's memory is shut to the host, so that
// whoever forgot to copy crashes.

#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "agent/collective/device_mesh.h"
#include "agent/engine/round_engine.h"
#include "cuda/device.h"
#include "gtest/gtest.h"
#include "tests/agent/collective/endpoint_board.h"
#include "tests/agent/collective/nccl_double/nccl_members.h"
#include "tests/agent/engine/encodings.h"
#include "tests/agent/engine/mesh_task.h"
#include "tests/support/cuda_double/cuda_double.h"

namespace tactus::engine {
namespace {

using collective::ConnectedMesh;
using mesh_task::Clipped;
using mesh_task::MeshShape;
using mesh_task::OfAdam;
using mesh_task::OfLamb;
using mesh_task::OfSgd;
using mesh_task::Plan;
using mesh_task::PlanOf;
using mesh_task::PlanOfSteps;
using mesh_task::Replicas;
using mesh_task::Stage;
using mesh_task::WayOf;

constexpr int kReplicas = 2;

struct Case {
  mesh_task::Way way{};
  MeshShape shape{};
  bool windows = false;  // of local steps
  bool staged = false;   // by way of the hosts' memories
  policies::Aggregation aggregation = policies::Aggregation::kAverage;

  Plan plan() const {
    const std::vector<std::uint32_t> sizes = {8, 4};
    Plan plan = windows ? PlanOf(shape, sizes) : PlanOfSteps(shape, sizes);
    plan.aggregation = aggregation;
    return plan;
  }
};

std::string NameOf(const Case& test) {
  return mesh_task::NameOf(test.way, test.shape) + (test.windows ? "InWindows" : "") +
         (test.aggregation == policies::Aggregation::kAdasum ? "ByAdasum" : "") +
         (test.staged ? "Staged" : "");
}

void PrintTo(const Case& test, std::ostream* out) { *out << NameOf(test); }

class MeshesOnDevicesTest : public collective::NcclMembers,
                            public testing::WithParamInterface<Case> {
 protected:
  static Replicas OnDevices() {
    return {GetParam().way.options, GetParam().shape, kReplicas, [](int rank) {
              cuda::OpenedDevice opened = cuda::OpenDevice("cuda:" + std::to_string(rank));
              EXPECT_NE(opened.device, nullptr) << opened.reason;
              return std::move(opened.device);
            }};
  }

  std::vector<std::optional<Outcome>> Train(Replicas& replicas, const Stage& stage) {
    const int size = static_cast<int>(replicas.size());
    collective::EndpointBoard board(size);
    std::vector<std::optional<Outcome>> outcomes(replicas.size());
    // Heartbeats and grace take time, which goes on however long rounds take here.
    const std::jthread time([this](const std::stop_token& over) {
      while (!over.stop_requested()) {
        clock_.Advance(Seconds(0.01));
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
    collective::OnEveryRank(size, [&](int rank) {
      mesh_task::PartHolder& member = replicas[static_cast<std::size_t>(rank)];
      ConnectedMesh mesh = Connect(rank, member.device(), board);
      ASSERT_EQ(mesh.reason, "");
      const mesh_task::Meeting meeting{
          .shape = GetParam().shape, .world = *mesh.world.front(), .groups = mesh.groups};
      outcomes[static_cast<std::size_t>(rank)] = member.TrainIn(meeting, stage, {});
    });
    return outcomes;
  }

 private:
  ConnectedMesh Connect(int rank, cuda::Device& device, collective::EndpointBoard& board) {
    const MeshShape& shape = GetParam().shape;
    const auto now = [this] { return clock_.Now(); };
    const collective::DeviceMeeting meeting{
        .rank = rank,
        .size = kReplicas * shape.devices(),
        .generation = generation_,
        .address = "127.0.0.1",
        .device = *device.cuda_index(),
        .compute_stream = device.stream(),
        .exchange = [rank, &board](const std::string& own) { return board.Exchange(rank, own); },
        .now = now};
    if (!GetParam().staged) return collective::ConnectDeviceMesh(meeting, shape);
    return collective::StageMesh(
        collective::ConnectTcpMesh(collective::TcpMeetingOf(meeting), 1, shape),
        {.device = meeting.device, .compute_stream = meeting.compute_stream, .now = now});
  }
};

// As EngineOnDevicesTest has it: sums in another order move the last bits of norms, and these the
// clipping.
TEST_P(MeshesOnDevicesTest, TrainAsOnHosts) {
  const Stage stage{.plan = GetParam().plan()};
  Replicas on_hosts(GetParam().way.options, GetParam().shape, kReplicas);
  on_hosts.Train(stage);
  const std::vector<float> expected = on_hosts.Parameters();

  Replicas on_devices = OnDevices();
  const std::vector<std::optional<Outcome>> outcomes = Train(on_devices, stage);

  for (const std::optional<Outcome>& outcome : outcomes) EXPECT_EQ(outcome, Outcome::kFinished);
  const std::vector<float> found = on_devices.Parameters();  // members' copies agree to the bit
  ASSERT_GT(mesh_task::Length(expected), 0.1);
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i], expected[i], 1e-5 * (1 + std::abs(expected[i]))) << i;
  }
  for (std::size_t rank = 0; rank < on_devices.size(); ++rank) {
    EXPECT_EQ(on_devices[rank].reports().size(), on_hosts[rank].reports().size());
    EXPECT_EQ(on_devices[rank].passed(), on_hosts[rank].passed());
  }
  EXPECT_EQ(cuda_double::DefaultStreamUses(), 0);  // all that a round does is on its own streams
}

// The others' rounds end, and they know why.
TEST_P(MeshesOnDevicesTest, AMemberThatDiesEndsTheGroupOfAll) {
  Stage stage{.plan = GetParam().plan()};
  stage.before_step = [](int rank, RoundEngine& engine, std::span<float>) {
    return rank != 1 || engine.rounds() < 2;
  };

  Replicas on_devices = OnDevices();
  const std::vector<std::optional<Outcome>> outcomes = Train(on_devices, stage);

  for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
    if (rank == 1) {
      EXPECT_FALSE(outcomes[rank].has_value());
    } else {
      EXPECT_EQ(outcomes[rank], Outcome::kGroupLost) << rank;
    }
  }
}

std::vector<Case> Cases() {
  mesh_task::Way block = OfSgd("BlockMomentum");
  block.options.block_momentum = 0.3;
  mesh_task::Way bfloat16 = OfSgd("Bfloat16");  // between replicas
  bfloat16.options.encoding.dense = SixteenBits(kBfloat16Format);
  mesh_task::Way float16 = OfSgd("Float16");  // with scales, another one at each place
  float16.options.encoding.dense = SixteenBits(kFloat16Format);
  const mesh_task::Way plain = WayOf("PlainSgd", SgdOptions{.learning_rate = 0.01});
  constexpr auto kAdasum = policies::Aggregation::kAdasum;
  std::vector<Case> cases;
  for (const MeshShape shape : {MeshShape{1, 2}, MeshShape{2, 2}}) {
    for (const bool staged : {false, true}) {
      cases.push_back({OfSgd(), shape, false, staged});
      cases.push_back({Clipped(OfSgd()), shape, false, staged});
      cases.push_back({OfAdam(), shape, true, staged});
      cases.push_back({OfLamb(), shape, false, staged});
      cases.push_back({Clipped(OfLamb()), shape, true, staged});
      cases.push_back({Clipped(block), shape, true, staged});
      cases.push_back({bfloat16, shape, false, staged});
      cases.push_back({float16, shape, false, staged});
      cases.push_back({Clipped(float16), shape, true, staged});
      cases.push_back({plain, shape, false, staged, kAdasum});
      cases.push_back({OfAdam(), shape, true, staged, kAdasum});
    }
  }
  for (Case& test : cases) test.way.options.stop = {.rounds = 6};
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Every, MeshesOnDevicesTest, testing::ValuesIn(Cases()),
                         [](const auto& test) { return NameOf(test.param); });

}  // namespace
}  // namespace tactus::engine
