#include "coordinator/service/connections.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <vector>

#include "base/check.h"
#include "base/descriptor.h"

namespace tactus::service {
namespace {

constexpr auto kAdmitted = Connections::Verdict::kAdmitted;

Instant Later(int milliseconds) { return Instant{} + std::chrono::milliseconds(milliseconds); }

Descriptor Socket() {
  Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  TACTUS_CHECK(socket.open());
  return socket;
}

TEST(ConnectionsTest, AHostHasSoManyAndThoseThatEndedMakeRoom) {
  Connections connections({.of_host = 2});
  Descriptor one = Socket();
  const Descriptor two = Socket();
  const Descriptor three = Socket();
  EXPECT_EQ(connections.Admit("10.0.0.1", one.get(), Later(0)), kAdmitted);
  EXPECT_EQ(connections.Admit("10.0.0.1", two.get(), Later(0)), kAdmitted);

  EXPECT_EQ(connections.Admit("10.0.0.1", three.get(), Later(0)),
            Connections::Verdict::kTooManyOfHost);
  EXPECT_EQ(connections.Admit("10.0.0.2", three.get(), Later(0)), kAdmitted);
  one.Close();
  const Descriptor four = Socket();  // most likely of the number that one had
  EXPECT_EQ(connections.Admit("10.0.0.1", four.get(), Later(0)), kAdmitted);
  EXPECT_EQ(connections.size(), 3u);
}

// As the database's file may get the number of a connection that is gone.
TEST(ConnectionsTest, ANumberThatSomethingElseHasByNowIsNoConnection) {
  Connections connections({.of_host = 1});
  Descriptor one = Socket();
  ASSERT_EQ(connections.Admit("a", one.get(), Later(0)), kAdmitted);
  const Descriptor other = Socket();
  ASSERT_EQ(::dup2(other.get(), one.get()), one.get());

  const Descriptor next = Socket();
  EXPECT_EQ(connections.Admit("a", next.get(), Later(0)), kAdmitted);
}

TEST(ConnectionsTest, OfAllHostsThereAreSoManyAndItIsNotLookedEachTime) {
  Connections connections({.all = 2});
  Descriptor one = Socket();
  const Descriptor two = Socket();
  const Descriptor three = Socket();
  ASSERT_EQ(connections.Admit("a", one.get(), Later(1000)), kAdmitted);
  ASSERT_EQ(connections.Admit("b", two.get(), Later(1000)), kAdmitted);

  EXPECT_EQ(connections.Admit("c", three.get(), Later(1000)), Connections::Verdict::kTooMany);
  one.Close();
  EXPECT_EQ(connections.Admit("c", three.get(), Later(1010)), Connections::Verdict::kTooMany);
  EXPECT_EQ(connections.Admit("c", three.get(), Later(1030)), kAdmitted);
}

TEST(ConnectionsTest, RefusalsAreSaidOnceASecondWithTheirNumber) {
  Connections connections({});
  EXPECT_EQ(connections.CountRefusal(Later(5000)), 1u);
  EXPECT_EQ(connections.CountRefusal(Later(5001)), 0u);
  EXPECT_EQ(connections.CountRefusal(Later(5999)), 0u);
  EXPECT_EQ(connections.CountRefusal(Later(6001)), 3u);
}

}  // namespace
}  // namespace tactus::service
