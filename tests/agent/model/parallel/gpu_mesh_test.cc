// A mesh whose members have their parts on a GPU, all on one by way of the host's memory, and a
// model that recomputes, against the same on the host. Needs a libtorch with CUDA and a device.

#include <gtest/gtest.h>
#include <torch/cuda.h>
#include <torch/script.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agent/collective/device_mesh.h"
#include "agent/collective/in_process.h"
#include "agent/collective/mesh_groups.h"
#include "agent/model/parallel/partition.h"
#include "agent/model/parallel/partitioned_model.h"
#include "tests/agent/collective/groups.h"
#include "tests/agent/model/parallel/mesh_support.h"

namespace tactus::model {
namespace {

constexpr char kGpu[] = "cuda:0";
constexpr std::uint64_t kGpuSamples = 7;  // some bring more

struct GpuLayout {
  std::string name;
  MeshKind kind = MeshKind::k1d;
  std::uint32_t devices = 2;
  bool recompute = false;
};

// What a member makes of its share of the samples.
struct PassOutcome {
  double loss = 0;
  double evaluated = 0;
  std::vector<float> weights;
  std::vector<float> gradients;
};

std::vector<float> OnHost(const at::Tensor& tensor) {
  const at::Tensor host = tensor.cpu();
  return {host.data_ptr<float>(), host.data_ptr<float>() + host.numel()};
}

// On the device that the options say.
PassOutcome PassOver(const ModelOptions& options, collective::MeshGroups& groups,
                     const Examples& examples) {
  auto model = PartitionedModel::Open(options, *groups.row, *groups.column);
  EXPECT_TRUE(model.ok()) << model.status();
  const at::TensorOptions here =
      at::TensorOptions().dtype(at::kFloat).device(at::Device(options.device));
  const auto length = static_cast<std::int64_t>(cuda::FlatLength((*model)->segments()));
  const at::Tensor parameters = torch::zeros({length}, here);
  const at::Tensor gradients = torch::zeros({length}, here);
  const at::Tensor loss = torch::zeros({1}, here.dtype(at::kDouble));
  (*model)->Bind({parameters.data_ptr<float>(), static_cast<std::size_t>(length)},
                 {loss.data_ptr<double>(), 1});
  const absl::Status passed =
      (*model)->ForwardBackward(examples, [&](const SegmentGradient& gradient) {
        if (gradient.values == nullptr) return;
        const cuda::Segment& segment = (*model)->segments()[gradient.segment];
        const auto begin = static_cast<std::int64_t>(segment.offset);
        const auto size = static_cast<std::int64_t>(segment.length);
        gradients.slice(0, begin, begin + size)
            .copy_(torch::from_blob(const_cast<float*>(gradient.values), {size}, here));
      });
  EXPECT_TRUE(passed.ok()) << passed;
  const absl::StatusOr<EvaluationSums> evaluated = (*model)->Evaluate(examples);
  EXPECT_TRUE(evaluated.ok()) << evaluated.status();
  return {.loss = loss.item<double>(),
          .evaluated = evaluated->loss_sum,
          .weights = OnHost(parameters),
          .gradients = OnHost(gradients)};
}

class GpuMeshTest : public testing::TestWithParam<GpuLayout> {
 protected:
  void SetUp() override {
    if (torch::cuda::is_available()) return;
    ASSERT_EQ(std::getenv("TACTUS_REQUIRE_GPU"), nullptr) << "libtorch sees no CUDA device";
    GTEST_SKIP() << "no GPU: libtorch sees no CUDA device";
  }

  std::vector<PassOutcome> RunOn(const std::string& device) {
    ModelOptions options = SmallLm(GetParam().kind, GetParam().devices);
    options.recompute = GetParam().recompute;
    options.device = device;
    const collective::MeshShape shape = *MeshShapeOf(options);
    std::vector<collective::MeshGroups> groups = collective::MakeInProcessMeshes(
        shape.devices(), shape, [] { return collective::kTestNow; });
    std::vector<PassOutcome> outcomes(groups.size());
    collective::OnEveryRank(shape.devices(), [&](int rank) {
      collective::MeshGroups& own = groups[static_cast<std::size_t>(rank)];
      if (device == kGpu) own = Staged(std::move(own));
      outcomes[static_cast<std::size_t>(rank)] =
          PassOver(options, own, ShareOf(examples_, 0, kGpuSamples, rank, GetParam().devices));
    });
    return outcomes;
  }

 private:
  static collective::MeshGroups Staged(collective::MeshGroups hosts) {
    collective::ConnectedMesh mesh{.groups = std::move(hosts)};
    mesh.world = collective::MakeInProcessGroup(1, [] { return collective::kTestNow; });
    mesh = collective::StageMesh(std::move(mesh),
                                 {.device = 0, .now = [] { return collective::kTestNow; }});
    EXPECT_EQ(mesh.reason, "");
    return std::move(mesh.groups);
  }

  const ExampleSet examples_ = Tokens(kGpuSamples, 8);
};

// float32 in another order; there is no ReLU here, whose derivative jumps. As GpuTwinTest has it.
TEST_P(GpuMeshTest, ComputesWhatTheHostDoes) {
  const std::vector<PassOutcome> expected = RunOn("cpu:0");

  const std::vector<PassOutcome> found = RunOn(kGpu);

  for (std::size_t rank = 0; rank < found.size(); ++rank) {
    EXPECT_EQ(found[rank].weights, expected[rank].weights) << rank;
    EXPECT_NEAR(found[rank].loss, expected[rank].loss, 1e-3 * expected[rank].loss) << rank;
    EXPECT_NEAR(found[rank].evaluated, expected[rank].evaluated, 1e-3 * expected[rank].evaluated);
    double difference2 = 0;
    double norm2 = 0;
    for (std::size_t i = 0; i < found[rank].gradients.size(); ++i) {
      const double one = expected[rank].gradients[i];
      difference2 += std::pow(double{found[rank].gradients[i]} - one, 2);
      norm2 += one * one;
    }
    EXPECT_GT(norm2, 0);
    EXPECT_LE(std::sqrt(difference2), 1e-2 * std::sqrt(norm2)) << rank;
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, GpuMeshTest,
                         testing::Values(GpuLayout{"WholeRecomputed", MeshKind::kNone, 1, true},
                                         GpuLayout{"Line2", MeshKind::k1d, 2},
                                         GpuLayout{"Grid2x2", MeshKind::k2d, 4},
                                         GpuLayout{"Grid2x2Recomputed", MeshKind::k2d, 4, true}),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace tactus::model
