// Groups of workers on devices: NCCL for what is in their memory, TCP for what is not.

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "agent/collective/tcp_transport.h"
#include "base/time.h"
#include "cuda/ops/stream.h"

namespace tactus::collective {

// What makes a member of a group of devices; the fields are those of TcpMeeting and NcclMeeting.
struct DeviceMeeting {
  int rank = 0;
  int size = 1;
  std::uint64_t generation = 0;
  std::string address = {};
  int device = 0;                         // CUDA's index
  cuda::Stream compute_stream = nullptr;  // whose work fills the buffers
  std::function<std::vector<std::string>(std::string own_endpoint)> exchange = {};
  std::function<Instant()> now = {};
  std::function<std::string()> give_up = {};
  std::string secret = {};  // for what goes by TCP; NCCL knows nothing of it
  std::function<void(const std::string& line)> tell = {};
  std::function<void(const std::string& reason)> must_end = {};
};

// Meets the others by one exchange of endpoints, each of which is what TCP and NCCL need, and
// connects to each. Buffers are the device's memory, or the host's for few and small things; see
// ConnectNccl. A group of one moves nothing and needs neither.
ConnectedTransport ConnectDevices(const DeviceMeeting& meeting);

// How its members meet by TCP.
TcpMeeting TcpMeetingOf(const DeviceMeeting& meeting);

// Two texts as one that travels, and back. The first is shorter than 256 bytes.
std::string JoinEndpoints(const std::string& first, const std::string& second);
struct SplitEndpoint {
  std::string first{};
  std::string second{};
};
// What was not joined has no parts.
SplitEndpoint SplitEndpoints(const std::string& joined);

}  // namespace tactus::collective
