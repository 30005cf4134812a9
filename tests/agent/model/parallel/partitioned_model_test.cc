// bytes-lm over meshes against the dense model: weights, losses, training, files.
//
// The bound of losses and parameters after training. Split and dense passes are the same sums in
// other orders, so that each differs from what exact arithmetic would give by rounding alone, by
// errors of one size: of each parameter's tensor the dense model's is measured against a twin in
// float64, and the split one is allowed twice that, from the same twin. A wrong factor
// anywhere is larger by thousands.

#include "agent/model/parallel/partitioned_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/script.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iostream>
#include <map>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "agent/collective/mesh_groups.h"
#include "agent/model/builtins.h"
#include "agent/model/parallel/partition.h"
#include "agent/model/torch_module.h"
#include "tests/agent/collective/groups.h"
#include "tests/agent/model/parallel/mesh_support.h"

namespace tactus::model {
namespace {

using ::testing::HasSubstr;

constexpr int kSteps = 20;
constexpr std::uint64_t kSamples = 7;  // some of four members bring more, of nine some none
constexpr float kRate = 0.02F;         // of sums over samples

// What 20 steps make.
struct Trained {
  std::vector<double> losses;
  std::map<std::string, at::Tensor> parameters;  // of the dense model, float64
};

ModelOptions DenseLm() { return SmallLm(MeshKind::kNone, 1); }

// Other examples at each step.
std::uint64_t First(int step) { return static_cast<std::uint64_t>(step) % 3 * kSamples; }
Examples Batch(const ExampleSet& set, int step) { return set.Range(First(step), kSamples); }

// The parameters in a safetensors file that the model writes.
std::map<std::string, at::Tensor> Parameters(const std::string& path) {
  const absl::StatusOr<tensors::SafetensorsFile> file = tensors::ReadSafetensors(path);
  EXPECT_TRUE(file.ok()) << file.status();
  std::map<std::string, at::Tensor> parameters;
  for (const auto& [name, tensor] : file->tensors) {
    at::Tensor values = at::empty(tensor.shape, at::TensorOptions().dtype(at::kFloat));
    std::memcpy(values.data_ptr(), tensor.bytes.data(), tensor.bytes.size());
    parameters[name] = values.to(at::kDouble);
  }
  return parameters;
}

Trained TrainDense(const ExampleSet& examples, const ScratchFolder& folder) {
  BoundModel dense(DenseLm());
  Trained trained;
  for (int step = 0; step < kSteps; ++step) {
    trained.losses.push_back(dense.Step(Batch(examples, step)));
    for (std::size_t i = 0; i < dense.parameters.span().size(); ++i) {
      dense.parameters.span()[i] -= kRate * dense.gradients.span()[i];
    }
    dense.ClearGradients();
  }
  EXPECT_TRUE(dense.model->SaveSafetensors(folder.Path("dense")).ok());
  trained.parameters = Parameters(folder.Path("dense"));
  return trained;
}

at::Tensor OverInts(std::span<const std::byte> bytes, std::uint64_t count) {
  return torch::from_blob(const_cast<std::byte*>(bytes.data()),
                          {static_cast<std::int64_t>(count), 8}, at::kLong);
}

// The same by autograd in float64.
Trained TrainTwin(const ExampleSet& examples) {
  const ModelOptions options = DenseLm();
  torch::jit::Module module = *BuildModule(MakeBuiltin(options)->root, options.seed);
  module.to(at::kDouble);
  Trained trained;
  for (int step = 0; step < kSteps; ++step) {
    const Examples batch = Batch(examples, step);
    const at::Tensor logits = module.forward({OverInts(batch.inputs, batch.count)}).toTensor();
    const at::Tensor targets = OverInts(batch.targets, batch.count).reshape({-1});
    const at::Tensor loss =
        at::cross_entropy_loss(logits.reshape({-1, 256}), targets, {}, at::Reduction::Sum) / 8;
    loss.backward();
    trained.losses.push_back(loss.item<double>());
    const at::NoGradGuard no_grad;
    for (at::Tensor parameter : module.parameters()) {
      parameter.sub_(parameter.grad(), kRate);
      parameter.mutable_grad().reset();
    }
  }
  for (const auto& parameter : module.named_parameters()) {
    trained.parameters[parameter.name] = parameter.value.detach();
  }
  return trained;
}

// Of all losses, and of each parameter: the length of the vector of differences.
std::map<std::string, double> Between(const Trained& a, const Trained& b) {
  std::map<std::string, double> errors;
  errors["the losses"] = (at::tensor(a.losses) - at::tensor(b.losses)).norm().item<double>();
  for (const auto& [name, tensor] : a.parameters) {
    errors[name] = (tensor - b.parameters.at(name)).norm().item<double>();
  }
  return errors;
}

Trained TrainSplit(const ModelOptions& options, const ExampleSet& examples,
                   const ScratchFolder& folder) {
  Trained trained;
  trained.losses.resize(kSteps);
  std::mutex mutex;
  OnParts(options, [&](int rank, BoundPart& part) {
    for (int step = 0; step < kSteps; ++step) {
      const double own =
          part.Step(ShareOf(examples, First(step), kSamples, rank, options.mesh.devices));
      part.Descend(kRate);
      const std::lock_guard lock(mutex);
      trained.losses[static_cast<std::size_t>(step)] += own;
    }
    EXPECT_TRUE(part.model->SaveSafetensors(folder.Path("split")).ok());
  });
  trained.parameters = Parameters(folder.Path("split"));
  return trained;
}

// A sample's loss of 5.5 in float32, after some ten roundings.
constexpr double kLossRounding = 10 * 8 * 0x1.0p-24;

struct Layout {
  const char* name;
  MeshKind kind;
  std::uint32_t devices;
  bool recompute = false;
};

ModelOptions OptionsOf(const Layout& layout) {
  ModelOptions options = SmallLm(layout.kind, layout.devices);
  options.recompute = layout.recompute;
  return options;
}

const std::vector<Layout>& Layouts() {
  static const std::vector<Layout> layouts = {{"whole", MeshKind::kNone, 1, true},
                                              {"1x1", MeshKind::k2d, 1},
                                              {"line1", MeshKind::k1d, 1},
                                              {"line2", MeshKind::k1d, 2},
                                              {"line4", MeshKind::k1d, 4},
                                              {"line4 recomputed", MeshKind::k1d, 4, true},
                                              {"2x2", MeshKind::k2d, 4},
                                              {"2x2 recomputed", MeshKind::k2d, 4, true},
                                              {"3x3", MeshKind::k2d, 9}};
  return layouts;
}

TEST(PartitionedModelTest, TrainsAsTheDenseModelWithinRounding) {
  const ExampleSet examples = Tokens(3 * kSamples, 8);
  const ScratchFolder folder;
  const Trained twin = TrainTwin(examples);
  const std::map<std::string, double> dense = Between(TrainDense(examples, folder), twin);
  ASSERT_GT(twin.losses.front() - twin.losses.back(), 1);  // it has learned something
  for (const Layout& layout : Layouts()) {
    double worst = 0;
    const Trained trained = TrainSplit(OptionsOf(layout), examples, folder);
    for (const auto& [name, error] : Between(trained, twin)) {
      ASSERT_GT(dense.at(name), 0) << name;
      EXPECT_LE(error, 2 * dense.at(name)) << layout.name << ": " << name;
      worst = std::max(worst, error / dense.at(name));
    }
    std::cout << layout.name << ": at worst " << worst << " of the dense model's error\n";
  }
}

// Recomputation is the same arithmetic once more: not a bit differs.
TEST(PartitionedModelTest, RecomputationChangesNoBit) {
  const ExampleSet examples = Tokens(kSamples, 8);
  std::vector<std::vector<float>> gradients(2);
  for (const bool recompute : {false, true}) {
    ModelOptions options = SmallLm(MeshKind::k2d, 4);
    options.recompute = recompute;
    OnParts(options, [&](int rank, BoundPart& part) {
      part.Step(ShareOf(examples, 0, kSamples, rank, 4));
      if (rank != 3) return;
      const std::span<float> own = part.gradients.span();
      gradients[recompute ? 1 : 0].assign(own.begin(), own.end());
    });
  }
  EXPECT_TRUE(collective::SameBits(gradients[0], gradients[1]));
}

TEST(PartitionedModelTest, MembersTellOfTheirOwnLossAndColumnsShareGradients) {
  const ExampleSet examples = Tokens(kSamples, 8);
  BoundModel dense(DenseLm());
  std::vector<double> losses;  // of each sample
  for (std::uint64_t i = 0; i < kSamples; ++i) losses.push_back(dense.Step(examples.Range(i, 1)));
  std::vector<std::vector<float>> biases(9);
  OnParts(SmallLm(MeshKind::k2d, 9), [&](int rank, BoundPart& part) {
    const auto index = static_cast<std::size_t>(rank);
    // A sample's loss is what the dense model has for it, and without a sample there is none.
    const Examples own = ShareOf(examples, 0, kSamples, rank, 9);
    const double loss = own.count == 0 ? 0 : losses[kSamples * index / 9];
    EXPECT_NEAR(part.Step(own), loss, kLossRounding);
    for (std::size_t i = 0; i < part.model->segments().size(); ++i) {
      const cuda::Segment& segment = part.model->segments()[i];
      if (segment.name != "blocks.1.up.bias") continue;
      EXPECT_EQ(part.model->counts()[i], rank < 3);
      const std::span<float> own = part.gradients.span().subspan(segment.offset, segment.length);
      biases[index].assign(own.begin(), own.end());
    }
  });
  for (std::size_t rank = 0; rank < 9; ++rank) {
    EXPECT_TRUE(collective::SameBits(biases[rank], biases[rank % 3]));
  }
}

// D(e) is the central difference along the gradient's own direction. Its truncation falls as e^2:
// D(e) - D(e / 2) is 3/4 of D(e)'s, and so the bound for D(e / 2)'s. A loss of some 40 is rounded
// to 40 * 2^-24 times a few, of which a difference over e has twice as much.
TEST(PartitionedModelTest, GradientsAreDifferenceQuotients) {
  const ExampleSet examples = Tokens(kSamples, 8);
  for (const Layout& layout :
       {Layout{"2x2", MeshKind::k2d, 4}, Layout{"line2", MeshKind::k1d, 2}}) {
    const auto devices = static_cast<std::size_t>(layout.devices);
    std::vector<double> squares(devices);
    std::vector<double> coarse(devices);
    std::vector<double> fine(devices);
    std::vector<std::vector<float>> weights(devices);
    std::vector<std::vector<float>> directions(devices);
    const auto run = [&](const std::function<void(std::size_t, BoundPart&)>& body) {
      OnParts(OptionsOf(layout),
              [&](int rank, BoundPart& part) { body(static_cast<std::size_t>(rank), part); });
    };
    const auto share = [&](std::size_t rank) {
      return ShareOf(examples, 0, kSamples, static_cast<int>(rank), layout.devices);
    };
    run([&](std::size_t rank, BoundPart& part) {
      part.Step(share(rank));
      for (std::size_t i = 0; i < part.model->segments().size(); ++i) {
        const cuda::Segment& segment = part.model->segments()[i];
        if (!part.model->counts()[i]) continue;
        for (const float value : part.gradients.span().subspan(segment.offset, segment.length)) {
          squares[rank] += static_cast<double>(value) * value;
        }
      }
      directions[rank].assign(part.gradients.span().begin(), part.gradients.span().end());
      weights[rank].assign(part.parameters.span().begin(), part.parameters.span().end());
    });
    double square = 0;
    for (const double own : squares) square += own;
    const double norm = std::sqrt(square);
    const auto difference = [&](double e, std::vector<double>& results) {
      run([&](std::size_t rank, BoundPart& part) {
        const auto at = [&](double step) {
          for (std::size_t i = 0; i < weights[rank].size(); ++i) {
            part.parameters.span()[i] =
                static_cast<float>(weights[rank][i] + step * directions[rank][i] / norm);
          }
          return part.model->Evaluate(share(rank))->loss_sum;
        };
        results[rank] = (at(e) - at(-e)) / (2 * e);
      });
    };
    constexpr double kStep = 0.02;
    difference(kStep, coarse);
    difference(kStep / 2, fine);
    const double rounding = 8 * 40 * 0x1.0p-24 / (kStep / 2);
    const double of_coarse = std::accumulate(coarse.begin(), coarse.end(), 0.0);
    const double of_fine = std::accumulate(fine.begin(), fine.end(), 0.0);
    EXPECT_NEAR(of_fine, norm, std::abs(of_coarse - of_fine) + rounding) << layout.name;
    EXPECT_GT(norm, 1);
  }
}

TEST(PartitionedModelTest, EvaluatesAsTheDenseModel) {
  const ExampleSet examples = Tokens(kSamples, 8);
  BoundModel dense(DenseLm());
  const absl::StatusOr<EvaluationSums> expected = dense.model->Evaluate(examples.All());
  ASSERT_TRUE(expected.ok());
  for (const Layout& layout : Layouts()) {
    EvaluationSums sums;
    std::mutex mutex;
    OnParts(OptionsOf(layout), [&](int rank, BoundPart& part) {
      const absl::StatusOr<EvaluationSums> own =
          part.model->Evaluate(ShareOf(examples, 0, kSamples, rank, layout.devices));
      ASSERT_TRUE(own.ok()) << own.status();
      const std::lock_guard lock(mutex);
      sums.loss_sum += own->loss_sum;
      sums.correct_sum += own->correct_sum;
      sums.samples += own->samples;
    });
    EXPECT_NEAR(sums.loss_sum, expected->loss_sum, kSamples * kLossRounding) << layout.name;
    EXPECT_NEAR(sums.correct_sum, expected->correct_sum, 1e-6) << layout.name;
    EXPECT_EQ(sums.samples, kSamples);
  }
}

// At an epoch's end there may be nothing left for anybody.
TEST(PartitionedModelTest, WithoutExamplesThereAreNoGradients) {
  const ExampleSet examples = Tokens(1, 8);
  OnParts(SmallLm(MeshKind::k2d, 4), [&](int /*rank*/, BoundPart& part) {
    std::size_t taken = 0;
    const absl::Status status = part.model->ForwardBackward(
        examples.Range(0, 0), [&taken](const SegmentGradient& gradient) {
          EXPECT_EQ(gradient.values, nullptr);
          ++taken;
        });
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(taken, part.model->segments().size());
  });
}

TEST(PartitionedModelTest, BeginsWithTheDenseModelsWeightsBitForBit) {
  const ScratchFolder folder;
  ASSERT_TRUE(BoundModel(DenseLm()).model->SaveSafetensors(folder.Path("dense")).ok());
  const std::string dense = ReadText(folder.Path("dense"));
  for (const Layout& layout : Layouts()) {
    OnParts(OptionsOf(layout), [&](int /*rank*/, BoundPart& part) {
      EXPECT_TRUE(part.model->SaveSafetensors(folder.Path(layout.name)).ok());
    });
    EXPECT_EQ(ReadText(folder.Path(layout.name)), dense) << layout.name;
  }
}

// Every pair of layouts, weights of another seed by way of a file: bit for bit.
TEST(PartitionedModelTest, EveryLayoutReadsEveryOther) {
  const ScratchFolder folder;
  for (const Layout& from : Layouts()) {
    ModelOptions written = OptionsOf(from);
    written.seed = 77;
    const std::string path = folder.Path(std::string("from ") + from.name);
    OnParts(written, [&](int /*rank*/, BoundPart& part) {
      EXPECT_TRUE(part.model->SaveSafetensors(path).ok());
    });
    const std::string expected = ReadText(path);
    BoundModel dense(DenseLm());
    ASSERT_TRUE(dense.model->LoadSafetensors(path).ok());
    ASSERT_TRUE(dense.model->SaveSafetensors(folder.Path("dense")).ok());
    EXPECT_EQ(ReadText(folder.Path("dense")), expected);
    for (const Layout& to : Layouts()) {
      OnParts(OptionsOf(to), [&](int /*rank*/, BoundPart& part) {
        EXPECT_TRUE(part.model->LoadSafetensors(path).ok());
        EXPECT_TRUE(part.model->SaveSafetensors(folder.Path("again")).ok());
      });
      EXPECT_EQ(ReadText(folder.Path("again")), expected) << from.name << " to " << to.name;
    }
  }
}

TEST(PartitionedModelTest, TheTorchScriptFileIsADenseModel) {
  const ScratchFolder folder;
  const ExampleSet examples = Tokens(3, 8);
  OnParts(SmallLm(MeshKind::k2d, 4), [&](int /*rank*/, BoundPart& part) {
    EXPECT_TRUE(part.model->SaveTorchScript(folder.Path("model.pt")).ok());
  });
  torch::jit::Module read = torch::jit::load(folder.Path("model.pt"));
  const ModelOptions options = DenseLm();
  torch::jit::Module dense = *BuildModule(MakeBuiltin(options)->root, options.seed);
  const at::Tensor tokens = OverInts(examples.All().inputs, 3);
  EXPECT_TRUE(read.forward({tokens}).toTensor().equal(dense.forward({tokens}).toTensor()));
}

TEST(PartitionedModelTest, AMemberThatIsGoneEndsThePassOfTheOthers) {
  const ExampleSet examples = Tokens(4, 8);
  const ModelOptions options = SmallLm(MeshKind::k2d, 4);
  std::vector<collective::MeshGroups> groups =
      collective::MakeInProcessMeshes(4, {2, 2}, [] { return collective::kTestNow; });
  collective::OnEveryRank(4, [&](int rank) {
    collective::MeshGroups& own = groups[static_cast<std::size_t>(rank)];
    if (rank == 0) {
      own = {};
      return;
    }
    BoundPart part(options, own);
    const absl::Status status =
        part.model->ForwardBackward(examples.All(), [](const SegmentGradient&) {});
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("model.options.mesh"));
  });
}

TEST(PartitionedModelTest, AnErrorOfOneMemberIsTheEndForTheOthersToo) {
  const ExampleSet examples = Tokens(4, 8);
  OnParts(SmallLm(MeshKind::k2d, 4), [&](int rank, BoundPart& part) {
    const absl::Status status =
        part.model->ForwardBackward(examples.Range(0, 1), [rank](const SegmentGradient&) {
          if (rank == 1) throw std::runtime_error("no room for a gradient");
        });
    EXPECT_EQ(absl::IsUnavailable(status), rank != 1) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("no room for a gradient"));
  });
}

TEST(PartitionedModelTest, WhatAMeshCannotDoIsRefusedAtItsField) {
  std::vector<collective::MeshGroups> groups =
      collective::MakeInProcessMeshes(1, {1, 1}, [] { return collective::kTestNow; });
  const auto refused = [&](const std::function<void(ModelOptions&)>& change) {
    ModelOptions options = SmallLm(MeshKind::k1d, 1);
    change(options);
    const auto model = PartitionedModel::Open(options, *groups[0].row, *groups[0].column);
    EXPECT_FALSE(model.ok());
    return std::string(model.status().message());
  };
  EXPECT_THAT(refused([](ModelOptions& o) { o.precision = Precision::kBfloat16; }),
              HasSubstr("model.precision: "));
  EXPECT_THAT(refused([](ModelOptions& o) { o.loss = "mse"; }), HasSubstr("model.loss: "));
  EXPECT_THAT(refused([](ModelOptions& o) { o.device = "cuda:0"; }), HasSubstr("workers.device: "));
  EXPECT_THAT(refused([](ModelOptions& o) { o.heads = 5; }), HasSubstr("model.options.width: "));
}

// As a worker does, that learns of its place when its group forms.
TEST(PartitionedModelTest, WhoJoinsLaterHasTheWeightsOfItsPlace) {
  for (const Layout& layout :
       {Layout{"2x2", MeshKind::k2d, 4}, Layout{"line2", MeshKind::k1d, 2}}) {
    const ModelOptions options = OptionsOf(layout);
    const ExampleSet examples = Tokens(kSamples, 8);
    std::vector<collective::MeshGroups> groups =
        collective::MakeInProcessMeshes(static_cast<int>(layout.devices), *MeshShapeOf(options),
                                        [] { return collective::kTestNow; });
    std::vector<std::vector<float>> late(layout.devices);
    std::vector<double> losses(layout.devices);
    collective::OnEveryRank(static_cast<int>(layout.devices), [&](int rank) {
      const auto index = static_cast<std::size_t>(rank);
      const std::unique_ptr<PartitionedModel> model = *PartitionedModel::OpenApart(options);
      const AlignedFloats parameters(cuda::FlatLength(model->segments()));
      double loss = 0;
      model->Bind(parameters.span(), {&loss, 1});
      const absl::StatusOr<bool> moved = model->Join(groups[index]);
      ASSERT_TRUE(moved.ok()) << moved.status();
      EXPECT_EQ(*moved, rank != 0);
      EXPECT_EQ(*model->MostOf(index), layout.devices - 1);
      const Examples own = ShareOf(examples, 0, kSamples, rank, layout.devices);
      ASSERT_TRUE(model->ForwardBackward(own, [](const SegmentGradient&) {}).ok());
      losses[index] = loss;
      late[index].assign(parameters.span().begin(), parameters.span().end());
    });
    OnParts(options, [&](int rank, BoundPart& part) {
      const auto index = static_cast<std::size_t>(rank);
      const std::span<float> own_weights = part.parameters.span();
      EXPECT_TRUE(collective::SameBits(late[index], {own_weights.begin(), own_weights.end()}))
          << layout.name;
      const Examples own = ShareOf(examples, 0, kSamples, rank, layout.devices);
      EXPECT_EQ(losses[index], part.Step(own)) << layout.name;
    });
  }
}

// As two devices would, whose norms round differently.
TEST(PartitionedModelTest, UnlikeMembersOfALineTakeTheFirstOnesGradientOfWhatAllHave) {
  const ModelOptions options = SmallLm(MeshKind::k1d, 2);
  const ExampleSet examples = Tokens(kSamples, 8);
  for (const bool unlike : {false, true}) {
    std::vector<collective::MeshGroups> groups =
        collective::MakeInProcessMeshes(2, {1, 2}, [] { return collective::kTestNow; });
    std::vector<std::map<std::string, std::vector<float>>> gradients(2);
    collective::OnEveryRank(2, [&](int rank) {
      const auto index = static_cast<std::size_t>(rank);
      groups[index].unlike = unlike;
      BoundPart part(options, groups[index]);
      ASSERT_TRUE(part.model->Join(groups[index]).ok());
      for (float& value : part.parameters.span()) value *= 1 + 1e-4F * static_cast<float>(rank);
      part.Step(ShareOf(examples, 0, kSamples, rank, 2));
      for (const cuda::Segment& segment : part.model->segments()) {
        const std::span<const float> own =
            part.gradients.span().subspan(segment.offset, segment.length);
        gradients[index][segment.name] = {own.begin(), own.end()};
      }
    });
    EXPECT_EQ(gradients[0].at("norm.weight") == gradients[1].at("norm.weight"), unlike);
    EXPECT_EQ(gradients[0].at("position.weight") == gradients[1].at("position.weight"), unlike);
    // What is cut is everybody's own.
    EXPECT_NE(gradients[0].at("head.bias"), gradients[1].at("head.bias"));
  }
}

TEST(PartitionedModelTest, FlatBuffersComeIntoTheDenseLayoutAndBack) {
  const ScratchFolder folder;
  BoundModel dense(DenseLm());
  const cuda::SegmentTable& whole = dense.model->segments();
  std::vector<float> buffer(cuda::FlatLength(whole));
  for (const cuda::Segment& segment : whole) {
    for (std::size_t i = 0; i < segment.length; ++i) {
      buffer[segment.offset + i] = static_cast<float>(segment.offset + i);
    }
  }
  for (const Layout& layout : Layouts()) {
    std::vector<std::vector<float>> cuts(
        static_cast<std::size_t>(MeshShapeOf(OptionsOf(layout))->devices()));
    OnParts(OptionsOf(layout), [&](int rank, BoundPart& part) {
      const cuda::SegmentTable& segments = part.model->dense_segments();
      ASSERT_EQ(segments.size(), whole.size());
      for (std::size_t i = 0; i < whole.size(); ++i) {
        EXPECT_EQ(segments[i].name, whole[i].name);
        EXPECT_EQ(segments[i].shape, whole[i].shape);
        EXPECT_EQ(segments[i].offset, whole[i].offset);
      }
      const std::vector<float> own = part.model->CutFlat(buffer);
      EXPECT_EQ(own.size(), cuda::FlatLength(part.model->segments()));
      const absl::StatusOr<std::vector<float>> again = part.model->GatherFlat(own);
      ASSERT_TRUE(again.ok()) << again.status();
      EXPECT_EQ(again->empty(), rank != 0);
      cuts[static_cast<std::size_t>(rank)] = own;
      ASSERT_TRUE(part.model->MostOf(0).ok());  // all have left theirs
      if (rank != 0) return;
      const std::vector<std::span<const float>> by_place(cuts.begin(), cuts.end());
      EXPECT_TRUE(collective::SameBits(part.model->JoinFlat(by_place), buffer)) << layout.name;
      EXPECT_TRUE(collective::SameBits(*again, buffer)) << layout.name;
      EXPECT_TRUE(
          part.model->SaveDense(*again, folder.Path("model.pt"), folder.Path("weights")).ok());
    });
    ASSERT_TRUE(dense.model->LoadSafetensors(folder.Path("weights")).ok());
    EXPECT_TRUE(collective::SameBits(dense.Weights(), buffer)) << layout.name;
  }
}

}  // namespace
}  // namespace tactus::model
