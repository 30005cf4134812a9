#include "coordinator/access/method_rules.h"

#include <gtest/gtest.h>

namespace tactus::access {
namespace {

// A new rpc that says nothing fails here.
TEST(MethodRulesTest, EveryMethodSaysWhoMayCallIt) {
  EXPECT_GE(MethodRules().size(), 40u);
  for (const auto& [path, rule] : MethodRules()) {
    EXPECT_TRUE(rule.users() != v1::ROLE_UNSPECIFIED || rule.nodes() || rule.strangers()) << path;
    const bool alone = rule.users() == v1::ROLE_UNSPECIFIED && !rule.nodes();
    EXPECT_TRUE(!rule.strangers() || alone) << path << ": strangers' calls are theirs alone";
    EXPECT_NE(rule.users(), v1::ROLE_NODE) << path << ": users have no such role";
    EXPECT_TRUE(!rule.own_job() || rule.users() == v1::ROLE_SUBMITTER) << path;
  }
}

// What changes something says so, and asks for more than a viewer; what reads changes nothing.
TEST(MethodRulesTest, MethodsThatChangeSomethingAreNamedThatWay) {
  for (const auto& [path, rule] : MethodRules()) {
    if (!path.starts_with("/tactus.")) continue;
    const std::string name = path.substr(path.rfind('/') + 1);
    const bool reads = name.starts_with("Get") || name.starts_with("List") ||
                       name.starts_with("Watch") || name.starts_with("Stream") ||
                       name.starts_with("Download") || name.starts_with("Check");
    EXPECT_EQ(rule.changes(), !reads) << path;
    // But for the own certificate, which who has one renews.
    const bool own = name == "Renew";
    EXPECT_FALSE(rule.changes() && rule.users() == v1::ROLE_VIEWER && !own) << path;
  }
}

TEST(MethodRulesTest, AMethodIsFoundByItsPathAndItsShortName) {
  ASSERT_NE(RuleOf("/tactus.v1.Jobs/CancelJob"), nullptr);
  EXPECT_TRUE(RuleOf("/tactus.v1.Jobs/CancelJob")->own_job());
  EXPECT_EQ(RuleOf("/tactus.v1.Jobs/Nothing"), nullptr);
  EXPECT_EQ(RuleOf(""), nullptr);
  EXPECT_EQ(ShortMethod("/tactus.agent.v1.AgentSession/Session"), "AgentSession/Session");
  EXPECT_EQ(ShortMethod("nonsense"), "nonsense");
  EXPECT_EQ(PathOf("Jobs/CancelJob"), "/tactus.v1.Jobs/CancelJob");
}

}  // namespace
}  // namespace tactus::access
