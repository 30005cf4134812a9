#include "agent/daemon/link_probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <span>
#include <thread>
#include <vector>

#include "agent/collective/tcp_socket.h"
#include "runtime/now.h"

namespace tactus::agent {
namespace {

using ::testing::HasSubstr;

const std::string kSecret(32, 's');

LinkBounds Small() {
  return {.bytes_max = std::uint64_t{8} << 20, .time_max = Seconds(0.5), .patience = Seconds(2)};
}

class LinkProbeTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(listener_.ok()) << listener_.status();
    serves_ = std::thread([this] { served_ = listener_->Serve(kSecret, bounds_, stop_); });
  }
  void TearDown() override {
    stop_ = true;
    if (serves_.joinable()) serves_.join();
  }

  LinkBounds bounds_ = Small();
  std::atomic<bool> stop_ = false;
  const absl::StatusOr<LinkListener> listener_ = LinkListener::Open("127.0.0.1");
  absl::Status served_;
  std::thread serves_;
};

TEST_F(LinkProbeTest, AWayIsMeasured) {
  const absl::StatusOr<LinkFigures> figures =
      MeasureLink(listener_->endpoint(), kSecret, bounds_, stop_);
  serves_.join();

  ASSERT_TRUE(figures.ok()) << figures.status();
  EXPECT_TRUE(served_.ok()) << served_;
  EXPECT_GT(figures->round_trip, Duration(0));
  EXPECT_LT(figures->round_trip, Seconds(0.5));
  EXPECT_GT(figures->bytes_per_second, 1e6);
  EXPECT_LT(figures->bytes_per_second, 1e12);
}

TEST_F(LinkProbeTest, ItTakesNoLongerThanItMay) {
  LinkBounds bounds = Small();
  bounds.bytes_max = std::uint64_t{1} << 40;
  bounds.time_max = Seconds(0.2);
  const Instant begun = runtime::Now();

  const auto figures = MeasureLink(listener_->endpoint(), kSecret, bounds, stop_);

  EXPECT_TRUE(figures.ok()) << figures.status();
  EXPECT_LT(runtime::Now() - begun, Seconds(2));
}

TEST_F(LinkProbeTest, AStrangerIsSentAwayAndTheOtherIsStillHeard) {
  const absl::Status stranger =
      MeasureLink(listener_->endpoint(), std::string(32, 'x'), bounds_, stop_).status();

  EXPECT_TRUE(absl::IsPermissionDenied(stranger)) << stranger;
  EXPECT_TRUE(MeasureLink(listener_->endpoint(), kSecret, bounds_, stop_).ok());
}

TEST_F(LinkProbeTest, WhoSaysNothingKeepsNobodyWaiting) {
  collective::Endpoint to;
  ASSERT_TRUE(collective::DecodeEndpoint(listener_->endpoint(), to));
  std::vector<Descriptor> silent;
  std::string why;
  for (int i = 0; i < 20; ++i) {
    silent.push_back(collective::ConnectTo(to, collective::DeadlineAfter(Seconds(2)), why));
    ASSERT_TRUE(silent.back().open()) << why;
  }

  const auto figures = MeasureLink(listener_->endpoint(), kSecret, bounds_, stop_);

  EXPECT_TRUE(figures.ok()) << figures.status();
}

// Any server: what is sent to it is that the dialler has the secret, and nothing more.
TEST(LinkProbesTest, NothingIsSentToOneThatDoesNotKnowTheSecret) {
  collective::Endpoint endpoint;
  std::string why;
  const Descriptor listener = collective::Listen("127.0.0.1", endpoint, why);
  ASSERT_TRUE(listener.open()) << why;
  const std::atomic<bool> stop = false;
  absl::Status measured;
  std::thread dials([&] {
    measured = MeasureLink(collective::EncodeEndpoint(endpoint), kSecret, Small(), stop).status();
  });
  Descriptor connection;
  while (!connection.open()) connection = collective::Accept(listener, why);
  // What it says is sent back, with more than any answer has, until it says no more.
  std::size_t came = 0;
  std::vector<std::byte> some(1 << 16);
  const std::vector<std::byte> echo(4096);
  while (true) {
    const collective::Moved moved = collective::ReadSome(connection, some, {});
    if (moved.flow == collective::Flow::kClosed || moved.flow == collective::Flow::kBroken) break;
    if (moved.flow == collective::Flow::kMoved && came == 0) {
      collective::WriteSome(connection, std::span(some).first(moved.bytes), echo);
    }
    came += moved.bytes;
  }
  dials.join();

  EXPECT_TRUE(absl::IsPermissionDenied(measured)) << measured;
  EXPECT_EQ(came, 32u);
}

TEST_F(LinkProbeTest, AnAgentThatEndsWaitsForNobody) {
  const Instant begun = runtime::Now();
  stop_ = true;
  serves_.join();
  EXPECT_TRUE(absl::IsCancelled(served_)) << served_;
  EXPECT_LT(runtime::Now() - begun, Seconds(1));
}

TEST(LinkProbesTest, WhereNobodyListensItIsSaid) {
  std::string endpoint;
  {
    const auto gone = LinkListener::Open("127.0.0.1");
    endpoint = gone->endpoint();
  }
  const std::atomic<bool> stop = false;
  EXPECT_TRUE(absl::IsUnavailable(MeasureLink(endpoint, kSecret, Small(), stop).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(MeasureLink("x", kSecret, Small(), stop).status()));
  EXPECT_THAT(std::string(LinkListener::Open("no such host").status().message()),
              HasSubstr("address no such host: "));
}

// Two agents' parts, as the coordinator plays them.
TEST(LinkProbesTest, OneListensAndTheOtherDials) {
  std::atomic<bool> over = false;
  tactus::agent::v1::LinkProbed found;
  LinkProbes dials("127.0.0.1", [&](tactus::agent::v1::LinkProbed said) {
    found = std::move(said);
    over = true;
  });
  tactus::agent::v1::ProbeLink order;
  order.set_probe_id(7);
  order.set_secret(kSecret);
  order.set_bytes_max(1 << 20);
  LinkProbes listens("127.0.0.1", [&](const tactus::agent::v1::LinkProbed& said) {
    tactus::agent::v1::ProbeLink to = order;
    to.set_endpoint(said.endpoint());
    dials.Order(to);
  });

  listens.Order(order);

  const Instant begun = runtime::Now();
  while (!over && runtime::Now() - begun < Seconds(20)) std::this_thread::yield();
  ASSERT_TRUE(over);
  EXPECT_EQ(found.probe_id(), 7u);
  EXPECT_EQ(found.error(), "");
  EXPECT_GT(found.bytes_per_second(), 0);
}

}  // namespace
}  // namespace tactus::agent
