#include "agent/collective/tcp_meeting.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

namespace tactus::collective {
namespace {

// What a member says first on a connection that it has opened. The same bytes on every host: hosts
// of one group are little-endian, as the parameters that they exchange.
struct Greeting {
  std::uint64_t word = 0;  // of the member that accepts
  std::uint32_t rank = 0;  // of the member that opens
  std::uint32_t lane = 0;
};
static_assert(sizeof(Greeting) == 16);

// A connection that has not said everything yet.
struct Newcomer {
  Descriptor connection = {};
  Greeting greeting = {};
  std::size_t heard = 0;
};

// Reads on; false: it closed or broke before it was through.
bool Hear(Newcomer& newcomer) {
  const auto bytes = std::as_writable_bytes(std::span(&newcomer.greeting, 1));
  while (newcomer.heard < bytes.size()) {
    const Moved moved = ReadSome(newcomer.connection, bytes.subspan(newcomer.heard), {});
    if (moved.flow == Flow::kBlocked) return true;
    if (moved.flow != Flow::kMoved) return false;
    newcomer.heard += moved.bytes;
  }
  return true;
}

// Connections at most that have not said who they are.
constexpr std::size_t kNewcomersMax = 256;

// Between two questions whether to give up.
constexpr int kAskMilliseconds = 20;
// Between two looks whether a member that is to come is still there, and for one of them.
constexpr Duration kBetweenLooks = Seconds(0.1);
constexpr Duration kLook = Seconds(0.5);

// One meeting. The first failure ends it.
class Meeting {
 public:
  Meeting(const TcpMeeting& meeting, std::size_t lanes)
      : meeting_(meeting),
        lanes_(lanes),
        connections_(static_cast<std::size_t>(meeting.size) * lanes) {}

  TcpConnections Hold();

 private:
  bool Meet();
  bool ConnectToLower(const std::vector<Endpoint>& endpoints, Deadline deadline);
  bool AcceptHigher(const Descriptor& listener, const std::vector<Endpoint>& endpoints,
                    Deadline deadline);
  bool MayWait(const std::vector<Endpoint>& endpoints, Deadline deadline);
  int FirstMissing() const;
  bool IsOneOfUs(const Greeting& greeting, std::uint64_t word) const;
  bool Fail(int peer, const std::string& why);

  std::size_t IndexOf(int peer, std::size_t lane) const {
    return static_cast<std::size_t>(peer) * lanes_ + lane;
  }

  const TcpMeeting& meeting_;
  const std::size_t lanes_;
  std::vector<Descriptor> connections_;
  std::string failure_;
  bool own_failure_ = false;
  Deadline look_at_;
  int refused_ = -1;  // who did not listen any more at the last look; -1: nobody
};

TcpConnections Meeting::Hold() {
  if (!Meet()) return {.reason = failure_, .own = own_failure_};
  return {.connections = std::move(connections_)};
}

bool Meeting::Meet() {
  Endpoint own;
  std::string why;
  const Descriptor listener = Listen(meeting_.address, own, why);
  if (!listener.open()) {
    return Fail(meeting_.rank, "address '" + meeting_.address +
                                   "': neither an interface nor an address of this host: " + why);
  }
  const std::vector<std::string> texts = meeting_.exchange(EncodeEndpoint(own));
  std::vector<Endpoint> endpoints(static_cast<std::size_t>(meeting_.size));
  if (texts.size() != endpoints.size()) {
    return Fail(meeting_.rank, "the group was given up before it was connected");
  }
  for (std::size_t peer = 0; peer < texts.size(); ++peer) {
    if (!DecodeEndpoint(texts[peer], endpoints[peer])) {
      return Fail(static_cast<int>(peer),
                  "its " + std::to_string(texts[peer].size()) + " bytes are no endpoint");
    }
  }
  const Deadline deadline = DeadlineAfter(meeting_.timeout);
  endpoints[static_cast<std::size_t>(meeting_.rank)] = own;
  look_at_ = DeadlineAfter(kBetweenLooks);
  return ConnectToLower(endpoints, deadline) && AcceptHigher(listener, endpoints, deadline);
}

// The system accepts connections by itself, so that everybody can connect before anybody accepts.
bool Meeting::ConnectToLower(const std::vector<Endpoint>& endpoints, Deadline deadline) {
  for (int peer = 0; peer < meeting_.rank; ++peer) {
    const Endpoint& endpoint = endpoints[static_cast<std::size_t>(peer)];
    for (std::size_t lane = 0; lane < lanes_; ++lane) {
      std::string why;
      Descriptor& connection = connections_[IndexOf(peer, lane)];
      connection = ConnectTo(endpoint, deadline, why);
      if (!connection.open()) return Fail(peer, why);
      const Greeting greeting = {.word = endpoint.word,
                                 .rank = static_cast<std::uint32_t>(meeting_.rank),
                                 .lane = static_cast<std::uint32_t>(lane)};
      const Moved moved = WriteSome(connection, std::as_bytes(std::span(&greeting, 1)), {});
      if (moved.bytes != sizeof(greeting)) return Fail(peer, "did not take the greeting");
    }
  }
  return true;
}

// A member that is still to come; this one: nobody is.
int Meeting::FirstMissing() const {
  for (int peer = meeting_.rank + 1; peer < meeting_.size; ++peer) {
    for (std::size_t lane = 0; lane < lanes_; ++lane) {
      if (!connections_[IndexOf(peer, lane)].open()) return peer;
    }
  }
  return meeting_.rank;
}

bool Meeting::IsOneOfUs(const Greeting& greeting, std::uint64_t word) const {
  return greeting.word == word && greeting.lane < lanes_ &&
         greeting.rank > static_cast<std::uint32_t>(meeting_.rank) &&
         greeting.rank < static_cast<std::uint32_t>(meeting_.size);
}

// Whoever connects without the word, or says nothing, is none of us and does no harm.
bool Meeting::AcceptHigher(const Descriptor& listener, const std::vector<Endpoint>& endpoints,
                           Deadline deadline) {
  const std::uint64_t word = endpoints[static_cast<std::size_t>(meeting_.rank)].word;
  std::vector<Newcomer> newcomers;
  while (FirstMissing() != meeting_.rank) {
    std::vector<pollfd> wanted = {{.fd = listener.get(), .events = POLLIN, .revents = 0}};
    for (const Newcomer& newcomer : newcomers) {
      wanted.push_back({.fd = newcomer.connection.get(), .events = POLLIN, .revents = 0});
    }
    const int pause = std::min(MillisecondsUntil(deadline), kAskMilliseconds);
    const int ready = poll(wanted.data(), wanted.size(), pause);
    const int error = errno;
    if (ready < 0 && error != EINTR) return Fail(meeting_.rank, std::strerror(error));
    std::string why;
    for (Descriptor next = Accept(listener, why); next.open(); next = Accept(listener, why)) {
      // Who has said nothing for longest makes room: strangers cannot fill it up.
      if (newcomers.size() == kNewcomersMax) newcomers.erase(newcomers.begin());
      newcomers.push_back({.connection = std::move(next)});
    }
    if (!why.empty()) {
      own_failure_ = true;
      return Fail(meeting_.rank, "no connection can be accepted: " + why);
    }
    std::erase_if(newcomers, [&](Newcomer& newcomer) {
      if (!Hear(newcomer)) return true;
      if (newcomer.heard < sizeof(Greeting)) return false;
      if (!IsOneOfUs(newcomer.greeting, word)) return true;
      const int peer = static_cast<int>(newcomer.greeting.rank);
      Descriptor& connection = connections_[IndexOf(peer, newcomer.greeting.lane)];
      if (!connection.open()) connection = std::move(newcomer.connection);
      return true;
    });
    if (FirstMissing() != meeting_.rank && !MayWait(endpoints, deadline)) return false;
  }
  return true;
}

// A member listens until all have come. Who does not any more, and has not come, has died or given
// up; but its connection may be on its way still, so it takes two looks.
bool Meeting::MayWait(const std::vector<Endpoint>& endpoints, Deadline deadline) {
  const int missing = FirstMissing();
  if (MillisecondsUntil(deadline) == 0) return Fail(missing, "did not connect in time");
  const std::string given_up = meeting_.give_up ? meeting_.give_up() : "";
  if (!given_up.empty()) return Fail(meeting_.rank, given_up);
  if (MillisecondsUntil(look_at_) > 0) return true;
  look_at_ = DeadlineAfter(kBetweenLooks);
  const bool refuses = Refuses(endpoints[static_cast<std::size_t>(missing)], DeadlineAfter(kLook));
  if (refuses && refused_ == missing) return Fail(missing, "is gone before it connected");
  refused_ = refuses ? missing : -1;
  return true;
}

bool Meeting::Fail(int peer, const std::string& why) {
  failure_ = peer == meeting_.rank ? why : "rank " + std::to_string(peer) + ": " + why;
  return false;
}

}  // namespace

TcpConnections MeetByTcp(const TcpMeeting& meeting, std::size_t lanes) {
  return Meeting(meeting, lanes).Hold();
}

}  // namespace tactus::collective
