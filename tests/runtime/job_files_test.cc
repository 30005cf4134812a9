#include "runtime/job_files.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tactus::runtime {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

v1::JobSpec Spec(const std::string& text) {
  v1::JobSpec spec;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &spec));
  return spec;
}

std::vector<std::string> Named(const v1::JobSpec& spec) {
  std::vector<std::string> named;
  for (const auto& [field, file] : FilesOf(spec)) named.push_back(field + "=" + file);
  return named;
}

TEST(JobFilesTest, AreThoseOfModelAndData) {
  const v1::JobSpec spec = Spec(R"pb(
    name: "a/b.c"
    model { torchscript: "m.pt" loss: "sha256:00" weights: "w" output: "x.y" }
    data {
      numpy {
        inputs: "a"
        targets: "t"
        more_inputs: [ "b", "c" ]
        input_types: [ "bool" ]
      }
    }
  )pb");

  EXPECT_THAT(Named(spec),
              ElementsAre("model.torchscript=m.pt", "model.loss=sha256:00", "model.weights=w",
                          "data.numpy.inputs=a", "data.numpy.targets=t",
                          "data.numpy.more_inputs[0]=b", "data.numpy.more_inputs[1]=c"));
}

TEST(JobFilesTest, ALossMayBeAWord) {
  EXPECT_THAT(Named(Spec(R"pb(model { builtin: "cifar-cnn" loss: "mse" })pb")), IsEmpty());
  EXPECT_THAT(Named(Spec(R"pb(model { loss: "own.pt" })pb")), ElementsAre("model.loss=own.pt"));
  EXPECT_THAT(Named(Spec(R"pb(model { loss: "./own" })pb")), ElementsAre("model.loss=./own"));
}

TEST(JobFilesTest, OneIsReplacedByItsField) {
  v1::JobSpec spec = Spec(R"pb(
    data {
      numpy {
        inputs: "a"
        targets: "a"
        more_inputs: [ "a", "a" ]
      }
    }
  )pb");

  SetFile(spec, "data.numpy.more_inputs[1]", "new");
  SetFile(spec, "data.numpy.targets", "t");

  EXPECT_THAT(Named(spec),
              ElementsAre("data.numpy.inputs=a", "data.numpy.targets=t",
                          "data.numpy.more_inputs[0]=a", "data.numpy.more_inputs[1]=new"));
}

}  // namespace
}  // namespace tactus::runtime
