#include "agent/collective/device_group.h"

#include <cstddef>
#include <optional>
#include <utility>

#include "agent/collective/nccl_transport.h"
#include "base/check.h"
#include "cuda/nccl.h"
#include "cuda/nccl_endpoint.h"

namespace tactus::collective {
namespace {

namespace nccl = cuda::nccl;

}  // namespace

std::string JoinEndpoints(const std::string& first, const std::string& second) {
  TACTUS_CHECK(first.size() < 256);
  return static_cast<char>(first.size()) + first + second;
}

SplitEndpoint SplitEndpoints(const std::string& joined) {
  if (joined.empty()) return {};
  const auto length = static_cast<std::size_t>(static_cast<unsigned char>(joined.front()));
  if (joined.size() < 1 + length) return {};
  return {.first = joined.substr(1, length), .second = joined.substr(1 + length)};
}

TcpMeeting TcpMeetingOf(const DeviceMeeting& meeting) {
  return {.rank = meeting.rank,
          .size = meeting.size,
          .address = meeting.address,
          .exchange = meeting.exchange,
          .now = meeting.now,
          .give_up = meeting.give_up,
          .generation = meeting.generation,
          .secret = meeting.secret,
          .tell = meeting.tell};
}

ConnectedTransport ConnectDevices(const DeviceMeeting& meeting) {
  NcclMeeting devices{.rank = meeting.rank,
                      .size = meeting.size,
                      .generation = meeting.generation,
                      .device = meeting.device,
                      .compute_stream = meeting.compute_stream,
                      .now = meeting.now,
                      .give_up = meeting.give_up,
                      .must_end = meeting.must_end};
  if (meeting.size == 1) {
    devices.exchange = meeting.exchange;
    return ConnectNccl(std::move(devices));
  }
  nccl::Endpoint own{
      .generation = meeting.generation, .rank = meeting.rank, .nccl_version = nccl::Version()};
  if (own.nccl_version == 0) return {.reason = "this build has no NCCL", .own = true};
  if (meeting.rank == 0) {
    const nccl::MadeUniqueId made = nccl::MakeUniqueId();
    if (!made.id) return {.reason = made.reason, .own = true};
    own.id = devices.id = made.id;
  }
  std::vector<std::string> texts;  // of NCCL, by rank; empty: the group was given up
  const auto exchange = [&](const std::string& tcp) {
    std::vector<std::string> endpoints = meeting.exchange(JoinEndpoints(tcp, nccl::ToText(own)));
    for (std::string& endpoint : endpoints) {
      SplitEndpoint parts = SplitEndpoints(endpoint);
      endpoint = std::move(parts.first);
      texts.push_back(std::move(parts.second));
    }
    return endpoints;
  };
  TcpMeeting tcp = TcpMeetingOf(meeting);
  tcp.exchange = exchange;
  ConnectedTransports connected = ConnectTcp(tcp, kHostTransports);
  if (connected.transports.empty()) return {.reason = connected.reason, .own = connected.own};
  devices.signals = std::move(connected.transports[kSignalsAt]);
  devices.heartbeat = std::move(connected.transports[kHeartbeatAt]);
  devices.exchange = [&texts](const std::string&) { return texts; };
  return ConnectNccl(std::move(devices));
}

}  // namespace tactus::collective
