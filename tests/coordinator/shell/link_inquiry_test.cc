#include "coordinator/shell/link_inquiry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace tactus::service {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LinkInquiryTest : public testing::Test {
 protected:
  void TearDown() override {
    control_.RunAndWait([this] { inquiry_.reset(); });
    control_.Stop();
  }

  void Ask(const std::string& from, const std::string& to) {
    control_.RunAndWait([&] {
      inquiry_->Ask(from, to, [this](const absl::StatusOr<v1::ProbeLinkResponse>& found) {
        answers_.push_back(found);
      });
    });
  }
  void AskInTurn(const std::string& from, const std::string& to) {
    control_.RunAndWait([&] {
      inquiry_->AskInTurn(from, to, [this](const absl::StatusOr<v1::ProbeLinkResponse>& found) {
        answers_.push_back(found);
      });
    });
  }
  // To an order.
  void HearFailure(std::size_t order) {
    agent::v1::LinkProbed said;
    said.set_probe_id(told_[order].second.probe_id());
    said.set_error("it fails");
    Hear(told_[order].first, said);
  }
  std::vector<std::string> Told() const {
    std::vector<std::string> nodes;
    for (const auto& [node, order] : told_) nodes.push_back(node);
    return nodes;
  }
  void Hear(const std::string& node, const agent::v1::LinkProbed& said) {
    control_.RunAndWait([&] { inquiry_->Hear(node, said); });
  }
  // To the last order.
  agent::v1::LinkProbed Answer() const {
    agent::v1::LinkProbed said;
    said.set_probe_id(told_.back().second.probe_id());
    return said;
  }

  runtime::ControlThread control_;
  std::vector<std::pair<std::string, agent::v1::ProbeLink>> told_;
  std::vector<absl::StatusOr<v1::ProbeLinkResponse>> answers_;
  std::unique_ptr<LinkInquiry> inquiry_ = std::make_unique<LinkInquiry>(
      control_, [this](const std::string& node, const agent::v1::ToAgent& message) {
        told_.emplace_back(node, message.probe_link());
      });
};

TEST_F(LinkInquiryTest, OneListensThenTheOtherDialsAndWhatItFoundIsTheAnswer) {
  Ask("a", "b");
  ASSERT_EQ(told_.size(), 1u);
  EXPECT_EQ(told_[0].first, "b");
  EXPECT_EQ(told_[0].second.endpoint(), "");
  EXPECT_EQ(told_[0].second.secret().size(), 32u);
  agent::v1::LinkProbed listens = Answer();
  listens.set_endpoint("there");
  Hear("b", listens);
  ASSERT_EQ(told_.size(), 2u);
  EXPECT_EQ(told_[1].first, "a");
  EXPECT_EQ(told_[1].second.endpoint(), "there");
  EXPECT_EQ(told_[1].second.secret(), told_[0].second.secret());
  agent::v1::LinkProbed found = Answer();
  found.set_bytes_per_second(1e9);
  found.mutable_round_trip()->set_nanos(200'000);
  Hear("a", found);
  ASSERT_EQ(answers_.size(), 1u);
  EXPECT_EQ(answers_[0]->bytes_per_second(), 1e9);
  EXPECT_EQ(answers_[0]->round_trip().nanos(), 200'000);

  Ask("b", "a");
  EXPECT_NE(told_[2].second.probe_id(), told_[0].second.probe_id());
  EXPECT_NE(told_[2].second.secret(), told_[0].second.secret());
}

TEST_F(LinkInquiryTest, WhoWasNotAskedIsNotHeard) {
  Ask("a", "b");
  agent::v1::LinkProbed said = Answer();
  said.set_endpoint("elsewhere");
  Hear("c", said);
  Hear("a", said);
  said.set_probe_id(said.probe_id() + 1);
  Hear("b", said);
  EXPECT_EQ(told_.size(), 1u);
  EXPECT_TRUE(answers_.empty());
}

TEST_F(LinkInquiryTest, ThatNothingPassesIsAnAnswer) {
  Ask("a", "b");
  agent::v1::LinkProbed said = Answer();
  said.set_error("address 10.0.0.9: is none of this host's");
  Hear("b", said);
  EXPECT_EQ(answers_[0]->error(), "nodes/b: address 10.0.0.9: is none of this host's");

  Ask("a", "b");
  Hear("b", Answer());  // neither an endpoint nor an error
  EXPECT_EQ(answers_[1]->error(), "nodes/b: said no endpoint");

  Ask("a", "b");
  agent::v1::LinkProbed listens = Answer();
  listens.set_endpoint("there");
  Hear("b", listens);
  agent::v1::LinkProbed found = Answer();
  found.set_bytes_per_second(std::numeric_limits<double>::quiet_NaN());
  Hear("a", found);
  EXPECT_EQ(answers_[2]->error(), "nodes/a: said no speed");
}

TEST_F(LinkInquiryTest, OneAtATimeAndNobodyIsLeftWaiting) {
  Ask("a", "b");
  Ask("c", "d");
  ASSERT_EQ(answers_.size(), 1u);
  EXPECT_TRUE(absl::IsUnavailable(answers_[0].status()));
  EXPECT_THAT(std::string(answers_[0].status().message()), HasSubstr("nodes/a to nodes/b"));

  control_.RunAndWait([this] { inquiry_->GiveUp(absl::UnavailableError("it ends")); });

  ASSERT_EQ(answers_.size(), 2u);
  EXPECT_EQ(answers_[1].status().message(), "it ends");
}

// A ring of four in two waves.
TEST_F(LinkInquiryTest, ThoseOfAGroupGoSideBySideWhereTheyShareNoNode) {
  AskInTurn("b", "a");
  AskInTurn("c", "b");
  AskInTurn("d", "c");
  AskInTurn("a", "d");
  EXPECT_THAT(Told(), ElementsAre("a", "c"));

  HearFailure(1);
  EXPECT_THAT(Told(), ElementsAre("a", "c"));  // each that waits shares one with the first
  HearFailure(0);
  EXPECT_THAT(Told(), ElementsAre("a", "c", "b", "d"));
  HearFailure(3);
  HearFailure(2);

  ASSERT_EQ(answers_.size(), 4u);
  EXPECT_EQ(answers_[0]->error(), "nodes/c: it fails");
  EXPECT_EQ(answers_[3]->error(), "nodes/b: it fails");
}

TEST_F(LinkInquiryTest, ThoseOfAGroupWaitForAUsers) {
  Ask("a", "b");
  AskInTurn("d", "c");
  EXPECT_THAT(Told(), ElementsAre("b"));

  HearFailure(0);

  EXPECT_THAT(Told(), ElementsAre("b", "c"));
}

TEST_F(LinkInquiryTest, WhoWaitsForATurnIsAnsweredAtTheEnd) {
  AskInTurn("b", "a");
  AskInTurn("c", "b");

  control_.RunAndWait([this] { inquiry_->GiveUp(absl::UnavailableError("it ends")); });

  ASSERT_EQ(answers_.size(), 2u);
  EXPECT_EQ(answers_[0].status().message(), "it ends");
  EXPECT_EQ(answers_[1].status().message(), "it ends");
  EXPECT_THAT(Told(), ElementsAre("a"));
}

}  // namespace
}  // namespace tactus::service
