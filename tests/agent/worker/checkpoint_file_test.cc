// What is written is what is read; anything else is refused with the reason.

#include "agent/worker/checkpoint_file.h"

#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "agent/tensors/safetensors.h"
#include "agent/worker/checkpoint_residuals.h"
#include "base/rng.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/agent/worker/support/scratch_folder.h"

namespace tactus::worker {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

cuda::SegmentTable Segments() {
  cuda::SegmentTable segments = {{.name = "layer.weight", .length = 6, .shape = {2, 3}},
                                 {.name = "layer.bias", .length = 3, .shape = {3}}};
  cuda::AssignOffsets(segments);
  return segments;
}

class CheckpointFileTest : public testing::Test {
 protected:
  CheckpointFileTest()
      : segments_(Segments()),
        folder_(MakeFolder("checkpoint")),
        path_(folder_ + "/" + kCheckpointFile),
        checkpoint_(MakeCheckpoint()) {}
  ~CheckpointFileTest() override { std::filesystem::remove_all(folder_); }

  std::vector<float> RandomFlat() {
    std::vector<float> flat(cuda::FlatLength(segments_));
    for (const cuda::Segment& segment : segments_) {
      for (std::size_t i = 0; i < segment.length; ++i) {
        flat[segment.offset + i] = static_cast<float>(rng_.Normal());
      }
    }
    return flat;
  }

  static engine::Subset HundredOf() {
    engine::Subset subset{
        .number = 3, .epoch = 2, .kind = engine::SubsetKind::kCraig, .by_inputs = true};
    for (std::uint64_t i = 0; i < 100; ++i) {
      subset.samples.push_back((std::uint64_t{1} << 40) + 3 * i);
      subset.weights.push_back(0.1F + 0.018F * static_cast<float>(i));
    }
    return subset;
  }

  // Numbers that text must carry to the last bit.
  Checkpoint MakeCheckpoint() {
    return {.state = {.rounds = (std::uint64_t{1} << 60) + 1,
                      .samples_global = 1234,
                      .steps = 99,
                      .nonfinite_rounds = 2,
                      .train_time = Duration(987'654'321'012'345),
                      .learning_rate =
                          {.progress = 1.0 / 3,
                           .adascale = {.base_batch = 64,
                                        .average = {.moments = {.sigma2 = 1e-7 / 3, .mu2 = 5e-324},
                                                    .count = 17,
                                                    .weights = 0.1},
                                        .estimated = true},
                           .windows = {.base_batch = 64,
                                       .average = {.moments = {.sigma2 = 2.0 / 3, .mu2 = 1e-9},
                                                   .count = 3,
                                                   .weights = 0.488},
                                       .estimated = true}},
                      .ledger = {.epoch_size = 100,
                                 .fresh = 250,
                                 .returned = {{3, 7}, {11, 12}},
                                 .subset = HundredOf()},
                      .validation = {.count = 7,
                                     .last = {.rounds = 90,
                                              .epochs = 2,
                                              .samples = 1200,
                                              .trained = Duration(12'345)},
                                     .cost = Duration(678),
                                     .total_cost = Duration(6789),
                                     .samples = 50,
                                     .loss = 1.0 / 7,
                                     .best_loss = 1.0 / 9,
                                     .best_accuracy = 2.0 / 3,
                                     .best_samples = 50,
                                     .best_rounds = 80,
                                     .since_best = 3},
                      .losses = {{.common = {.sum = 0.1, .samples = 32}, .steps = 1},
                                 {.common = {.sum = 1.0 / 7, .samples = 31},
                                  .local = {.sum = 2.0 / 7, .samples = 93},
                                  .steps = 4}},
                      .optimizer = {RandomFlat(), RandomFlat()},
                      .block_momentum = RandomFlat(),
                      .one_bit = {.frozen = true,
                                  .since = 70,
                                  .frozen_steps = 29,
                                  .begun = 1.0 / 11,
                                  .variance = 1.0 / 13,
                                  .looks = 4,
                                  .next_look = 100,
                                  .scales = {1.0 / 3, 7},
                                  .layers = {{.sum = 0.1, .weight = 0.2, .factor = 1.1},
                                             {.sum = 0.3, .weight = 0.2, .factor = 0.9}}},
                      .fresh_moment = RandomFlat()},
            .parameters = RandomFlat(),
            .buffers = {1.5F, -2, 0},
            .residuals = {{{"adacomp", RandomFlat()}, {"adacomp_of", {24, 1}}},
                          {{"adacomp", RandomFlat()}, {"adacomp_of", {24, 1}}}},
            .best = std::make_shared<const BestCopy>(
                BestCopy{.parameters = RandomFlat(), .buffers = {3, 4, 5}})};
  }

  CheckpointFit Fit() const {
    return {.segments = segments_,
            .buffers = 3,
            .optimizer_buffers = 2,
            .lamb = true,
            .train_samples = 100};
  }

  void Write() const { ASSERT_TRUE(WriteCheckpoint(checkpoint_, segments_, path_).ok()); }

  std::string Bytes() const {
    std::ifstream file(path_, std::ios::binary);
    std::stringstream bytes;
    bytes << file.rdbuf();
    return bytes.str();
  }
  void WriteBytes(const std::string& bytes) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
  }

  std::string Refusal(const CheckpointFit& fit) const {
    const absl::StatusOr<Checkpoint> read = ReadCheckpoint(path_, fit);
    return read.ok() ? "taken" : std::string(read.status().message());
  }

  static void ExpectEqual(const Checkpoint& a, const Checkpoint& b) {
    EXPECT_TRUE(a.state == b.state);
    EXPECT_EQ(a.parameters, b.parameters);
    EXPECT_EQ(a.buffers, b.buffers);
    ASSERT_EQ(a.best == nullptr, b.best == nullptr);
    if (a.best == nullptr) return;
    EXPECT_EQ(a.best->parameters, b.best->parameters);
    EXPECT_EQ(a.best->buffers, b.best->buffers);
  }

  Rng rng_{7};
  const cuda::SegmentTable segments_;
  const std::string folder_;
  const std::string path_;
  Checkpoint checkpoint_;
};

TEST_F(CheckpointFileTest, WhatIsWrittenIsReadToTheLastBit) {
  Write();

  const absl::StatusOr<Checkpoint> read = ReadCheckpoint(path_, Fit());

  ASSERT_TRUE(read.ok()) << read.status();
  ExpectEqual(*read, checkpoint_);
  EXPECT_FALSE(std::filesystem::exists(path_ + ".partial"));
}

TEST_F(CheckpointFileTest, WhatEncodingsHadLeftIsReadOfWhichMemberItIsAskedFor) {
  Write();

  const auto residuals = CheckpointedResiduals::Open(path_, segments_);

  ASSERT_TRUE(residuals.ok()) << residuals.status();
  const engine::ResidualParts parts = residuals->parts();
  ASSERT_EQ(parts.members, 2u);
  EXPECT_EQ(parts.of(0), checkpoint_.residuals[0]);
  EXPECT_EQ(parts.of(1), checkpoint_.residuals[1]);
}

TEST_F(CheckpointFileTest, OneOfBeforeResidualsWereKeptHasNone) {
  checkpoint_.residuals.clear();
  Write();

  EXPECT_EQ(Refusal(Fit()), "taken");
  EXPECT_EQ(CheckpointedResiduals::Open(path_, segments_)->parts().members, 0u);
}

// As another model's segments, or another encoding, would have them.
TEST_F(CheckpointFileTest, ResidualsOfAnotherShapeAreRefusedWithWhatDiffers) {
  checkpoint_.residuals[1]["adacomp_of"] = {24};
  Write();
  EXPECT_THAT(Refusal(Fit()),
              HasSubstr("tensor 'residuals.1.adacomp_of' is F32[1], this job's is F32[2]"));

  checkpoint_.residuals[1].erase("adacomp_of");
  Write();
  EXPECT_THAT(Refusal(Fit()), HasSubstr("it has no tensor 'residuals.1.adacomp_of'"));

  // In the shapes of other segments of the same names.
  checkpoint_.residuals = {{{"adacomp", std::vector<float>(32)}}};
  cuda::SegmentTable former = Segments();
  former[0].shape = {6};
  std::vector<tensors::NamedTensor> written = ResidualTensors(checkpoint_.residuals, former);
  ASSERT_TRUE(tensors::WriteSafetensors(path_, std::move(written)).ok());
  const auto file = tensors::ReadSafetensors(path_);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(tensors::DifferencesFrom(*file, Wanted(ResidualsIn(*file), segments_)),
            "tensor 'residuals.0.adacomp.layer.weight' is F32[6], this job's is F32[2, 3]");
}

// As versions wrote them that did not tell losses at common parameters from others.
TEST_F(CheckpointFileTest, OneWithoutLocalLossesIsRead) {
  for (policies::RoundLosses& round : checkpoint_.state.losses) round.local = {};
  Write();

  const auto file = tensors::ReadSafetensors(path_);
  const absl::StatusOr<Checkpoint> read = ReadCheckpoint(path_, Fit());

  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_FALSE(file->tensors.contains("local_losses"));
  ASSERT_TRUE(read.ok()) << read.status();
  ExpectEqual(*read, checkpoint_);
}

// The counters and the hash of a file that a version wrote which knew no validations.
TEST_F(CheckpointFileTest, OneOfBeforeThereWereValidationsIsRead) {
  std::map<std::string, std::string> texts = {{"tactus.schema", "1"},
                                              {"rounds", "7"},
                                              {"samples_global", "112"},
                                              {"steps", "7"},
                                              {"nonfinite_rounds", "0"},
                                              {"train_nanoseconds", "12345"},
                                              {"progress", "7"},
                                              {"windows.bending", "0"},
                                              {"windows.bending_weight", "0"},
                                              {"ledger.epoch_size", "100"},
                                              {"ledger.fresh", "112"},
                                              {"content_hash", "14766951980458211624"}};
  for (const std::string rule : {"adascale.", "windows."}) {
    texts[rule + "base_batch"] = "64";
    for (const char* zero : {"estimated", "sigma2", "mu2", "count", "weights"}) {
      texts[rule + zero] = "0";
    }
  }
  const std::vector<float> values = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  const auto bytes = std::as_bytes(std::span(values));
  const auto tensor = [](const char* name, const char* type, std::vector<std::int64_t> shape,
                         std::span<const std::byte> of) {
    return tensors::NamedTensor{.name = name,
                                .type = type,
                                .element_bytes = type[0] == 'F' && type[1] == '3' ? 4u : 8u,
                                .shape = std::move(shape),
                                .bytes = of};
  };
  ASSERT_TRUE(
      tensors::WriteSafetensors(
          path_,
          {tensor("parameters.layer.weight", "F32", {2, 3}, bytes.first(24)),
           tensor("parameters.layer.bias", "F32", {3}, bytes.last(12)),
           tensor("buffers", "F32", {3}, bytes.first(12)),
           tensor("ledger.returned", "U64", {0, 2}, {}), tensor("losses", "F64", {0, 3}, {})},
          texts)
          .ok());

  const absl::StatusOr<Checkpoint> read =
      ReadCheckpoint(path_, {.segments = segments_, .buffers = 3, .train_samples = 100});

  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->state.rounds, 7u);
  EXPECT_TRUE(read->state.validation == engine::ValidationState());
  EXPECT_EQ(read->best, nullptr);
}

TEST_F(CheckpointFileTest, WhatAJobHasNotIsNotInIt) {
  checkpoint_.state.block_momentum.clear();
  checkpoint_.state.one_bit = {};
  checkpoint_.state.fresh_moment.clear();
  checkpoint_.state.optimizer.clear();
  checkpoint_.state.losses.clear();
  checkpoint_.state.ledger.returned.clear();
  checkpoint_.buffers.clear();
  checkpoint_.residuals.clear();
  checkpoint_.best.reset();
  Write();

  const absl::StatusOr<Checkpoint> read =
      ReadCheckpoint(path_, {.segments = segments_, .train_samples = 100});

  ASSERT_TRUE(read.ok()) << read.status();
  ExpectEqual(*read, checkpoint_);
  const auto file = tensors::ReadSafetensors(path_);
  EXPECT_EQ(file->tensors.at("parameters.layer.weight").shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_FALSE(file->tensors.contains("optimizer.0.layer.weight"));
  EXPECT_FALSE(file->tensors.contains("block_momentum.layer.weight"));
  EXPECT_FALSE(file->tensors.contains("fresh_moment.layer.weight"));
  EXPECT_FALSE(file->tensors.contains("one_bit.scales"));
  EXPECT_FALSE(file->tensors.contains("one_bit.layers"));
  EXPECT_FALSE(file->tensors.contains("best.layer.weight"));
}

TEST_F(CheckpointFileTest, AFileCutAtAnyByteIsRefused) {
  Write();
  const std::string whole = Bytes();

  for (std::size_t size = 0; size < whole.size(); ++size) {
    WriteBytes(whole.substr(0, size));
    const absl::Status refusal = ReadCheckpoint(path_, Fit()).status();
    ASSERT_TRUE(absl::IsDataLoss(refusal)) << size << ": " << refusal;
    ASSERT_THAT(std::string(refusal.message()), StartsWith("checkpoint: ")) << size;
  }
  WriteBytes(whole + "x");
  EXPECT_THAT(Refusal(Fit()), HasSubstr("do not cover its data once"));
}

TEST_F(CheckpointFileTest, AFileWithAByteChangedIsRefusedOrSaysTheSame) {
  Write();
  const std::string whole = Bytes();
  std::size_t taken = 0;

  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const int change : {0x01, 0x10, 0x80}) {
      std::string spoilt = whole;
      spoilt[at] = static_cast<char>(spoilt[at] ^ change);
      WriteBytes(spoilt);
      const absl::StatusOr<Checkpoint> read = ReadCheckpoint(path_, Fit());
      if (!read.ok()) {
        ASSERT_THAT(std::string(read.status().message()), StartsWith("checkpoint: "));
        continue;
      }
      ++taken;
      ASSERT_NO_FATAL_FAILURE(ExpectEqual(*read, checkpoint_)) << at;
    }
  }
  // The library's own "format", and no more.
  EXPECT_LT(taken, 40u);
}

// Samples that are not there would be read.
TEST_F(CheckpointFileTest, ASubsetOfOtherDataIsRefused) {
  Write();
  CheckpointFit fit = Fit();
  fit.data_samples = 1000;

  EXPECT_THAT(Refusal(fit),
              HasSubstr("its subset has the sample 1099511628073, the data has 1000"));
}

TEST_F(CheckpointFileTest, AnotherJobsCheckpointIsRefusedWithWhatDiffers) {
  checkpoint_.best.reset();
  checkpoint_.state.one_bit = {};
  checkpoint_.state.fresh_moment.clear();
  Write();
  cuda::SegmentTable wider = Segments();
  wider[0].shape = {3, 2};
  cuda::SegmentTable renamed = Segments();
  renamed[1].name = "head.bias";
  cuda::SegmentTable fewer = {Segments()[0]};
  const auto refusal = [&](const cuda::SegmentTable& segments) {
    return Refusal(
        {.segments = segments, .buffers = 3, .optimizer_buffers = 2, .train_samples = 100});
  };

  EXPECT_THAT(refusal(wider), HasSubstr("tensor 'parameters.layer.weight' is F32[2, 3], this "
                                        "job's is F32[3, 2]"));
  EXPECT_THAT(refusal(renamed),
              HasSubstr("it has no tensor 'parameters.head.bias', this job's is F32[3]"));
  EXPECT_THAT(refusal(fewer), HasSubstr("'block_momentum.layer.bias', this job none"));
  EXPECT_THAT(
      Refusal({.segments = segments_, .buffers = 3, .optimizer_buffers = 1, .train_samples = 100}),
      HasSubstr("it has a tensor 'optimizer.1.layer.bias', this job none"));
  EXPECT_THAT(
      Refusal({.segments = segments_, .buffers = 4, .optimizer_buffers = 2, .train_samples = 100}),
      HasSubstr("tensor 'buffers' is F32[3], this job's is F32[4]"));
  EXPECT_THAT(
      Refusal({.segments = segments_, .buffers = 3, .optimizer_buffers = 2, .train_samples = 50}),
      HasSubstr("its epochs have 100 samples, the job's have 50: of other data, or of another "
                "part of it (data.subset)"));
}

TEST_F(CheckpointFileTest, WhatWouldBreakTheEngineIsRefused) {
  checkpoint_.state.ledger.returned = {{11, 12}, {3, 7}};
  Write();
  EXPECT_THAT(Refusal(Fit()), HasSubstr("not in rising order"));

  checkpoint_ = MakeCheckpoint();
  checkpoint_.state.learning_rate.progress = -1;
  Write();
  EXPECT_THAT(Refusal(Fit()), HasSubstr("its progress is not a number of steps"));

  checkpoint_ = MakeCheckpoint();
  checkpoint_.state.losses.resize(21, {.common = {.sum = 1, .samples = 1}, .steps = 1});
  Write();
  EXPECT_THAT(Refusal(Fit()), HasSubstr("too many rounds"));

  checkpoint_ = MakeCheckpoint();
  checkpoint_.state.validation.best_loss = std::numeric_limits<double>::infinity();
  Write();
  EXPECT_THAT(Refusal(Fit()), HasSubstr("its best validation is not finite"));

  checkpoint_ = MakeCheckpoint();
  checkpoint_.state.one_bit.layers[0].factor = -1;
  Write();
  EXPECT_THAT(Refusal(Fit()), HasSubstr("a number of its signs is not finite, or below zero"));

  checkpoint_ = MakeCheckpoint();
  checkpoint_.state.one_bit.layers.clear();
  Write();
  EXPECT_THAT(Refusal(Fit()), HasSubstr("its second moment is frozen, without what that takes"));
}

TEST_F(CheckpointFileTest, WhatIsNoCheckpointIsRefused) {
  EXPECT_EQ(ReadCheckpoint(path_, Fit()).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Refusal(Fit()), StartsWith("checkpoint: '" + path_));

  WriteBytes("GIF89a, and a good deal more");
  EXPECT_THAT(Refusal(Fit()), HasSubstr("is no safetensors file"));

  ASSERT_TRUE(tensors::WriteSafetensors(path_, {}).ok());
  EXPECT_THAT(Refusal(Fit()), HasSubstr("it is no checkpoint: it has no tactus.schema"));

  ASSERT_TRUE(tensors::WriteSafetensors(path_, {}, {{"tactus.schema", "2"}}).ok());
  EXPECT_THAT(Refusal(Fit()), HasSubstr("its schema is '2', this worker reads 1"));
}

}  // namespace
}  // namespace tactus::worker
