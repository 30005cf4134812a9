// Priority, placement, files by their hash, what is frozen, and the size of it all.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "coordinator/spec/field_checks.h"
#include "coordinator/spec/spec_validation.h"
#include "tests/coordinator/spec/rule.h"

namespace tactus::spec {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

class PlacementRuleTest : public testing::TestWithParam<Rule> {};

TEST_P(PlacementRuleTest, ABrokenRuleIsReportedAtItsField) { ExpectReportedAtItsField(GetParam()); }

void Select(v1::JobSpec& spec, const std::string& key, const std::string& value) {
  (*spec.mutable_workers()->mutable_selector())[key] = value;
}

const std::string kHash(64, 'a');

const Rule kRules[] = {
    {"PriorityTooHigh", [](auto& s) { s.set_priority(1001); }, "priority", "found 1001"},
    {"TooManyRetries", [](auto& s) { s.set_retries(101); }, "retries", "0 to 100"},
    {"HoldTooShort", [](auto& s) { s.mutable_hold()->set_seconds(9); }, "hold", "10s to 30d"},
    {"PriorityTooLow", [](auto& s) { s.set_priority(-1001); }, "priority", "-1000 to 1000"},
    {"SelectorEmptyKey", [](auto& s) { Select(s, "", "a"); }, "workers.selector", "1 to 63"},
    {"SelectorLongKey", [](auto& s) { Select(s, std::string(64, 'k'), "a"); }, "workers.selector",
     "1 to 63"},
    {"SelectorControl", [](auto& s) { Select(s, "zone", "a\x01"); }, "workers.selector", "\\x01"},
    {"SelectorDashAtTheEnd", [](auto& s) { Select(s, "zone-", "a"); }, "workers.selector", "zone-"},
    {"SelectorSlashInValue", [](auto& s) { Select(s, "zone", "a/b"); }, "workers.selector", "a/b"},
    {"SelectorTooMany",
     [](auto& s) {
       for (int i = 0; i < 17; ++i) Select(s, "k" + std::to_string(i), "v");
     },
     "workers.selector", "found 17, allowed are 16"},
    {"TolerationEmpty", [](auto& s) { s.mutable_workers()->add_tolerations(""); },
     "workers.tolerations", "key or key=value"},
    {"TolerationNoKey", [](auto& s) { s.mutable_workers()->add_tolerations("=v"); },
     "workers.tolerations", "=v"},
    {"TolerationTwoValues", [](auto& s) { s.mutable_workers()->add_tolerations("a=b=c"); },
     "workers.tolerations", "a=b=c"},
    {"TolerationsTooMany",
     [](auto& s) {
       for (int i = 0; i < 17; ++i) s.mutable_workers()->add_tolerations("k");
     },
     "workers.tolerations", "found 17, allowed are 16"},
    {"FrozenUnknown", [](auto& s) { s.mutable_adapt()->add_frozen("synchronisation"); },
     "adapt.frozen[0]", "did you mean synchronization?"},
    {"FrozenTwice",
     [](auto& s) {
       s.mutable_adapt()->add_frozen("batch");
       s.mutable_adapt()->add_frozen("batch");
     },
     "adapt.frozen[1]", "each axis once"},
    {"FrozenEndless",
     [](auto& s) {
       for (int i = 0; i < 1000; ++i) s.mutable_adapt()->add_frozen("batch");
     },
     "adapt.frozen[1]", "each axis once"},
    {"HashTooShort", [](auto& s) { s.mutable_model()->set_torchscript("sha256:abc"); },
     "model.torchscript", "64 hexadecimal digits"},
    {"HashUpperCase",
     [](auto& s) { s.mutable_model()->set_torchscript("sha256:" + std::string(64, 'A')); },
     "model.torchscript", "in lower case"},
    {"LossHashWrong", [](auto& s) { s.mutable_model()->set_loss("sha256:" + kHash + "0"); },
     "model.loss", "64 hexadecimal digits"},
    {"PathWithAnEscape", [](auto& s) { s.mutable_data()->set_text("/a\x1b[0m"); }, "data.text",
     "\\x1b"},
    {"NameWithANewline", [](auto& s) { s.set_name("a\nb"); }, "name", "a\\x0ab"},
    {"TimeNegativeNanos", [](auto& s) { s.mutable_stop()->mutable_time()->set_nanos(-1); },
     "stop.time", "above 0"},
    {"TooLarge", [](auto& s) { s.mutable_data()->set_text(std::string(1 << 20, 'a')); }, "spec",
     "allowed are 262144"},
};
INSTANTIATE_TEST_SUITE_P(Placement, PlacementRuleTest, testing::ValuesIn(kRules),
                         [](const auto& rule) { return rule.param.name; });

TEST(PlacementChecksTest, SettingsCarryPriorityPlacementAndWhatIsFrozen) {
  v1::JobSpec spec = TextSpec();
  spec.set_priority(-1000);
  spec.set_retries(0);
  Select(spec, "example.org/zone", "a_1.b-2");
  Select(spec, "bare", "");
  spec.mutable_workers()->add_tolerations("gpu");
  spec.mutable_workers()->add_tolerations("spot=true");
  spec.mutable_adapt()->add_frozen("learning_rate");
  spec.mutable_adapt()->add_frozen("batch");

  const absl::StatusOr<job::JobSettings> settings = ParseSpec(spec);

  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->priority, -1000);
  EXPECT_EQ(settings->retries, 0u);
  EXPECT_EQ(ParseSpec(TextSpec())->retries, job::JobSettings{}.retries) << "one default";
  EXPECT_THAT(settings->selector,
              ElementsAre(Pair("bare", ""), Pair("example.org/zone", "a_1.b-2")));
  EXPECT_THAT(settings->tolerations, ElementsAre("gpu", "spot=true"));
  EXPECT_THAT(settings->adapt.frozen,
              ElementsAre(policies::Axis::kBatch, policies::Axis::kLearningRate));
}

TEST(PlacementChecksTest, WhatWorkersSendIsEncryptedWhereTheJobSaysSo) {
  v1::JobSpec spec = TextSpec();
  EXPECT_FALSE(ParseSpec(spec)->encrypted);
  spec.mutable_network()->set_encryption(v1::ENCRYPTION_NONE);
  EXPECT_FALSE(ParseSpec(spec)->encrypted);
  spec.mutable_network()->set_encryption(v1::ENCRYPTION_TLS);
  EXPECT_TRUE(ParseSpec(spec)->encrypted);
}

TEST(PlacementChecksTest, FilesMayBeNamedByTheirHash) {
  v1::JobSpec spec = TextSpec();
  spec.mutable_model()->set_torchscript("sha256:" + kHash);
  spec.mutable_model()->set_loss("sha256:" + kHash);

  EXPECT_TRUE(SpecViolations(spec).empty());
  EXPECT_TRUE(NamesBlob("sha256:" + kHash));
  EXPECT_FALSE(NamesBlob(kHash));
  EXPECT_FALSE(NamesBlob("model.pt"));
}

TEST(PlacementChecksTest, ATextIsShownWithoutWhatATerminalWouldObey) {
  EXPECT_EQ(Shown("plain"), "\"plain\"");
  EXPECT_EQ(Shown("\x1b[31m\x7f"), "\"\\x1b[31m\\x7f\"");
  EXPECT_EQ(Shown(std::string(100, 'a')), "\"" + std::string(80, 'a') + "...\" (100 bytes)");
}

}  // namespace
}  // namespace tactus::spec
