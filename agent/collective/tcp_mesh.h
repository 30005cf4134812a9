// A full mesh of TCP connections, and messages between its members.
//
// Plain sockets and no library: what a job's members speak must be the same on every host, whatever
// copy of a library libtorch brings along there.

#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "agent/collective/link_meter.h"
#include "agent/collective/mesh_connection.h"
#include "agent/collective/tcp_socket.h"
#include "agent/collective/tcp_transport.h"

namespace tactus::collective {

// Two independent streams of messages in each direction between each two members. Messages of one
// stream arrive in the order of Send and fill the receives in the order of Receive.
enum class Lane { kFirst, kSecond };
inline constexpr std::size_t kLanes = 2;

// Which meshes are made of one meeting.
struct WantedMeshes {
  std::size_t count = 1;                     // of all members, >= 1
  std::vector<std::vector<int>> parts = {};  // see ConnectTcp
  std::size_t each = 1;                      // of each part, >= 1
};

// One thread, except Interrupt, awaited, bytes_moved and TakeLinkRate. The first failure ends the
// mesh: whatever is called afterwards does nothing, and every wait returns false.
//
// It has no thread of its own: bytes move in Send and while somebody waits, of all messages that
// are posted and not only of the one that is waited for.
class TcpMesh {
 public:
  // Meets the others once and makes the meshes, those of all members first. Returns none, and why
  // in `reason`, if that cannot be; and in `own`, unless null, whether that is this host's alone.
  static std::vector<std::unique_ptr<TcpMesh>> Connect(const TcpMeeting& meeting,
                                                       const WantedMeshes& wanted,
                                                       std::string& reason, bool* own = nullptr);

  TcpMesh(const TcpMesh&) = delete;
  TcpMesh& operator=(const TcpMesh&) = delete;

  // Closes the connections without taking back what is on its way to the others.
  ~TcpMesh() = default;

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

  // Waits take as long as they take from now on: who hangs is found out, and ended, from outside.
  void WaitForEver() { timeout_.reset(); }

  // The peer that is waited for now, or nothing; and what was moved so far. Any thread.
  std::optional<int> awaited() const {
    const int peer = awaited_;
    return peer < 0 ? std::nullopt : std::optional(peer);
  }
  std::uint64_t bytes_moved() const { return bytes_moved_; }

  // LinkMeter::Take, of the rest of long messages that was still to come when what had come of them
  // was read.
  double TakeLinkRate() { return meter_.Take(); }

  // Makes the wait under way, or else the next one, return false. Any thread, but not during
  // ReleaseMemory.
  void Interrupt();

  // Forgets all posted messages and their memory, closes the connections and ends the mesh.
  void ReleaseMemory();

  // Who has closed its connection, and nothing of it is left to read; nothing: nobody. Without
  // waiting, and without an end of the mesh: those that are left may need nothing of that peer.
  std::optional<int> LookForClosed() const;

  // Why the mesh is over, for a person; empty while it is not.
  const std::string& failure() const { return failure_; }
  // And whose connection failed; nothing: nobody's.
  std::optional<int> failed() const { return failed_; }

 private:
  using Header = std::array<std::byte, sizeof(std::uint64_t)>;  // a message's length

  // A message on its way; Byte is constant for one that leaves.
  template <typename Byte>
  struct Passing {
    std::span<Byte> message = {};
    Header header = {};
    std::size_t moved = 0;  // of header and message
    // Since when, and behind how many bytes, it is measured how fast it comes; in which stretch of
    // waiting: 0 for none.
    Instant measured_from = {};
    std::size_t measured_behind = 0;
    std::uint64_t measured_in = 0;
    std::size_t senders = 1;  // whose messages were awaited then

    // What is still to move: of the header, of the message, of both.
    std::span<std::byte> header_left() { return std::span(header).subspan(in_header()); }
    std::span<Byte> message_left() { return message.subspan(moved - in_header()); }
    std::size_t left() const { return header.size() + message.size() - moved; }
    std::size_t in_header() const { return std::min(moved, header.size()); }
  };

  // One lane to one peer: a connection, what is posted, and how many messages nobody waited for
  // yet are done.
  struct Stream {
    MeshConnection connection = {};
    std::deque<Passing<const std::byte>> outgoing = {};
    std::deque<Passing<std::byte>> incoming = {};
    std::size_t sent = 0;
    std::size_t received = 0;
    std::size_t low_water = 1;
  };

  TcpMesh(const TcpMeeting& meeting, std::vector<MeshConnection> connections);
  bool AwaitGreetings();

  std::size_t IndexOf(int peer, Lane lane) const;
  int PeerOf(std::size_t stream) const { return static_cast<int>(stream / kLanes); }

  // Moves what can be moved without blocking.
  void Write(std::size_t index);
  void Read(std::size_t index);

  std::size_t Senders() const;  // peers of whom something is awaited
  // Nothing more of the message has come as yet; all of it has.
  void MeasureFromHere(Passing<std::byte>& message);
  void MeasureUntilHere(std::size_t index, const Passing<std::byte>& message);

  // Moves messages until the stream's `done` is not zero, and takes one off it.
  bool Wait(std::size_t index, std::size_t Stream::*done);
  // Lets poll(2) wait for as much as is worth waking up for.
  void SetLowWater(Stream& stream);
  // Blocks until something can be moved.
  bool Poll(int peer, std::optional<Deadline> deadline);
  bool Fail(int peer, const std::string& why);

  // Constant once connected.
  const int rank_;
  const int size_;
  Descriptor interrupt_;  // an eventfd, readable once somebody interrupted
  std::atomic<bool> interrupted_ = false;

  std::vector<Stream> streams_;  // peer 0's first and second lane, peer 1's, ...; own ones unused
  std::optional<Duration> timeout_;  // that nothing may move in a wait; nothing: any
  std::atomic<int> awaited_ = -1;    // the peer; -1: none
  std::atomic<std::uint64_t> bytes_moved_ = 0;
  std::string failure_;
  std::optional<int> failed_;

  const std::function<Instant()> now_;
  LinkMeter meter_;
  // Stretches in which it was waited all along, but for less than kAway.
  std::uint64_t stretch_ = 1;
  Instant left_ = {};  // the last wait
};

}  // namespace tactus::collective
