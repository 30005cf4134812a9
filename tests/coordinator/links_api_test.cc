// ProbeLink over real gRPC: what is refused, and that agents are asked.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "runtime/status.h"
#include "tests/coordinator/fake_agent.h"
#include "tests/coordinator/server_fixture.h"

namespace tactus::service {
namespace {

using ::testing::HasSubstr;

class LinksApiTest : public ServerFixture {
 protected:
  absl::StatusOr<v1::ProbeLinkResponse> Probe(const std::string& from, const std::string& to,
                                              bool while_training = false) {
    v1::ProbeLinkRequest request;
    request.set_from(from);
    request.set_to(to);
    request.set_while_training(while_training);
    return Call(nodes_, &v1::Nodes::Stub::ProbeLink, request);
  }

  // The order for this agent, answered by `answer`.
  template <typename Answer>
  static void AnswerOne(FakeAgent& agent, const Answer& answer) {
    agent::v1::ToAgent message = agent.Read();
    while (!message.has_probe_link() && message.message_case() != 0) message = agent.Read();
    agent::v1::LinkProbed said;
    said.set_probe_id(message.probe_link().probe_id());
    answer(message.probe_link(), said);
    agent.SayProbed(said);
  }
};

TEST_F(LinksApiTest, TwoAgentsAreAskedAndWhatTheyFoundIsTheAnswer) {
  FakeAgent a(channel_, "a");
  FakeAgent b(channel_, "b");
  a.Connect();
  b.Connect();
  std::thread agents([&] {
    AnswerOne(b, [](const agent::v1::ProbeLink& order, agent::v1::LinkProbed& said) {
      EXPECT_EQ(order.endpoint(), "");
      said.set_endpoint("there");
    });
    AnswerOne(a, [](const agent::v1::ProbeLink& order, agent::v1::LinkProbed& said) {
      EXPECT_EQ(order.endpoint(), "there");
      said.set_bytes_per_second(5e8);
    });
  });

  const auto found = Probe("nodes/a", "b");

  agents.join();
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->bytes_per_second(), 5e8);
}

TEST_F(LinksApiTest, WhatCannotBeMeasuredIsRefused) {
  FakeAgent a(channel_, "a");
  a.Connect();
  EXPECT_TRUE(absl::IsInvalidArgument(Probe("a", "a").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Probe("a", "").status()));
  EXPECT_TRUE(absl::IsNotFound(Probe("a", "b").status()));
  FakeAgent b(channel_, "b");
  b.Connect();
  ASSERT_TRUE(Create(SmallSpec()).ok());  // of two workers
  absl::Status busy;
  EXPECT_TRUE(Eventually([&] {
    busy = Probe("a", "b").status();
    return absl::IsFailedPrecondition(busy);
  }));
  EXPECT_EQ(runtime::ReasonOf(busy).reason, "NODE_HAS_WORKERS");
  EXPECT_THAT(std::string(busy.message()), HasSubstr("job small-1 has workers there"));
}

TEST_F(LinksApiTest, ACoordinatorThatStopsLeavesNobodyWaiting) {
  FakeAgent a(channel_, "a");
  FakeAgent b(channel_, "b");
  a.Connect();
  b.Connect();
  absl::Status ended;
  std::thread asks([&] { ended = Probe("a", "b").status(); });
  EXPECT_TRUE(b.Read().has_probe_link());

  server_->Shutdown();

  asks.join();
  EXPECT_TRUE(absl::IsUnavailable(ended)) << ended;
}

}  // namespace
}  // namespace tactus::service
