#include "client/text/names.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/rng.h"
#include "tactus/v1/spec.pb.h"

namespace tactus::client {
namespace {

// The recursive definition, without a table.
std::size_t EditDistanceByDefinition(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty()) return a.size() + b.size();
  const std::string a1 = a.substr(1);
  const std::string b1 = b.substr(1);
  std::size_t best = EditDistanceByDefinition(a1, b1) + (a[0] == b[0] ? 0 : 1);
  best = std::min(best, EditDistanceByDefinition(a1, b) + 1);
  best = std::min(best, EditDistanceByDefinition(a, b1) + 1);
  if (a.size() > 1 && b.size() > 1 && a[0] == b[1] && a[1] == b[0]) {
    best = std::min(best, EditDistanceByDefinition(a.substr(2), b.substr(2)) + 1);
  }
  return best;
}

TEST(NamesTest, EditDistanceCountsSmallSlips) {
  EXPECT_EQ(EditDistance("policy", "policy"), 0u);
  EXPECT_EQ(EditDistance("polcy", "policy"), 1u);
  EXPECT_EQ(EditDistance("poilcy", "policy"), 1u);
  EXPECT_EQ(EditDistance("", "abc"), 3u);
}

TEST(NamesOracleTest, EditDistanceAgreesWithItsDefinition) {
  Rng rng(1);
  for (int i = 0; i < 1000; ++i) {
    std::string a;
    std::string b;
    for (std::uint64_t n = rng.Below(6); n > 0; --n) a += static_cast<char>('a' + rng.Below(3));
    for (std::uint64_t n = rng.Below(6); n > 0; --n) b += static_cast<char>('a' + rng.Below(3));

    EXPECT_EQ(EditDistance(a, b), EditDistanceByDefinition(a, b)) << a << " " << b;
  }
}

TEST(NamesTest, NearestNameForgivesCaseAndSlipsButNotOtherWords) {
  const std::vector<std::string> names = {"policy", "per_worker", "min", "max", "micro_batch"};

  EXPECT_EQ(NearestName("polcy", names), "policy");
  EXPECT_EQ(NearestName("Policy", names), "policy");
  EXPECT_EQ(NearestName("per-worker", names), "per_worker");
  EXPECT_EQ(NearestName("microbatch", names), "micro_batch");
  EXPECT_EQ(NearestName("mni", names), "min");
  EXPECT_EQ(NearestName("momentum", names), std::nullopt);
  EXPECT_EQ(NearestName(std::string(1'000'000, 'a'), names), std::nullopt);
}

TEST(NamesTest, EnumValuesLoseTheirPrefix) {
  const auto& type = *v1::SynchronizationPolicy_descriptor();

  EXPECT_EQ(EnumValueNames(type),
            (std::vector<std::string>{"every_step", "periodic", "adacomm", "delayed", "auto",
                                      "post_local", "lsgd", "decentlam"}));
  EXPECT_EQ(FindEnumValue(type, "every_step")->number(), v1::SYNCHRONIZATION_POLICY_EVERY_STEP);
  EXPECT_EQ(FindEnumValue(type, "unspecified"), nullptr);
  EXPECT_EQ(FindEnumValue(type, "EVERY_STEP"), nullptr);
}

TEST(NamesTest, ListsReadAsSentences) {
  EXPECT_EQ(JoinNames({"a", "b", "c"}), "a, b, c");
  EXPECT_EQ(QuoteNames({"a", "b"}), "'a' and 'b'");
  EXPECT_EQ(QuoteNames({"a", "b", "c"}), "'a', 'b' and 'c'");
  EXPECT_EQ(FieldNames(*v1::FilePair::descriptor()),
            (std::vector<std::string>{"inputs", "targets", "more_inputs", "input_types"}));
}

}  // namespace
}  // namespace tactus::client
