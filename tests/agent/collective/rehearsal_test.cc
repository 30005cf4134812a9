#include "agent/collective/rehearsal.h"

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "agent/collective/in_process.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/agent/collective/groups.h"

namespace tactus::collective {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

class RehearsalTest : public ::testing::TestWithParam<GroupShape> {};

TEST_P(RehearsalTest, LeavesZerosAndAGroupThatWorks) {
  const std::vector<std::unique_ptr<Transport>> group = MakeGroup(GetParam());
  OnEveryRank(GetParam().size, [&](int rank) {
    Transport& transport = *group[static_cast<std::size_t>(rank)];
    std::vector<float> buffer(1001);

    EXPECT_EQ(Rehearse(transport, buffer), "");

    EXPECT_THAT(buffer, Each(0.0f));
    buffer.assign(3, 1.0f);
    EXPECT_EQ(transport.StartAllReduceSum(buffer)->Wait().progress, Progress::kDone);
    EXPECT_THAT(buffer, Each(static_cast<float>(GetParam().size)));
  });
}

INSTANTIATE_TEST_SUITE_P(Groups, RehearsalTest, ::testing::ValuesIn(ShapesFrom(1, 4)),
                         [](const auto& shape) { return NameOf(shape.param); });

// Counts what a member starts.
class CountingTransport final : public Transport {
 public:
  CountingTransport(std::unique_ptr<Transport> inner, std::map<Operation::Kind, int>& counts)
      : inner_(std::move(inner)), counts_(counts) {}
  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  std::unique_ptr<Collective> Start(const Operation& operation) override {
    ++counts_[operation.kind];
    return inner_->Start(operation);
  }
  void Abort(const std::string& reason) override { inner_->Abort(reason); }

 private:
  const std::unique_ptr<Transport> inner_;
  std::map<Operation::Kind, int>& counts_;
};

TEST(RehearseTest, TakesEveryKindThroughThatMovesBuffers) {
  std::vector<std::map<Operation::Kind, int>> counts(2);
  std::vector<std::unique_ptr<CountingTransport>> members;
  for (std::unique_ptr<Transport>& transport : MakeGroup({.kind = Kind::kTcp, .size = 2})) {
    members.push_back(
        std::make_unique<CountingTransport>(std::move(transport), counts[members.size()]));
  }
  OnEveryRank(2, [&](int rank) {
    std::vector<float> buffer(64);
    EXPECT_EQ(Rehearse(*members[static_cast<std::size_t>(rank)], buffer), "");
  });

  for (const auto& count : counts) {
    EXPECT_EQ(count, (std::map<Operation::Kind, int>{{Operation::Kind::kAllReduceSum, 2},
                                                     {Operation::Kind::kBroadcast, 1},
                                                     {Operation::Kind::kExchange, 1}}));
  }
}

TEST(RehearseTest, SaysWhyItFailed) {
  const std::vector<std::unique_ptr<Transport>> group =
      MakeInProcessGroup(2, [] { return kTestNow; });
  group[1]->Abort("died");
  std::vector<float> buffer(64);

  EXPECT_THAT(Rehearse(*group[0], buffer), HasSubstr("died"));
}

}  // namespace
}  // namespace tactus::collective
