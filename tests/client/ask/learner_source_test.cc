#include "client/ask/learner_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "client/ask/cluster_file.h"
#include "cuda/ops/segments.h"
#include "tests/support/temporary_folder.h"

namespace tactus::client {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// A .npy file of version 1.0 with the given description and bytes.
void WriteNpy(const std::string& path, const std::string& description, const std::string& bytes) {
  std::string header = description;
  header.resize(64 * (header.size() / 64 + 1) + 54 - 1, ' ');
  header += '\n';
  std::ofstream out(path, std::ios::binary);
  out << std::string("\x93NUMPY\x01\x00", 8) << static_cast<char>(header.size() & 0xff)
      << static_cast<char>(header.size() >> 8) << header << bytes;
}

template <typename T>
std::string Bytes(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

// Ten samples of two features, alternately of class 0 and 2, the last one for validation.
v1::JobSpec NumpySpec(const TemporaryFolder& folder, const std::vector<std::int64_t>& labels) {
  const std::string inputs = folder.path() + "/x.npy";
  const std::string targets = folder.path() + "/y.npy";
  WriteNpy(inputs, "{'descr': '<f4', 'fortran_order': False, 'shape': (10, 2), }",
           Bytes(std::vector<float>(20, 0.5f)));
  WriteNpy(targets, "{'descr': '<i8', 'fortran_order': False, 'shape': (10,), }", Bytes(labels));
  v1::JobSpec spec;
  spec.mutable_data()->mutable_numpy()->set_inputs(inputs);
  spec.mutable_data()->mutable_numpy()->set_targets(targets);
  return spec;
}

// What a cluster file says by these keys.
SimulatedWork Work(const std::string& loss, const std::string& model = "{}") {
  const ClusterFile file = ParseClusterFile(
      "{hosts: [{name: a, devices: [{sample_time: 1ms}]}], model: " + model + "}", loss, "");
  EXPECT_THAT(file.errors, ::testing::IsEmpty());
  return file.work;
}

// The gradient of one batch.
std::vector<float> GradientOf(simulator::Learner& learner) {
  std::vector<float> parameters(cuda::FlatLength(learner.segments()));
  std::vector<float> gradients(parameters.size());
  learner.Initialise(1, parameters);
  engine::Batch batch;
  batch.indices = {0, 1, 2};
  learner.ForwardBackward(batch, parameters, gradients);
  return gradients;
}

TEST(LearnerSourceTest, TheSeedChangesTheNoiseOfAQuadratic) {
  const auto source =
      LearnerSource::Open(Work("noisy_quadratic", "{train_samples: 123}"), v1::JobSpec());
  ASSERT_TRUE(source.ok()) << source.status();

  EXPECT_EQ(source->Make(1)->train_samples(), 123u);
  EXPECT_EQ(GradientOf(*source->Make(1)), GradientOf(*source->Make(1)));
  EXPECT_NE(GradientOf(*source->Make(1)), GradientOf(*source->Make(2)));
}

TEST(LearnerSourceTest, APerceptronLearnsSyntheticDataWithoutTheJobsFiles) {
  const std::string synthetic = "{samples: 50, features: 3, classes: 4, validation_samples: 10}";
  const auto source =
      LearnerSource::Open(Work("{perceptron: {synthetic: " + synthetic + "}}"), v1::JobSpec());
  ASSERT_TRUE(source.ok()) << source.status();

  const auto learner = source->Make(1);

  std::vector<float> parameters(cuda::FlatLength(learner->segments()));
  EXPECT_EQ(learner->train_samples(), 50u);
  EXPECT_TRUE(learner->Validate(parameters).has_value());
}

TEST(LearnerSourceTest, APerceptronLearnsTheJobsData) {
  const TemporaryFolder folder;
  const auto source = LearnerSource::Open(Work("{perceptron: {hidden: []}}"),
                                          NumpySpec(folder, {0, 2, 0, 2, 0, 2, 0, 2, 0, 2}));
  ASSERT_TRUE(source.ok()) << source.status();

  const auto learner = source->Make(1);

  std::vector<float> parameters(cuda::FlatLength(learner->segments()));
  EXPECT_EQ(learner->train_samples(), 9u);
  EXPECT_TRUE(learner->Validate(parameters).has_value());
  EXPECT_EQ(learner->segments()[0].length, 3u);  // a bias a class
}

TEST(LearnerSourceTest, DataWithoutClassesAreRefused) {
  const TemporaryFolder folder;
  v1::JobSpec text;
  const std::string path = folder.path() + "/text.txt";
  std::ofstream(path) << std::string(1000, 'x');
  text.mutable_data()->set_text(path);

  EXPECT_THAT(std::string(LearnerSource::Open(Work("perceptron"), text).status().message()),
              StartsWith("data: the loss model perceptron learns real inputs with one class"));
  EXPECT_THAT(std::string(LearnerSource::Open(Work("perceptron"),
                                              NumpySpec(folder, {0, -1, 0, 0, 0, 0, 0, 0, 0, 0}))
                              .status()
                              .message()),
              HasSubstr("found classes -1 to 0"));
}

TEST(LearnerSourceTest, ACurveIsReplayed) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/curve.csv";
  std::ofstream(path) << "samples,loss\n1,3\n2,2\n3,1\n";

  const std::string curve = "{curve: {file: " + path;
  const auto source = LearnerSource::Open(Work(curve + "}}", "{train_samples: 9}"), v1::JobSpec());
  ASSERT_TRUE(source.ok()) << source.status();

  EXPECT_EQ(source->Make(1)->train_samples(), 9u);
  EXPECT_THAT(
      std::string(LearnerSource::Open(Work(curve + "x}}"), v1::JobSpec()).status().message()),
      StartsWith(path + "x: cannot read"));
}

}  // namespace
}  // namespace tactus::client
