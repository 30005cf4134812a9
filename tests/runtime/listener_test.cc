#include "runtime/listener.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <boost/asio/connect.hpp>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "runtime/host_port.h"

namespace tactus::runtime {
namespace {

using boost::asio::ip::tcp;
using ::testing::HasSubstr;

class ListenerTest : public ::testing::Test {
 protected:
  ~ListenerTest() override {
    if (listener_ != nullptr) thread_.RunAndWait([this] { listener_->Stop(); });
    thread_.Stop();
  }

  void Listen(const std::string& address) {
    auto listener = Listener::Open(thread_, address);
    ASSERT_TRUE(listener.ok()) << listener.status();
    listener_ = *std::move(listener);
  }
  void Start() {
    thread_.RunAndWait([this] {
      listener_->Start([this](tcp::socket connection) {
        flags_ = ::fcntl(connection.native_handle(), F_GETFD);
        status_ = ::fcntl(connection.native_handle(), F_GETFL);
        taken_.set_value();
      });
    });
  }
  tcp::socket Connect() {
    const std::string address = listener_->address();
    const HostPort parts = *ParseHostPort(address);
    tcp::socket socket(context_);
    tcp::resolver resolver(context_);
    boost::asio::connect(socket, resolver.resolve(parts.host, std::to_string(parts.port)));
    return socket;
  }

  boost::asio::io_context context_;
  ControlThread thread_;
  std::unique_ptr<Listener> listener_;
  std::promise<void> taken_;
  int flags_ = 0, status_ = 0;
};

TEST_F(ListenerTest, AConnectionIsTakenThatBlocksNobodyAndIsNotInherited) {
  Listen("127.0.0.1:0");
  Start();

  const tcp::socket connection = Connect();
  taken_.get_future().wait();

  EXPECT_TRUE(listener_->loopback());
  EXPECT_NE(flags_ & FD_CLOEXEC, 0);
  EXPECT_NE(status_ & O_NONBLOCK, 0);
}

TEST_F(ListenerTest, OneThatWaitsWhileNoFileIsLeftIsTakenLater) {
  Listen("127.0.0.1:0");
  const tcp::socket connection = Connect();  // the system's queue has it
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  auto taken = taken_.get_future();

  Start();
  // The first attempt is over by then.
  thread_.RunAndWait([] {});
  thread_.RunAndWait([] {});
  EXPECT_NE(taken.wait_for(std::chrono::seconds(0)), std::future_status::ready);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  taken.wait();
}

TEST_F(ListenerTest, APortIsListenedAtOnce) {
  Listen("127.0.0.1:0");

  const auto second = Listener::Open(thread_, listener_->address());

  EXPECT_TRUE(absl::IsUnavailable(second.status())) << second.status();
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("the port is in use"));
}

TEST_F(ListenerTest, AnAddressThatIsNotOneIsRefused) {
  EXPECT_TRUE(absl::IsInvalidArgument(Listener::Open(thread_, "nowhere").status()));
  EXPECT_TRUE(absl::IsUnavailable(Listener::Open(thread_, "203.0.113.7:0").status()));
}

TEST_F(ListenerTest, AHostWithSeveralAddressesIsReachedAtEach) {
  Listen("127.0.0.1:0");
  const std::string port = std::to_string(ParseHostPort(listener_->address())->port);
  thread_.RunAndWait([this] { listener_->Stop(); });
  Listen("localhost:" + port);
  Start();

  const tcp::socket connection = Connect();
  taken_.get_future().wait();

  EXPECT_TRUE(listener_->loopback());
  EXPECT_EQ(listener_->address(), "localhost:" + port);
}

}  // namespace
}  // namespace tactus::runtime
