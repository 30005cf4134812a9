// Collectives between devices, by NCCL.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/collective/launch_order.h"
#include "agent/collective/tcp_transport.h"
#include "agent/collective/transport.h"
#include "base/time.h"
#include "cuda/nccl_endpoint.h"
#include "cuda/ops/stream.h"

namespace tactus::collective {

// What makes a member of a group of devices.
struct NcclMeeting {
  int rank = 0;
  int size = 1;
  std::uint64_t generation = 0;  // of the group's membership: what is not of it is refused
  int device = 0;                // CUDA's index
  // The stream whose work fills the buffers: a collective begins on the device when what was queued
  // there before its start is done. Null: the default stream.
  cuda::Stream compute_stream = nullptr;

  // Until all members have come: less than a job gives its start, which then says who did not.
  Duration meet_limit = Seconds(480);
  Duration abort_limit = Seconds(30);  // for NCCL to end what is under way, real time
  Duration leave_limit = Seconds(10);  // for what is queued to reach the others, when leaving
  Duration heartbeat_interval = Seconds(0.25);
  // What is under way when a member is found to have left may still end by itself: that member may
  // have finished it, and left in good order.
  Duration grace = Seconds(1);

  // Of rank 0, where its endpoint has travelled before the members meet: what is in it. Without, it
  // is made when they do.
  std::optional<cuda::nccl::UniqueId> id = {};
  // As in TcpMeeting; the endpoint is a line of text with the generation in it.
  std::function<std::vector<std::string>(std::string own_endpoint)> exchange = {};
  std::function<Instant()> now = {};  // the present
  // Asked while the members meet: why to stop that, empty to go on. May be empty.
  std::function<std::string()> give_up = {};

  // Of the process's groups that have collectives under way at the same time, shared by them. Null:
  // there is but this one.
  std::shared_ptr<LaunchOrder> order = nullptr;

  // A transport of the same members for what is not on the device: barriers, and buffers of the
  // host's memory.
  std::unique_ptr<Transport> signals = nullptr;
  // A further one, by which members learn that another has left or has died, while they meet, too;
  // NCCL does not tell. Barriers follow one another on it. Null: nobody tells.
  std::unique_ptr<Transport> heartbeat = nullptr;

  // Called at most once, from a thread of the transport, when NCCL did not end within abort_limit
  // what had failed: device memory may be written at any time, so the process has to end. May be
  // empty: then only the reason of the collectives says so.
  std::function<void(const std::string& reason)> must_end = {};
};

// Of the transports by TCP that such a group takes, which are signals and heartbeat, in this order.
inline constexpr std::size_t kSignalsAt = 0;
inline constexpr std::size_t kHeartbeatAt = 1;
inline constexpr std::size_t kHostTransports = 2;

// Meets the others; when it returns a transport, all members have met. Buffers are the device's
// memory, or the host's for few and small things and for conversations: those go by `signals`, and
// all members must do alike. A group of one moves nothing and needs no NCCL.
//
// Collectives are issued by a thread of the transport in the order of their start; a second one
// watches. Starting one marks the compute stream and does not wait for it. A barrier begins when
// all before it is done on this member, and nothing begins before it is done.
//
// Collective::WaitOnDevice puts the compute stream behind the collective's event, and lost() is
// raised before anything of NCCL is ended. Where NCCL does not end at all within abort_limit the
// compute stream stands still behind it: must_end is the one way out then.
//
// An error of NCCL or CUDA, a member that has left, and Abort end the group: kFailed then means
// that no device writes to the buffers any more, unless the reason says that the process has to
// end. Who hangs is waited for, as with ConnectTcp. The bits of a sum depend on NCCL's choice of
// algorithm, but are the same on all members.
ConnectedTransport ConnectNccl(NcclMeeting meeting);

// A group of one, whose buffers may be any memory: every sum is there already.
std::unique_ptr<Transport> MakeSoloTransport(std::function<Instant()> now);

}  // namespace tactus::collective
