// Two replicas of four devices train one model, by the round engine, as one worker does that has
// all of the samples.

#include "agent/collective/replicas.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "agent/collective/in_process.h"
#include "agent/engine/combine/lanes.h"
#include "agent/engine/exact_sum.h"
#include "agent/engine/round_engine.h"
#include "agent/model/parallel/partition.h"
#include "cuda/device.h"
#include "tests/agent/collective/groups.h"
#include "tests/agent/model/parallel/mesh_support.h"

namespace tactus::model {
namespace {

using collective::MeshShape;

constexpr std::uint64_t kTrained = 44;  // of 16 a round: an epoch's last round has 12
constexpr std::uint32_t kRoundSamples = 16;
constexpr std::uint64_t kEpochs = 4;

engine::EngineOptions OptionsOfEngine(const engine::OptimizerOptions& optimizer) {
  return {.seed = 3,
          .train_samples = kTrained,
          .micro_batch = 64,
          .optimizer = optimizer,
          .stop = {.epochs = kEpochs}};
}

// Of all samples, those of the indices.
class Picked {
 public:
  Picked(const ExampleSet& all, const std::vector<std::uint64_t>& indices) {
    const Examples whole = all.All();
    const std::size_t inputs = whole.inputs.size() / whole.count;
    const std::size_t targets = whole.targets.size() / whole.count;
    for (const std::uint64_t index : indices) {
      const auto input = whole.inputs.subspan(index * inputs, inputs);
      const auto target = whole.targets.subspan(index * targets, targets);
      inputs_.insert(inputs_.end(), input.begin(), input.end());
      targets_.insert(targets_.end(), target.begin(), target.end());
    }
    examples_ = whole;
    examples_.count = indices.size();
    examples_.inputs = inputs_;
    examples_.targets = targets_;
  }
  const Examples& examples() const { return examples_; }

 private:
  std::vector<std::byte> inputs_;
  std::vector<std::byte> targets_;
  Examples examples_;
};

struct TrainedMember {
  std::vector<double> losses;          // means of rounds, as reports have them
  std::vector<std::uint64_t> samples;  // likewise, of all members
  std::uint64_t rounds = 0;
  std::vector<float> copies;  // what other members of the replica have as well
};

// What a member trains with besides its model.
struct Trainee {
  engine::OptimizerOptions optimizer{};
  std::span<float> parameters{};
  std::span<float> gradients{};
  double& loss_sum;
  collective::ReplicaSums replica_sums{};
  policies::Encoding encoding = policies::Encoding::kDense;
};

// Drives an engine over a model to the end.
TrainedMember Train(Model& model, collective::Transport& transport, const Trainee& trainee) {
  const ExampleSet all = Tokens(kTrained, 8);
  const std::unique_ptr<cuda::Device> device = cuda::MakeHostDevice("cpu:0");
  const std::span<float> gradients = trainee.gradients;
  engine::Member member(OptionsOfEngine(trainee.optimizer), *device, model.segments(),
                        trainee.parameters);
  policies::Plan plan{.encoding = trainee.encoding};
  const auto members = static_cast<std::uint32_t>(transport.size());
  plan.batch_sizes.assign(members, kRoundSamples / members);
  engine::RoundEngine engine(member,
                             {.gradients = gradients,
                              .loss_sum = {&trainee.loss_sum, 1},
                              .replica_sums = trainee.replica_sums},
                             transport, plan);
  TrainedMember trained;
  Instant now = collective::kTestNow;
  EXPECT_TRUE(engine.Begin(now));
  while (const std::optional<engine::Batch> batch = engine.NextBatch()) {
    const Picked picked(all, batch->indices);
    const absl::Status status =
        model.ForwardBackward(picked.examples(), [&](SegmentGradient gradient) {
          const cuda::Segment& segment = model.segments()[gradient.segment];
          for (std::size_t i = 0; gradient.values != nullptr && i < segment.length; ++i) {
            gradients[segment.offset + i] += gradient.values[i];
          }
        });
    EXPECT_TRUE(status.ok()) << status;
    const Instant started = now;
    now += Seconds(0.001);
    engine.Step({.started = started, .finished = now});
    while (const std::optional<policies::Report> report = engine.TakeReport()) {
      trained.losses.push_back(report->loss_mean_global);
      trained.samples.push_back(report->samples_global);
    }
  }
  EXPECT_EQ(engine.outcome(), engine::Outcome::kFinished) << engine.reason();
  trained.rounds = engine.rounds();
  return trained;
}

std::size_t GradientsOf(const Model& model, int members) {
  return cuda::FlatLength(model.segments()) + engine::LaneCount(static_cast<std::size_t>(members));
}

// Over the replica whose part the model is.
collective::ReplicaSums SumsOf(const PartitionedModel& model, collective::MeshGroups& groups) {
  return {
      .counts = model.counts(), .copies = model.copies(), .add = [&groups](std::span<double> sums) {
        collective::Completion row = engine::SumExactly(*groups.row, sums);
        if (row.progress == collective::Progress::kFailed) return row;
        return engine::SumExactly(*groups.column, sums);
      }};
}

struct Replica {
  const char* name;
  MeshKind kind;
  engine::OptimizerOptions optimizer;
};

const engine::SgdOptions kSgd{.learning_rate = 0.1, .momentum = 0.9};
// Its epsilon is as large as gradients are, so that its direction is no further off than they are,
// twice over, and the ratio as much again: less than momentum makes of it.
const engine::LambOptions kLamb{.learning_rate = 0.05, .epsilon = 0.01};

// Of the model's copies, by segment.
std::vector<float> CopiesOf(const BoundPart& part) {
  std::vector<float> copies;
  for (std::size_t i = 0; i < part.model->segments().size(); ++i) {
    if (!part.model->copies()[i]) continue;
    const cuda::Segment& segment = part.model->segments()[i];
    const std::span<const float> values =
        part.parameters.span().subspan(segment.offset, segment.length);
    copies.insert(copies.end(), values.begin(), values.end());
  }
  return copies;
}

// Eight over sockets, as two replicas; each of them writes "replica 0" and "replica 1".
std::vector<TrainedMember> TrainTwo(const Replica& replica, policies::Encoding encoding,
                                    const ScratchFolder& folder) {
  const ModelOptions options = SmallLm(replica.kind, 4);
  const MeshShape shape = *MeshShapeOf(options);
  const std::vector<collective::TcpMeeting> meetings = collective::MeetInMemory(8);
  std::vector<TrainedMember> members(8);
  collective::OnEveryRank(8, [&](int rank) {
    const auto index = static_cast<std::size_t>(rank);
    collective::ConnectedMesh mesh = collective::ConnectTcpMesh(meetings[index], 1, shape);
    ASSERT_EQ(mesh.reason, "");
    BoundPart part(options, mesh.groups);
    const AlignedFloats gradients(GradientsOf(*part.model, 8));
    const std::span<float> vector =
        gradients.span().first(cuda::FlatLength(part.model->segments()));
    collective::ReplicaTransport transport(*mesh.world.front(), mesh.groups, shape, vector);
    members[index] = Train(*part.model, transport,
                           {.optimizer = replica.optimizer,
                            .parameters = part.parameters.span(),
                            .gradients = gradients.span(),
                            .loss_sum = part.loss_sum,
                            .replica_sums = SumsOf(*part.model, mesh.groups),
                            .encoding = encoding});
    members[index].copies = CopiesOf(part);
    const std::string file = folder.Path("replica " + std::to_string(rank / 4));
    EXPECT_TRUE(part.model->SaveSafetensors(file).ok());
    // Who leaves ends the groups of those who still write.
    EXPECT_EQ(transport.StartBarrier()->Wait().progress, collective::Progress::kDone);
  });
  return members;
}

class ReplicasTest : public ::testing::TestWithParam<Replica> {};

TEST_P(ReplicasTest, TwoTrainAsOneWorkerDoes) {
  const ScratchFolder folder;
  // One worker.
  BoundModel dense(SmallLm(MeshKind::kNone, 1));
  const auto alone =
      std::move(collective::MakeInProcessGroup(1, [] { return collective::kTestNow; }).front());
  const AlignedFloats dense_gradients(GradientsOf(*dense.model, 1));
  const TrainedMember expected = Train(*dense.model, *alone,
                                       {.optimizer = GetParam().optimizer,
                                        .parameters = dense.parameters.span(),
                                        .gradients = dense_gradients.span(),
                                        .loss_sum = dense.loss_sum});
  ASSERT_TRUE(dense.model->SaveSafetensors(folder.Path("dense")).ok());

  const std::vector<TrainedMember> members =
      TrainTwo(GetParam(), policies::Encoding::kDense, folder);

  ASSERT_EQ(expected.rounds, kEpochs * 3);
  for (const TrainedMember& member : members) {
    EXPECT_EQ(member.rounds, expected.rounds);
    EXPECT_EQ(member.samples, expected.samples);  // each counted once, whatever the replica's size
    ASSERT_EQ(member.losses.size(), expected.losses.size());
    for (std::size_t i = 0; i < expected.losses.size(); ++i) {
      // A mean of 5.5, whose parameters have gone through up to 12 steps: see below.
      EXPECT_NEAR(member.losses[i], expected.losses[i], 12 * 100 * 8 * 0x1.0p-24);
    }
  }
  EXPECT_LT(expected.losses.back(), expected.losses.front() - 0.2);
  // Replicas are equal bit for bit, and the dense model within rounding.
  EXPECT_EQ(ReadText(folder.Path("replica 0")), ReadText(folder.Path("replica 1")));
  ASSERT_TRUE(dense.model->LoadSafetensors(folder.Path("replica 0")).ok());
  const std::vector<float> split = dense.Weights();
  ASSERT_TRUE(dense.model->LoadSafetensors(folder.Path("dense")).ok());
  const std::vector<float> whole = dense.Weights();
  double square = 0;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    square += static_cast<double>(split[i] - whole[i]) * (split[i] - whole[i]);
  }
  // 12 steps of gradients whose relative errors are some 100 roundings, momentum times ten.
  double norm = 0;
  for (const float value : whole) norm += static_cast<double>(value) * value;
  EXPECT_LT(std::sqrt(square), 12 * 100 * 0x1.0p-24 * std::sqrt(norm));
}

INSTANTIATE_TEST_SUITE_P(OfFourDevices, ReplicasTest,
                         ::testing::Values(Replica{"in2d", MeshKind::k2d, kSgd},
                                           Replica{"in1d", MeshKind::k1d, kSgd},
                                           Replica{"Lambin2d", MeshKind::k2d, kLamb},
                                           Replica{"Lambin1d", MeshKind::k1d, kLamb}),
                         [](const ::testing::TestParamInfo<Replica>& test) {
                           return std::string(test.param.name);
                         });

// ---- Encoded between replicas

class EncodedReplicasTest
    : public ::testing::TestWithParam<std::tuple<Replica, policies::Encoding>> {};

// Members of a row (1-D) or a column (2-D) hold the same copies to the bit, whatever was rounded or
// left out of what each place has of its own.
TEST_P(EncodedReplicasTest, TheirCopiesStayEqualAndTheyLearn) {
  const auto& [replica, encoding] = GetParam();
  const ScratchFolder folder;
  const std::vector<TrainedMember> dense = TrainTwo(replica, policies::Encoding::kDense, folder);
  const std::string exact = ReadText(folder.Path("replica 0"));

  const std::vector<TrainedMember> members = TrainTwo(replica, encoding, folder);

  EXPECT_NE(ReadText(folder.Path("replica 0")), exact) << "it has an effect";
  EXPECT_EQ(ReadText(folder.Path("replica 0")), ReadText(folder.Path("replica 1")));
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    const std::size_t twin = replica.kind == MeshKind::k2d ? rank % 2 : 0;
    EXPECT_FALSE(members[rank].copies.empty());
    EXPECT_TRUE(collective::SameBits(members[rank].copies, members[twin].copies)) << rank;
  }
  // What is left out comes later: a third of what dense rounds learn, at least, in so few.
  const std::vector<double>& exact_losses = dense[0].losses;
  const double learned = exact_losses.front() - exact_losses.back();
  EXPECT_GT(learned, 0.2);
  EXPECT_GT(members[0].losses.front() - members[0].losses.back(), learned / 3);
}

// Adam's steps are as long for small gradients as for large ones: of a copy that was rounded in two
// ways it would make two.
const engine::AdamOptions kAdam{.learning_rate = 0.01};

INSTANTIATE_TEST_SUITE_P(
    OfFourDevices, EncodedReplicasTest,
    ::testing::Combine(::testing::Values(Replica{"in2d", MeshKind::k2d, kAdam},
                                         Replica{"in1d", MeshKind::k1d, kAdam}),
                       ::testing::Values(policies::Encoding::kFloat16, policies::Encoding::kDq,
                                         policies::Encoding::kSketch,
                                         policies::Encoding::kAdacomp)),
    [](const ::testing::TestParamInfo<std::tuple<Replica, policies::Encoding>>& test) {
      return std::string(policies::NameOf(std::get<1>(test.param))) + std::get<0>(test.param).name;
    });

}  // namespace
}  // namespace tactus::model
