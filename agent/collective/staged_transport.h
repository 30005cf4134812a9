// Collectives of a device's memory through the host's: for groups that NCCL cannot form, as those
// of devices and hosts together.

#pragma once

#include <functional>
#include <memory>
#include <string>

#include "agent/collective/tcp_transport.h"
#include "agent/collective/transport.h"
#include "base/time.h"
#include "cuda/ops/stream.h"

namespace tactus::collective {

// What makes a member of such a group.
struct StagedMember {
  int device = 0;  // CUDA's index
  // The stream whose work fills the buffers: a collective begins when what was queued there before
  // its start is done. Null: the default stream.
  cuda::Stream compute_stream = nullptr;
  // The same members, between the memories of their hosts; one of TCP. Members on the host's device
  // use such a one by itself: both send the same messages.
  std::unique_ptr<Transport> host = nullptr;
  std::function<Instant()> now = {};  // the present
};

// Buffers are the device's memory, which travels in pieces (mesh_pieces.h): while one travels, the
// next is there already and the one before it goes up. Or they are the host's, which need no copy.
// What is done is done on the device, too. Sums are those of `host`, bit by bit: in rank order, the
// same on members on devices and on hosts.
//
// Collectives are carried out by a thread of the transport in the order of their start; starting
// one marks the compute stream and does not wait for it. A barrier begins when all before it is
// done on this member.
//
// Memory: Staging::kSlots slots of two pieces, 24 MiB of pinned memory, whatever the buffers'
// length; and what `host` takes.
//
// An error of CUDA, a failure of `host`, whose words are the reason then, and Abort end the group:
// kFailed then means that neither the device nor the network touches the buffers any more. For that
// it waits until the device has done what was queued before, however long that takes.
//
// Null with a reason where device, streams or memory cannot be had.
ConnectedTransport MakeStagedTransport(StagedMember member);

}  // namespace tactus::collective
