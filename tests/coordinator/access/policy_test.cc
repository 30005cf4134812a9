#include "coordinator/access/policy.h"

#include <gtest/gtest.h>

#include "coordinator/access/object_rules.h"

namespace tactus::access {
namespace {

identity::Name User(const std::string& name) {
  return {.domain = "tactus", .kind = identity::Kind::kUser, .name = name};
}
identity::Name Node(const std::string& name) {
  return {.domain = "tactus", .kind = identity::Kind::kNode, .name = name};
}
const identity::Name kCoordinator = {.domain = "tactus", .kind = identity::Kind::kCoordinator};

TEST(PolicyTest, WithoutAFileUsersSubmitAndAdminAdministers) {
  const Policy policy;
  EXPECT_EQ(policy.RoleOf(User("alice")), v1::ROLE_SUBMITTER);
  EXPECT_EQ(policy.RoleOf(User("admin")), v1::ROLE_ADMIN);
  EXPECT_EQ(policy.RoleOf(Node("admin")), v1::ROLE_NODE);
  EXPECT_EQ(policy.RoleOf(kCoordinator), v1::ROLE_UNSPECIFIED);
}

TEST(PolicyTest, AFileSaysItAllAndTheStrongestRoleCounts) {
  const auto policy = Policy::Parse(
      R"({"viewers": ["*"], "submitters": ["bob", "carol"], "admins": ["carol"], "nodes": ["a"]})");
  ASSERT_TRUE(policy.ok()) << policy.status();
  EXPECT_EQ(policy->RoleOf(User("dave")), v1::ROLE_VIEWER);
  EXPECT_EQ(policy->RoleOf(User("admin")), v1::ROLE_VIEWER);
  EXPECT_EQ(policy->RoleOf(User("bob")), v1::ROLE_SUBMITTER);
  EXPECT_EQ(policy->RoleOf(User("carol")), v1::ROLE_ADMIN);
  EXPECT_EQ(policy->RoleOf(User("a")), v1::ROLE_VIEWER);
  EXPECT_EQ(policy->RoleOf(Node("a")), v1::ROLE_NODE);
  EXPECT_EQ(policy->RoleOf(Node("bob")), v1::ROLE_UNSPECIFIED);
  EXPECT_EQ(policy->RoleOf(kCoordinator), v1::ROLE_UNSPECIFIED);
  EXPECT_EQ(Policy::Parse("{}")->RoleOf(User("alice")), v1::ROLE_UNSPECIFIED);
}

TEST(PolicyTest, AFileThatIsWrongIsRefusedWithWhatIsWrong) {
  EXPECT_FALSE(Policy::Parse("").ok());
  EXPECT_FALSE(Policy::Parse("[]").ok());
  EXPECT_NE(std::string(Policy::Parse(R"({"admin": ["a"]})").status().message()).find("admin"),
            std::string::npos);
  EXPECT_TRUE(std::string(Policy::Parse(R"({"admins": ["a b"]})").status().message())
                  .starts_with("admins: found \"a b\", allowed is"));
  EXPECT_TRUE(std::string(Policy::Parse(R"({"nodes": ["A"]})").status().message())
                  .starts_with("nodes: found \"A\""));
}

Principal Who(Principal::Kind kind, const std::string& name, v1::Role role) {
  return {.kind = kind, .name = name, .role = role};
}

TEST(ObjectRulesTest, EachDeedIsForWhomItIs) {
  const Principal local;
  const Principal alice = Who(Principal::Kind::kUser, "alice", v1::ROLE_SUBMITTER);
  const Principal demoted = Who(Principal::Kind::kUser, "alice", v1::ROLE_VIEWER);
  const Principal admin = Who(Principal::Kind::kUser, "root", v1::ROLE_ADMIN);
  const Principal node = Who(Principal::Kind::kNode, "a", v1::ROLE_NODE);
  const Principal page = Who(Principal::Kind::kPage, "", v1::ROLE_VIEWER);
  struct Case {
    Deed deed;
    std::vector<const Principal*> may;
  };
  const std::vector<const Principal*> all = {&local, &alice, &demoted, &admin, &node, &page};
  for (const Case& one : {
           Case{ChangeOfJob{"j", "user/alice"}, {&local, &alice, &admin}},
           Case{ChangeOfJob{"j", "user/bob"}, {&local, &admin}},
           Case{ChangeOfJob{"j", ""}, {&local, &admin}},
           Case{ChangeOfJob{"j", "node/a"}, {&local, &admin}},
           Case{SpeakingAs{"a"}, {&local, &node}},
           Case{SpeakingAs{"b"}, {&local}},
           Case{SpeakingAs{""}, {&local}},
           Case{SpeakingAs{"alice"}, {&local}},
           Case{FileOfJob{"j", "a"}, {&local, &node}},
           Case{FileOfJob{"j", "b"}, {&local}},
           Case{FileOfJob{"j", ""}, {&local}},
           Case{ReadingBlob{"f", true}, all},
           Case{ReadingBlob{"f", false}, {&local, &alice, &demoted, &admin, &page}},
       }) {
    for (const Principal* who : all) {
      const bool expected = std::ranges::find(one.may, who) != one.may.end();
      EXPECT_EQ(Allow(*who, one.deed).ok(), expected)
          << NameOf(*who) << " deed " << one.deed.index();
    }
  }
}

}  // namespace
}  // namespace tactus::access
