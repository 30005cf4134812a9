#include "agent/collective/tcp_mesh.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <numeric>
#include <utility>

#include "agent/collective/mesh_costs.h"
#include "agent/collective/tcp_meeting.h"
#include "base/check.h"

namespace tactus::collective {
namespace {

// Bytes of a long message that are worth waking up for: on a slow link the system would wake a
// member for every packet, and a member with a small share of a core has no time for that.
constexpr std::size_t kReadAtOnce = 128 << 10;

// What comes while a member does something else for longer waits for it, and says nothing of the
// link.
constexpr Duration kAway = Seconds(0.2e-3);

std::string WhyOf(const Moved& moved) {
  return moved.flow == Flow::kClosed ? "closed the connection" : std::strerror(moved.error);
}

std::vector<int> AllRanks(int size) {
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

// The meeting with this member's rank among `members`, which it is one of.
TcpMeeting AsMemberOf(TcpMeeting meeting, const std::vector<int>& members) {
  const auto own = std::ranges::find(members, meeting.rank);
  TACTUS_CHECK(own != members.end());
  meeting.rank = static_cast<int>(own - members.begin());
  meeting.size = static_cast<int>(members.size());
  return meeting;
}

}  // namespace

std::vector<std::unique_ptr<TcpMesh>> TcpMesh::Connect(const TcpMeeting& meeting,
                                                       const WantedMeshes& wanted,
                                                       std::string& reason, bool* own) {
  // No peer is in two parts, so that as many more pairs of lanes to each as a part has meshes are
  // enough for all of them; those to a peer that is in none are closed again.
  const std::size_t pairs = wanted.count + (wanted.parts.empty() ? 0 : wanted.each);
  TcpConnections met = MeetByTcp(meeting, pairs * kLanes);
  reason = met.reason;
  if (own != nullptr) *own = met.own;
  if (!reason.empty()) return {};
  std::vector<std::unique_ptr<TcpMesh>> meshes;
  for (std::size_t i = 0; i < wanted.count + wanted.parts.size() * wanted.each; ++i) {
    const bool of_all = i < wanted.count;
    const std::vector<int> members =
        of_all ? AllRanks(meeting.size) : wanted.parts[(i - wanted.count) / wanted.each];
    const std::size_t pair = of_all ? i : wanted.count + (i - wanted.count) % wanted.each;
    std::vector<MeshConnection> connections;
    for (const int peer : members) {
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        const std::size_t lanes_before = static_cast<std::size_t>(peer) * pairs + pair;
        connections.push_back(std::move(met.connections[lanes_before * kLanes + lane]));
      }
    }
    meshes.emplace_back(new TcpMesh(AsMemberOf(meeting, members), std::move(connections)));
    if (!meshes.back()->AwaitGreetings()) {
      reason = meshes.back()->failure();
      return {};
    }
    meshes.back()->WaitForEver();
  }
  return meshes;
}

TcpMesh::TcpMesh(const TcpMeeting& meeting, std::vector<MeshConnection> connections)
    : rank_(meeting.rank),
      size_(meeting.size),
      interrupt_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      streams_(connections.size()),
      timeout_(meeting.timeout),
      now_(meeting.now),
      meter_(static_cast<std::size_t>(meeting.size)) {
  TACTUS_CHECK(interrupt_.open());
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    streams_[i].connection = std::move(connections[i]);
  }
}

// Nobody is through before all others have accepted it.
bool TcpMesh::AwaitGreetings() {
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    for (const Lane lane : {Lane::kFirst, Lane::kSecond}) {
      Receive(peer, lane, {});
      Send(peer, lane, {});
    }
  }
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    for (const Lane lane : {Lane::kFirst, Lane::kSecond}) {
      if (!WaitReceived(peer, lane) || !WaitSent(peer, lane)) return false;
    }
  }
  return true;
}

std::size_t TcpMesh::IndexOf(int peer, Lane lane) const {
  TACTUS_CHECK(peer >= 0 && peer < size_ && peer != rank_);
  return static_cast<std::size_t>(peer) * kLanes + static_cast<std::size_t>(lane);
}

void TcpMesh::Send(int peer, Lane lane, std::span<const std::byte> message) {
  const std::size_t index = IndexOf(peer, lane);
  if (!failure_.empty()) return;
  const std::uint64_t length = message.size();
  Passing<const std::byte> outgoing = {.message = message};
  std::memcpy(outgoing.header.data(), &length, sizeof(length));
  streams_[index].outgoing.push_back(outgoing);
  Write(index);
}

void TcpMesh::Receive(int peer, Lane lane, std::span<std::byte> message) {
  const std::size_t index = IndexOf(peer, lane);
  if (!failure_.empty()) return;
  streams_[index].incoming.push_back({.message = message});
}

bool TcpMesh::WaitSent(int peer, Lane lane) { return Wait(IndexOf(peer, lane), &Stream::sent); }

bool TcpMesh::WaitReceived(int peer, Lane lane) {
  return Wait(IndexOf(peer, lane), &Stream::received);
}

bool TcpMesh::Wait(std::size_t index, std::size_t Stream::*done) {
  if (interrupted_ && failure_.empty()) return Fail(rank_, "interrupted");
  if (now_() - left_ > kAway) ++stretch_;
  Read(index);
  const auto deadline = [this] {
    return timeout_ ? std::optional(DeadlineAfter(*timeout_)) : std::nullopt;
  };
  if (streams_[index].*done == 0) awaited_ = PeerOf(index);
  // Every turn moves something, of this message or another.
  while (failure_.empty() && streams_[index].*done == 0 && Poll(PeerOf(index), deadline())) {
  }
  awaited_ = -1;
  left_ = now_();
  if (!failure_.empty()) return false;
  --(streams_[index].*done);
  return true;
}

void TcpMesh::SetLowWater(Stream& stream) {
  if (stream.incoming.empty()) return;
  // The header by itself first: a message that is shorter than expected is to be noticed.
  Passing<std::byte>& next = stream.incoming.front();
  const std::size_t header_left = next.header_left().size();
  const std::size_t wanted = header_left > 0 ? header_left : std::min(next.left(), kReadAtOnce);
  if (stream.low_water == wanted) return;
  stream.connection.SetLowWater(wanted);
  stream.low_water = wanted;
}

bool TcpMesh::Poll(int peer, std::optional<Deadline> deadline) {
  std::vector<pollfd> wanted = {{.fd = interrupt_.get(), .events = POLLIN, .revents = 0}};
  std::vector<std::size_t> indices;
  for (std::size_t index = 0; index < streams_.size(); ++index) {
    Stream& stream = streams_[index];
    const int events =
        (stream.outgoing.empty() ? 0 : POLLOUT) | (stream.incoming.empty() ? 0 : POLLIN);
    if (events == 0) continue;
    SetLowWater(stream);
    wanted.push_back(
        {.fd = stream.connection.get(), .events = static_cast<short>(events), .revents = 0});
    indices.push_back(index);
  }
  const int ready =
      poll(wanted.data(), wanted.size(), deadline ? MillisecondsUntil(*deadline) : -1);
  if (ready == 0) return Fail(peer, "timed out");
  if (ready < 0) return errno == EINTR || Fail(peer, std::strerror(errno));
  if (wanted[0].revents != 0) return Fail(rank_, "interrupted");
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const int events = wanted[i + 1].revents;
    if ((events & (POLLIN | POLLHUP | POLLERR)) != 0) Read(indices[i]);
    if ((events & (POLLOUT | POLLHUP | POLLERR)) != 0) Write(indices[i]);
  }
  return failure_.empty();
}

void TcpMesh::Write(std::size_t index) {
  Stream& stream = streams_[index];
  while (failure_.empty() && !stream.outgoing.empty()) {
    Passing<const std::byte>& next = stream.outgoing.front();
    const Moved moved = stream.connection.WriteSome(next.header_left(), next.message_left());
    if (moved.flow == Flow::kBlocked) return;
    if (moved.flow != Flow::kMoved) {
      Fail(PeerOf(index), WhyOf(moved));
      return;
    }
    next.moved += moved.bytes;
    bytes_moved_ += moved.bytes;
    if (next.left() > 0) continue;
    stream.outgoing.pop_front();
    ++stream.sent;
  }
}

void TcpMesh::Read(std::size_t index) {
  Stream& stream = streams_[index];
  while (failure_.empty() && !stream.incoming.empty()) {
    Passing<std::byte>& next = stream.incoming.front();
    const Moved moved = stream.connection.ReadSome(next.header_left(), next.message_left());
    if (moved.flow == Flow::kBlocked) return MeasureFromHere(next);
    if (moved.flow != Flow::kMoved) {
      Fail(PeerOf(index), WhyOf(moved));
      return;
    }
    next.moved += moved.bytes;
    bytes_moved_ += moved.bytes;
    std::uint64_t length = 0;
    std::memcpy(&length, next.header.data(), sizeof(length));
    if (next.header_left().empty() && length != next.message.size()) {
      Fail(PeerOf(index), "sent " + std::to_string(length) + " bytes, expected " +
                              std::to_string(next.message.size()));
      return;
    }
    if (next.left() > 0) {
      if (stream.connection.encrypted()) continue;  // which gives out a record at a time
      return MeasureFromHere(next);                 // there was no more
    }
    MeasureUntilHere(index, next);
    stream.incoming.pop_front();
    ++stream.received;
  }
}

void TcpMesh::MeasureFromHere(Passing<std::byte>& message) {
  if (message.moved == 0 || message.measured_in == stretch_) return;
  if (message.message.size() < kMeasuredMin) return;
  message.measured_from = now_();
  message.measured_behind = message.moved;
  message.measured_in = stretch_;
  message.senders = Senders();
}

// Peers, whatever the lanes: of one who sends on both they come one after the other.
std::size_t TcpMesh::Senders() const {
  std::size_t senders = 0;
  for (std::size_t first = 0; first < streams_.size(); first += kLanes) {
    const auto lanes = std::span(streams_).subspan(first, kLanes);
    const auto awaited = [](const Stream& lane) { return !lane.incoming.empty(); };
    senders += std::ranges::any_of(lanes, awaited) ? 1 : 0;
  }
  return senders;
}

void TcpMesh::MeasureUntilHere(std::size_t index, const Passing<std::byte>& message) {
  if (message.measured_in != stretch_) return;
  const std::size_t bytes = message.moved - message.measured_behind;
  const Duration time = now_() - message.measured_from;
  if (bytes < kMeasuredMin || time <= Duration{}) return;
  meter_.Add(static_cast<std::size_t>(PeerOf(index)), bytes, time, message.senders);
}

std::optional<int> TcpMesh::LookForClosed() const {
  std::vector<pollfd> wanted;
  for (const Stream& stream : streams_) {
    // No descriptor, as of this member's own: poll passes it over.
    wanted.push_back({.fd = stream.connection.get(), .events = POLLRDHUP, .revents = 0});
  }
  if (poll(wanted.data(), wanted.size(), 0) <= 0) return std::nullopt;
  for (std::size_t first = 0; first < streams_.size(); first += kLanes) {
    bool closed = false;
    bool unread = false;
    for (std::size_t index = first; index < first + kLanes; ++index) {
      closed = closed || wanted[index].revents != 0;
      unread = unread || streams_[index].connection.HasUnread();
    }
    if (closed && !unread) return PeerOf(first);
  }
  return std::nullopt;
}

bool TcpMesh::Fail(int peer, const std::string& why) {
  if (failure_.empty()) {
    failure_ = peer == rank_ ? why : "rank " + std::to_string(peer) + ": " + why;
    if (peer != rank_) failed_ = peer;
  }
  return false;
}

void TcpMesh::Interrupt() {
  interrupted_ = true;
  const std::uint64_t one = 1;
  // It fails only when the counter is full, and then it is readable as well.
  [[maybe_unused]] const ssize_t written = write(interrupt_.get(), &one, sizeof(one));
}

void TcpMesh::ReleaseMemory() {
  if (failure_.empty()) failure_ = "closed";
  for (Stream& stream : streams_) stream = {};
}

}  // namespace tactus::collective
