#include "coordinator/access/bounds.h"

#include <gtest/gtest.h>

#include "runtime/status.h"

namespace tactus::access {
namespace {

TEST(BoundsTest, AHostIsItsAddressWhateverThePortAndTheFamily) {
  EXPECT_EQ(HostOfPeer("ipv4:10.0.0.1:5000"), "10.0.0.1");
  EXPECT_EQ(HostOfPeer("ipv6:%5B::ffff:10.0.0.1%5D:5000"), "10.0.0.1");
  EXPECT_EQ(HostOfPeer("ipv6:[::1]:5000"), "::1");
  EXPECT_EQ(HostOfPeer("unix:/run/tactus.sock"), "unix:/run/tactus.sock");
  EXPECT_EQ(HostOfPeer("ipv4:what"), "ipv4:what");
  EXPECT_EQ(HostOfPeer(""), "");
}

// Whoever has a network of 64 bits has 2^64 addresses.
TEST(BoundsTest, AddressesOfOneNetworkOfIpv6AreOneHost) {
  const std::string host = HostOfPeer("ipv6:%5B2001:db8:1:2:3:4:5:6%5D:1");
  EXPECT_EQ(host, "2001:db8:1:2::/64");
  EXPECT_EQ(HostOfPeer("ipv6:[2001:db8:1:2::9]:2"), host);
  EXPECT_NE(HostOfPeer("ipv6:[2001:db8:1:3::9]:2"), host);
}

TEST(BoundsTest, WhoIsIdentifiedCountsWhereverTheyCallFrom) {
  const Principal alice = {.kind = Principal::Kind::kUser, .name = "alice"};
  EXPECT_EQ(BoundedName(alice, "ipv4:10.0.0.1:1"), "user/alice");
  EXPECT_EQ(BoundedName(Principal{}, "ipv4:10.0.0.1:1"), "host/10.0.0.1");
  EXPECT_EQ(BoundedName({.kind = Principal::Kind::kPage}, ""), "");
  EXPECT_EQ(BoundedName({.kind = Principal::Kind::kStranger}, "ipv4:10.0.0.1:1"), "host/10.0.0.1");
}

TEST(BoundsTest, OneCallersCallsTakeNobodyElsesPlace) {
  CallCounts counts(2);
  auto first = counts.Enter("user/alice");
  auto second = counts.Enter("user/alice");
  ASSERT_TRUE(first && second);

  EXPECT_FALSE(counts.Enter("user/alice"));
  EXPECT_TRUE(counts.Enter("user/bob"));
  first.reset();
  EXPECT_TRUE(counts.Enter("user/alice"));
}

TEST(BoundsTest, ARefusalSaysWhichBoundAndWhenToTryAgain) {
  for (const Bound bound :
       {Bound::kCalls, Bound::kFirstMessage, Bound::kNodes, Bound::kUploadBytes, Bound::kDisk}) {
    const absl::Status status = Beyond(bound, "what");
    EXPECT_EQ(BoundOf(status), bound) << NameOf(bound);
    EXPECT_TRUE(runtime::RetryDelayOf(status).has_value());
  }
  EXPECT_FALSE(BoundOf(absl::ResourceExhaustedError("of another kind")));
  EXPECT_FALSE(BoundOf(absl::OkStatus()));
}

}  // namespace
}  // namespace tactus::access
