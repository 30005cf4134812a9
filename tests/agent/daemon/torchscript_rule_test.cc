#include "agent/daemon/torchscript_rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/temporary_folder.h"

namespace tactus::agent {
namespace {

using testing::HasSubstr;

const std::string kHash(64, 'a');

tactus::v1::JobSpec Spec(const std::string& model, const std::string& loss = "cross_entropy") {
  tactus::v1::JobSpec spec;
  if (!model.empty()) spec.mutable_model()->set_torchscript(model);
  spec.mutable_model()->set_loss(loss);
  return spec;
}

TEST(TorchscriptRuleTest, AnyTakesAllAndNoneTakesBuiltInModelsAlone) {
  const TorchscriptRule any = *ParseTorchscriptRule("any");
  const TorchscriptRule none = *ParseTorchscriptRule("none");

  EXPECT_TRUE(CheckTorchscript(Spec("/here/model.pt", "loss.pt"), any).ok());
  EXPECT_TRUE(CheckTorchscript(Spec(""), none).ok());
  EXPECT_EQ(CheckTorchscript(Spec("sha256:" + kHash), none).message(),
            "model.torchscript: this node takes no TorchScript");
  EXPECT_EQ(CheckTorchscript(Spec("", "loss.pt"), none).message(),
            "model.loss: this node takes no TorchScript");
}

TEST(TorchscriptRuleTest, ThoseOfAFileAreTakenByTheirHashes) {
  TemporaryFolder folder;
  std::ofstream(folder.File("hashes")) << "# ours\n\n" << kHash << "  model.pt\n";
  const absl::StatusOr<TorchscriptRule> rule =
      ParseTorchscriptRule("hashes:" + folder.File("hashes"));
  ASSERT_TRUE(rule.ok()) << rule.status();

  EXPECT_TRUE(CheckTorchscript(Spec("sha256:" + kHash), *rule).ok());
  EXPECT_THAT(
      std::string(CheckTorchscript(Spec("sha256:" + std::string(64, 'b')), *rule).message()),
      HasSubstr("is not among those that this node takes"));
  EXPECT_THAT(std::string(CheckTorchscript(Spec("/here/model.pt"), *rule).message()),
              HasSubstr("uploaded alone"));
  EXPECT_FALSE(CheckTorchscript(Spec("sha256:" + kHash, "./loss.pt"), *rule).ok());
}

TEST(TorchscriptRuleTest, WhatIsNoRuleIsSaidWithItsPlace) {
  TemporaryFolder folder;
  std::ofstream(folder.File("hashes")) << kHash << "\n" << kHash << "b\n";

  EXPECT_THAT(std::string(ParseTorchscriptRule("some").status().message()), HasSubstr("'some'"));
  EXPECT_THAT(
      std::string(ParseTorchscriptRule("hashes:" + folder.File("hashes")).status().message()),
      HasSubstr("line 2"));
  EXPECT_FALSE(ParseTorchscriptRule("hashes:/nowhere/hashes").ok());
}

}  // namespace
}  // namespace tactus::agent
