// A channel to the coordinator, or to the one that leads of several that share a store.

#pragma once

#include <grpcpp/support/channel_arguments.h>

#include <memory>
#include <string>

namespace grpc {
class Channel;
class ChannelCredentials;
}  // namespace grpc

namespace tactus::identity {

struct Destination {
  std::string addresses{};  // "host:port", or several with commas between them
  // Which of the coordinator's services the calls are of, by its name in the proto.
  std::string service{};
  std::shared_ptr<grpc::ChannelCredentials> credentials{};  // null: plain
  // In milliseconds: after how much silence one that is the only one is asked whether it is still
  // there, and how long it may take to answer. Several that share a store are asked after 11 s and
  // have 5 s: whoever stands still for longer does not lead any more.
  int keepalive = 30'000;
  int keepalive_timeout = 20'000;
};

// Of several, gRPC keeps a connection to each and asks each whether it serves (grpc.health.v1),
// which of coordinators that share a store one says at a time; calls go there, and elsewhere within
// a moment of its saying so. Where none does, calls fail as where nobody answers. Names among
// several addresses are looked up now, and once: a name that will move wants to be the only one.
// Requires: runtime::AreHostPorts.
std::shared_ptr<grpc::Channel> Dial(const Destination& destination,
                                    grpc::ChannelArguments arguments);

}  // namespace tactus::identity
