// gRPC's own account of its sockets and calls.

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <future>
#include <string>
#include <utility>

#include "tests/coordinator/server_fixture.h"

namespace tactus::service {
namespace {

class ChannelzTest : public ServerFixture {};

TEST_F(ChannelzTest, TheServerIsListed) {
  ASSERT_TRUE(Create(SmallSpec()).ok());
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
  const grpc::Slice request("");  // GetServersRequest from 0 on
  const grpc::ByteBuffer sent(&request, 1);
  grpc::ByteBuffer received;
  grpc::GenericStub stub(channel_);
  std::promise<grpc::Status> done;

  stub.UnaryCall(&context, "/grpc.channelz.v1.Channelz/GetServers", {}, &sent, &received,
                 [&done](grpc::Status status) { done.set_value(std::move(status)); });
  const grpc::Status status = done.get_future().get();

  ASSERT_TRUE(status.ok()) << status.error_message();
  grpc::Slice answer;
  ASSERT_TRUE(received.DumpToSingleSlice(&answer).ok());
  // GetServersResponse.server is field 1.
  EXPECT_TRUE(std::string(answer.begin(), answer.end()).starts_with("\x0a"));
}

}  // namespace
}  // namespace tactus::service
