#include "agent/daemon/link_probe.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <deque>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/collective/tcp_socket.h"
#include "base/rng.h"
#include "crypto/mac.h"
#include "runtime/now.h"
#include "runtime/utf8.h"

namespace tactus::agent {
namespace {

using collective::Deadline;
using collective::Flow;
using collective::Moved;

// What is said: a proof that the dialler knows the secret, and the listener's back; so many octets
// there and back; then whatever there is, until its sender sends no more, and its length back, 8
// octets, the lowest first. The endpoint comes from the other node: without the listener's proof, a
// node that lies would aim the octets at anybody.
constexpr std::string_view kDials = "tactus link dials";
constexpr std::string_view kListens = "tactus link listens";
constexpr int kRoundTrips = 20;
constexpr std::size_t kStrangersMax = 16;  // that have shown nothing; the first of more goes
constexpr std::size_t kSentAtOnce = 256 << 10;
constexpr int kLookMs = 50;  // for an end that is asked for
constexpr std::size_t kErrorBytesMax = 255;

absl::Status Late() { return absl::DeadlineExceededError("nothing came for too long"); }

absl::Status Ends() { return absl::CancelledError("the agent ends"); }

// Until the descriptor is ready for it. Errors: DeadlineExceeded, Cancelled.
absl::Status WaitFor(const Descriptor& descriptor, short events, Deadline deadline,
                     const std::atomic<bool>& stop) {
  while (!stop) {
    const int left = collective::MillisecondsUntil(deadline);
    pollfd waits{.fd = descriptor.get(), .events = events, .revents = 0};
    if (::poll(&waits, 1, std::min(left, kLookMs)) > 0) return absl::OkStatus();
    if (left == 0) return Late();
  }
  return Ends();
}

// One end of a connection, to and from which whole pieces go.
class Line {
 public:
  Line(Descriptor connection, Deadline deadline, const std::atomic<bool>& stop)
      : connection_(std::move(connection)), deadline_(deadline), stop_(stop) {}

  absl::Status Write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const absl::StatusOr<std::size_t> written = WriteSome(bytes);
      if (!written.ok()) return written.status();
      bytes = bytes.subspan(*written);
    }
    return absl::OkStatus();
  }

  // Some of it, at least one octet.
  absl::StatusOr<std::size_t> WriteSome(std::span<const std::byte> bytes) {
    return Move(POLLOUT, [&] { return collective::WriteSome(connection_, bytes, {}); });
  }

  absl::Status Read(std::span<std::byte> bytes) {
    while (!bytes.empty()) {
      const absl::StatusOr<std::size_t> read = ReadSome(bytes);
      if (!read.ok()) return read.status();
      if (*read == 0) return absl::UnavailableError("the other end closed the connection");
      bytes = bytes.subspan(*read);
    }
    return absl::OkStatus();
  }

  // 0: the other end sends no more.
  absl::StatusOr<std::size_t> ReadSome(std::span<std::byte> bytes) {
    return Move(POLLIN, [&] { return collective::ReadSome(connection_, bytes, {}); });
  }

  void EndWriting() const { ::shutdown(connection_.get(), SHUT_WR); }

 private:
  template <typename Try>
  absl::StatusOr<std::size_t> Move(short events, const Try& attempt) {
    while (true) {
      const Moved moved = attempt();
      if (moved.flow == Flow::kMoved) return moved.bytes;
      if (moved.flow == Flow::kClosed) return std::size_t{0};
      if (moved.flow == Flow::kBroken) {
        return absl::UnavailableError("the connection broke: " +
                                      std::string(std::strerror(moved.error)));
      }
      const absl::Status waited = WaitFor(connection_, events, deadline_, stop_);
      if (!waited.ok()) return waited;
    }
  }

  const Descriptor connection_;
  const Deadline deadline_;
  const std::atomic<bool>& stop_;
};

// That who plays the part knows the secret, which itself is not said. A secret is of one probe:
// what is heard of one is worth nothing in another.
crypto::Mac ProofOf(std::string_view part, const std::string& secret) {
  return crypto::MacOf(secret, std::as_bytes(std::span(part)));
}

// One that has connected, and may know the secret.
struct Stranger {
  Descriptor connection{};
  crypto::Mac said{};
  std::size_t size = 0;  // of what was said
};

enum class Heard { kLittle, kAll, kNoMore };

Heard Hear(Stranger& stranger) {
  const auto rest = std::span(stranger.said).subspan(stranger.size);
  const Moved moved = collective::ReadSome(stranger.connection, rest, {});
  if (moved.flow == Flow::kBlocked) return Heard::kLittle;
  if (moved.flow != Flow::kMoved) return Heard::kNoMore;
  stranger.size += moved.bytes;
  return stranger.size == stranger.said.size() ? Heard::kAll : Heard::kLittle;
}

// The connection of the first that shows the secret, however many come and say nothing. Errors:
// DeadlineExceeded, Cancelled; Unavailable, no connection can be taken.
absl::StatusOr<Descriptor> FirstThatKnows(const Descriptor& listener, const crypto::Mac& proof,
                                          Deadline deadline, const std::atomic<bool>& stop) {
  std::deque<Stranger> strangers;
  std::vector<pollfd> waits;
  while (!stop) {
    waits.assign(1, {.fd = listener.get(), .events = POLLIN, .revents = 0});
    for (const Stranger& stranger : strangers) {
      waits.push_back({.fd = stranger.connection.get(), .events = POLLIN, .revents = 0});
    }
    const int left = collective::MillisecondsUntil(deadline);
    const int ready = ::poll(waits.data(), waits.size(), std::min(left, kLookMs));
    if (left == 0 && ready <= 0) return Late();
    if (ready <= 0) continue;
    for (std::size_t i = strangers.size(); i > 0; --i) {  // from the last, as they are taken out
      if (waits[i].revents == 0) continue;
      Stranger& stranger = strangers[i - 1];
      const Heard heard = Hear(stranger);
      if (heard == Heard::kLittle) continue;
      if (heard == Heard::kAll && crypto::SameMac(stranger.said, proof)) {
        return std::move(stranger.connection);
      }
      strangers.erase(strangers.begin() + static_cast<std::ptrdiff_t>(i - 1));
    }
    if (waits[0].revents == 0) continue;
    std::string why;
    Descriptor connection = collective::Accept(listener, why);
    if (!connection.open() && !why.empty()) return absl::UnavailableError(why);
    if (!connection.open()) continue;
    if (strangers.size() == kStrangersMax) strangers.pop_front();
    strangers.push_back({.connection = std::move(connection)});
  }
  return Ends();
}

std::array<std::byte, 8> LengthBytes(std::uint64_t length) {
  std::array<std::byte, 8> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = std::byte(length >> (8 * i));
  return bytes;
}

std::uint64_t LengthOf(const std::array<std::byte, 8>& bytes) {
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    length |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
  }
  return length;
}

// Of one that has shown the secret.
absl::Status TakeAll(Line& line, const crypto::Mac& proof) {
  std::array<std::byte, 1> octet{};
  absl::Status status = line.Write(proof);
  for (int i = 0; i < kRoundTrips && status.ok(); ++i) {
    status = line.Read(octet);
    if (status.ok()) status = line.Write(octet);
  }
  std::vector<std::byte> chunk(kSentAtOnce);
  std::uint64_t length = 0;
  while (status.ok()) {
    const absl::StatusOr<std::size_t> read = line.ReadSome(chunk);
    if (!read.ok()) return read.status();
    if (*read == 0) return line.Write(LengthBytes(length));
    length += *read;
  }
  return status;
}

absl::StatusOr<Duration> ShortestRoundTrip(Line& line) {
  Duration shortest = Duration::max();
  std::array<std::byte, 1> octet{};
  for (int i = 0; i < kRoundTrips; ++i) {
    const Instant begun = runtime::Now();
    absl::Status status = line.Write(octet);
    if (status.ok()) status = line.Read(octet);
    if (!status.ok()) return status;
    shortest = std::min(shortest, runtime::Now() - begun);
  }
  return shortest;
}

// Bytes that no link on the way makes fewer of.
std::vector<std::byte> Noise() {
  std::vector<std::byte> chunk(kSentAtOnce);
  Rng rng(1);
  for (std::byte& octet : chunk) octet = std::byte(rng.Next());
  return chunk;
}

absl::StatusOr<LinkFigures> Measure(Line& line, const LinkBounds& bounds) {
  const absl::StatusOr<Duration> round_trip = ShortestRoundTrip(line);
  if (!round_trip.ok()) return round_trip.status();
  const std::vector<std::byte> chunk = Noise();
  const Instant begun = runtime::Now();
  std::uint64_t sent = 0;
  while (sent < bounds.bytes_max && runtime::Now() - begun < bounds.time_max) {
    const std::uint64_t left = std::min<std::uint64_t>(chunk.size(), bounds.bytes_max - sent);
    const absl::StatusOr<std::size_t> written =
        line.WriteSome(std::span(chunk).first(static_cast<std::size_t>(left)));
    if (!written.ok()) return written.status();
    if (*written == 0) return absl::UnavailableError("the other end closed the connection");
    sent += *written;
  }
  line.EndWriting();
  std::array<std::byte, 8> length{};
  const absl::Status answered = line.Read(length);
  if (!answered.ok()) return answered;
  if (LengthOf(length) != sent) return absl::UnavailableError("not all that was sent arrived");
  // The answer's own way is none of it.
  const Duration taken = std::max(runtime::Now() - begun - *round_trip / 2, Duration(1));
  return LinkFigures{.round_trip = *round_trip,
                     .bytes_per_second = static_cast<double>(sent) / ToSeconds(taken)};
}

LinkBounds BoundsOf(const tactus::agent::v1::ProbeLink& order) {
  LinkBounds bounds;
  if (order.bytes_max() > 0) bounds.bytes_max = std::min(bounds.bytes_max, order.bytes_max());
  const Duration asked =
      std::chrono::seconds(order.time_max().seconds()) + Duration(order.time_max().nanos());
  if (asked > Duration(0)) bounds.time_max = std::min(bounds.time_max, asked);
  return bounds;
}

std::string ReasonOf(const absl::Status& status) {
  return runtime::ToUtf8(std::string(status.message()).substr(0, kErrorBytesMax));
}

}  // namespace

absl::StatusOr<LinkListener> LinkListener::Open(const std::string& address) {
  collective::Endpoint endpoint;
  std::string why;
  Descriptor listener = collective::Listen(address, endpoint, why);
  if (!listener.open()) return absl::UnavailableError("address " + address + ": " + why);
  return LinkListener(std::move(listener), collective::EncodeEndpoint(endpoint));
}

absl::Status LinkListener::Serve(const std::string& secret, const LinkBounds& bounds,
                                 const std::atomic<bool>& stop) const {
  absl::StatusOr<Descriptor> connection = FirstThatKnows(
      listener_, ProofOf(kDials, secret), collective::DeadlineAfter(bounds.patience), stop);
  if (!connection.ok()) return connection.status();
  Line line(*std::move(connection), collective::DeadlineAfter(bounds.time_max + bounds.patience),
            stop);
  return TakeAll(line, ProofOf(kListens, secret));
}

absl::StatusOr<LinkFigures> MeasureLink(const std::string& endpoint, const std::string& secret,
                                        const LinkBounds& bounds, const std::atomic<bool>& stop) {
  collective::Endpoint to;
  if (!collective::DecodeEndpoint(endpoint, to)) {
    return absl::InvalidArgumentError("found an endpoint that is none");
  }
  std::string why;
  Descriptor connection =
      collective::ConnectTo(to, collective::DeadlineAfter(bounds.patience), why);
  if (!connection.open()) return absl::UnavailableError(why);
  Line line(std::move(connection), collective::DeadlineAfter(bounds.time_max + bounds.patience),
            stop);
  absl::Status status = line.Write(ProofOf(kDials, secret));
  crypto::Mac proof{};
  if (status.ok()) status = line.Read(proof);
  const bool knows = status.ok() && crypto::SameMac(proof, ProofOf(kListens, secret));
  if (absl::IsUnavailable(status) || (status.ok() && !knows)) {
    return absl::PermissionDeniedError("it does not know the secret");
  }
  if (!status.ok()) return status;
  return Measure(line, bounds);
}

LinkProbes::~LinkProbes() {
  stop_ = true;
  thread_.Stop();
}

void LinkProbes::Order(const tactus::agent::v1::ProbeLink& order) {
  if (++waiting_ > kWaitingMax) {
    --waiting_;
    return;
  }
  thread_.Post([this, order] {
    if (!stop_) {
      if (order.endpoint().empty()) {
        Listen(order);
      } else {
        Dial(order);
      }
    }
    --waiting_;
  });
}

void LinkProbes::Listen(const tactus::agent::v1::ProbeLink& order) {
  tactus::agent::v1::LinkProbed answer;
  answer.set_probe_id(order.probe_id());
  const absl::StatusOr<LinkListener> listener = LinkListener::Open(address_);
  if (!listener.ok()) {
    answer.set_error(ReasonOf(listener.status()));
    return said_(std::move(answer));
  }
  answer.set_endpoint(listener->endpoint());
  said_(std::move(answer));
  // What goes wrong from now on, who dials says.
  listener->Serve(order.secret(), BoundsOf(order), stop_).IgnoreError();
}

void LinkProbes::Dial(const tactus::agent::v1::ProbeLink& order) {
  tactus::agent::v1::LinkProbed answer;
  answer.set_probe_id(order.probe_id());
  const absl::StatusOr<LinkFigures> figures =
      MeasureLink(order.endpoint(), order.secret(), BoundsOf(order), stop_);
  if (figures.ok()) {
    const auto nanoseconds = figures->round_trip.count();
    answer.mutable_round_trip()->set_seconds(nanoseconds / 1'000'000'000);
    answer.mutable_round_trip()->set_nanos(static_cast<std::int32_t>(nanoseconds % 1'000'000'000));
    answer.set_bytes_per_second(figures->bytes_per_second);
  } else {
    answer.set_error(ReasonOf(figures.status()));
  }
  said_(std::move(answer));
}

}  // namespace tactus::agent
