#include "agent/collective/tcp_meeting.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "agent/collective/introduction.h"
#include "agent/collective/newcomers.h"
#include "agent/collective/tls_session.h"
#include "crypto/mac.h"

namespace tactus::collective {
namespace {

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
        party_{.group = {.secret = meeting.secret, .generation = meeting.generation},
               .encrypted = meeting.encrypted,
               .rank = static_cast<std::uint32_t>(meeting.rank),
               .size = static_cast<std::uint32_t>(meeting.size),
               .lanes = static_cast<std::uint32_t>(lanes)},
        connections_(static_cast<std::size_t>(meeting.size) * lanes) {}

  TcpConnections Hold();

 private:
  // A connection that this member has opened, until it knows who answers.
  struct Opened {
    int peer = 0;
    std::size_t lane = 0;
    std::unique_ptr<Introduction> introduction;  // null: it is known
  };

  bool Meet();
  bool CanProve();
  bool ReadEndpoints(const Endpoint& own);
  bool ConnectToLower(Deadline deadline);
  bool Await(const Descriptor& listener, Newcomers& newcomers, Deadline deadline);
  bool Advance(Opened& one);
  bool AdvanceOpened();
  bool Poll(const Descriptor& listener, const Newcomers& newcomers, Deadline deadline);
  void Take(Newcomers& newcomers);
  bool MayWait(Deadline deadline);
  int FirstMissing(int from = 0) const;
  bool Fail(int peer, const std::string& why);

  std::size_t IndexOf(int peer, std::size_t lane) const {
    return static_cast<std::size_t>(peer) * lanes_ + lane;
  }

  const TcpMeeting& meeting_;
  const std::size_t lanes_;
  const Party party_;
  std::vector<Endpoint> endpoints_;
  std::vector<MeshConnection> connections_;
  std::vector<Opened> opened_;
  std::string failure_;
  bool own_failure_ = false;
  Deadline look_at_;
  int refused_ = -1;  // who did not listen any more at the last look; -1: nobody
};

TcpConnections Meeting::Hold() {
  if (!CanProve() || !Meet()) return {.reason = failure_, .own = own_failure_};
  return {.connections = std::move(connections_)};
}

// What this build lacks no other try brings.
bool Meeting::CanProve() {
  const bool proves = meeting_.secret.empty() || crypto::HasMac();
  if (proves && (!meeting_.encrypted || HasTls())) return true;
  own_failure_ = true;
  return Fail(meeting_.rank,
              "this build of the worker has no OpenSSL, and the group's members have to prove who "
              "they are");
}

bool Meeting::Meet() {
  Endpoint own;
  std::string why;
  const Descriptor listener = Listen(meeting_.address, own, why);
  if (!listener.open()) {
    return Fail(meeting_.rank, "address '" + meeting_.address +
                                   "': neither an interface nor an address of this host: " + why);
  }
  if (!ReadEndpoints(own)) return false;
  const Deadline deadline = DeadlineAfter(meeting_.timeout);
  look_at_ = DeadlineAfter(kBetweenLooks);
  Newcomers newcomers(party_, own.word, {});
  const bool met = ConnectToLower(deadline) && Await(listener, newcomers, deadline);
  const std::string told = newcomers.Told();
  if (meeting_.tell && !told.empty()) meeting_.tell(told);
  return met;
}

bool Meeting::ReadEndpoints(const Endpoint& own) {
  const std::vector<std::string> texts = meeting_.exchange(EncodeEndpoint(own));
  endpoints_.resize(static_cast<std::size_t>(meeting_.size));
  if (texts.size() != endpoints_.size()) {
    return Fail(meeting_.rank, "the group was given up before it was connected");
  }
  for (std::size_t peer = 0; peer < texts.size(); ++peer) {
    if (!DecodeEndpoint(texts[peer], endpoints_[peer])) {
      return Fail(static_cast<int>(peer),
                  "its " + std::to_string(texts[peer].size()) + " bytes are no endpoint");
    }
  }
  endpoints_[static_cast<std::size_t>(meeting_.rank)] = own;
  return true;
}

// The system accepts connections by itself, so that everybody can connect before anybody accepts.
// The first word is said at once, and nobody waits here for an answer.
bool Meeting::ConnectToLower(Deadline deadline) {
  for (int peer = 0; peer < meeting_.rank; ++peer) {
    const Endpoint& endpoint = endpoints_[static_cast<std::size_t>(peer)];
    for (std::size_t lane = 0; lane < lanes_; ++lane) {
      std::string why;
      Descriptor connection = ConnectTo(endpoint, deadline, why);
      if (!connection.open()) return Fail(peer, why);
      auto introduction =
          Introduction::Open(std::move(connection), party_, static_cast<std::uint32_t>(peer),
                             static_cast<std::uint32_t>(lane), endpoint.word);
      if (introduction == nullptr) return Fail(meeting_.rank, "this host has no random bytes");
      opened_.push_back({.peer = peer, .lane = lane, .introduction = std::move(introduction)});
      if (!Advance(opened_.back())) return false;
      if (opened_.back().introduction == nullptr) opened_.pop_back();  // a quick answer
    }
  }
  return true;
}

bool Meeting::Advance(Opened& one) {
  switch (one.introduction->Advance()) {
    case Introduction::State::kOn:
      return true;
    case Introduction::State::kRefused: {
      const std::string& why = one.introduction->refusal();
      return Fail(one.peer, why.empty() ? "closed the connection" : why);
    }
    case Introduction::State::kDone:
      connections_[IndexOf(one.peer, one.lane)] = one.introduction->Take();
      one.introduction = nullptr;
      return true;
  }
  return true;
}

bool Meeting::AdvanceOpened() {
  if (!std::ranges::all_of(opened_, [this](Opened& one) { return Advance(one); })) return false;
  std::erase_if(opened_, [](const Opened& one) { return one.introduction == nullptr; });
  return true;
}

// A member from that rank on that is still to come; this one: nobody is.
int Meeting::FirstMissing(int from) const {
  for (int peer = from; peer < meeting_.size; ++peer) {
    if (peer == meeting_.rank) continue;
    for (std::size_t lane = 0; lane < lanes_; ++lane) {
      if (!connections_[IndexOf(peer, lane)].open()) return peer;
    }
  }
  return meeting_.rank;
}

// Until all that this member has opened are answered, and all others have come.
bool Meeting::Await(const Descriptor& listener, Newcomers& newcomers, Deadline deadline) {
  while (FirstMissing() != meeting_.rank) {
    if (!Poll(listener, newcomers, deadline)) return false;
    std::string why;
    if (!newcomers.Accept(listener, why)) {
      own_failure_ = true;
      return Fail(meeting_.rank, "no connection can be accepted: " + why);
    }
    Take(newcomers);
    if (!AdvanceOpened()) return false;
    if (FirstMissing() != meeting_.rank && !MayWait(deadline)) return false;
  }
  return true;
}

bool Meeting::Poll(const Descriptor& listener, const Newcomers& newcomers, Deadline deadline) {
  std::vector<pollfd> wanted = {{.fd = listener.get(), .events = POLLIN, .revents = 0}};
  for (const Opened& one : opened_) {
    const int events = one.introduction->wants_write() ? POLLOUT : POLLIN;
    wanted.push_back(
        {.fd = one.introduction->descriptor(), .events = static_cast<short>(events), .revents = 0});
  }
  newcomers.Want(wanted);
  const int pause = std::min(MillisecondsUntil(deadline), kAskMilliseconds);
  if (poll(wanted.data(), wanted.size(), pause) >= 0 || errno == EINTR) return true;
  return Fail(meeting_.rank, std::strerror(errno));
}

void Meeting::Take(Newcomers& newcomers) {
  for (Newcomers::Arrived& arrived : newcomers.Hear()) {
    MeshConnection& connection =
        connections_[IndexOf(static_cast<int>(arrived.rank), arrived.lane)];
    if (connection.open()) {
      newcomers.RefuseSecond(arrived.rank);
    } else {
      connection = std::move(arrived.connection);
    }
  }
}

// A member listens until all have come. Who does not any more, and has not come, has died or given
// up; but its connection may be on its way still, so it takes two looks.
bool Meeting::MayWait(Deadline deadline) {
  if (MillisecondsUntil(deadline) == 0) {
    const int missing = FirstMissing();
    return Fail(missing,
                missing < meeting_.rank ? "did not answer in time" : "did not connect in time");
  }
  const std::string given_up = meeting_.give_up ? meeting_.give_up() : "";
  if (!given_up.empty()) return Fail(meeting_.rank, given_up);
  if (MillisecondsUntil(look_at_) > 0) return true;
  look_at_ = DeadlineAfter(kBetweenLooks);
  // Of lower ranks, their connections tell.
  const int missing = FirstMissing(meeting_.rank + 1);
  if (missing == meeting_.rank) return true;
  const bool refuses = Refuses(endpoints_[static_cast<std::size_t>(missing)], DeadlineAfter(kLook));
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
