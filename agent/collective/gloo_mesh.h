// A full mesh of Gloo's TCP connections, and messages between its members.
//
// Only Gloo's transport layer is used, not its algorithms: those leave a member hanging when a peer
// dies in the middle of a message, cannot be stopped from outside, and sum in an order that depends
// on the length.

#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "agent/collective/gloo_transport.h"
#include "gloo/transport/context.h"
#include "gloo/transport/device.h"
#include "gloo/transport/unbound_buffer.h"

namespace tactus::collective {

// Two independent streams of messages in each direction between each two members. Messages of one
// stream arrive in the order of Send and fill the receives in the order of Receive.
enum class Lane { kFirst, kSecond };

// One thread, except Interrupt; it and the thread of Connect keep a BlockedSigpipe. The first
// failure ends the mesh: whatever is called afterwards does nothing, and every wait returns false.
class GlooMesh {
 public:
  // Meets the others and connects to each. Returns null, and why in `reason`, if that cannot be.
  static std::unique_ptr<GlooMesh> Connect(const GlooMeeting& meeting, std::string& reason);

  GlooMesh(const GlooMesh&) = delete;
  GlooMesh& operator=(const GlooMesh&) = delete;

  // Closes the connections without taking back what is on its way to the others. Takes up to 10 ms
  // a peer: Gloo waits for its event loop.
  ~GlooMesh() = default;

  int rank() const { return rank_; }
  int size() const { return size_; }

  // Posts a message to `peer`, not this member. The memory is left alone until WaitSent.
  void Send(int peer, Lane lane, std::span<const std::byte> message);

  // Posts a receive of a message of exactly this length. The memory is the mesh's until
  // WaitReceived.
  void Receive(int peer, Lane lane, std::span<std::byte> message);

  // Waits for one posted message. False: the mesh is over, see failure().
  [[nodiscard]] bool WaitSent(int peer, Lane lane);
  [[nodiscard]] bool WaitReceived(int peer, Lane lane);

  // How long one wait may last from now on, > 0; a wait that lasts longer ends the mesh.
  void set_timeout(Duration timeout) { timeout_ = timeout; }

  // Makes the wait under way, or else the next one, return false. Any thread, but not during
  // ReleaseMemory.
  void Interrupt();

  // Takes all memory back from Gloo, posted messages included, and ends the mesh.
  void ReleaseMemory();

  // Why the mesh is over, for a person; empty while it is not.
  const std::string& failure() const { return failure_; }

 private:
  using Buffer = std::unique_ptr<::gloo::transport::UnboundBuffer>;

  // One for each lane. Both are null for this member itself.
  struct Peer {
    Buffer first;
    Buffer second;
  };

  explicit GlooMesh(const GlooMeeting& meeting);
  bool OpenDevice(const std::string& address);
  bool ConnectPairs(const GlooMeeting& meeting);
  bool Handshake();
  ::gloo::transport::UnboundBuffer& BufferOf(int peer, Lane lane);

  // Runs `call` unless the mesh is over; what it throws ends the mesh. False: the mesh is over.
  template <typename Call>
  bool Guard(int peer, Call call);

  // Runs Gloo's wait for a message of `peer`, which returns false when it was interrupted.
  template <typename Call>
  bool Wait(int peer, Call wait);

  // Constant once connected. In this order, so that buffers go before pairs and pairs before the
  // device's thread.
  const int rank_;
  const int size_;
  std::shared_ptr<::gloo::transport::Device> device_;    // shared with context_
  std::shared_ptr<::gloo::transport::Context> context_;  // shared with the buffers
  std::vector<Peer> peers_;                              // one a rank

  Duration timeout_;
  std::string failure_;
};

}  // namespace tactus::collective
