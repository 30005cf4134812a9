// What one caller may have at once, so that nobody takes what others need.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "base/time.h"
#include "coordinator/access/principal.h"
#include "threads/mutex.h"

namespace tactus::access {

// Of one caller: a user or a node where certificates say who calls, else a host.
struct BoundsOptions {
  std::size_t connections_per_host = 1024;  // >= 1; of any host, whoever is there
  std::size_t calls_per_user = 2048;        // >= 1; streams included, but for agents' that are open
  std::size_t nodes_per_host = 1024;        // >= 1; a certificate names its one node
  std::uint64_t upload_bytes_per_user = std::uint64_t{256} << 30;  // >= 1; kept or on their way
  Duration first_message = Seconds(10);  // of a stream whose caller speaks first; > 0
};

// Which bound it is that refuses.
enum class Bound { kConnections, kCalls, kFirstMessage, kNodes, kUploadBytes, kDisk };

// "calls": what the metric tactus_refused_total has.
const char* NameOf(Bound bound);

// What a call is refused with: ResourceExhausted, of the first message DeadlineExceeded, with the
// bound's reason and a time to try again.
absl::Status Beyond(Bound bound, const std::string& message);
// Nothing: it is no refusal by a bound.
std::optional<Bound> BoundOf(const absl::Status& status);

// Whose an address is: itself, and of IPv6 the network of 64 bits, which one host may have all of:
// "2001:db8:1:2::/64". What is no address is itself.
std::string HostOfAddress(const std::string& address);
// The same of a peer as gRPC writes it: "10.0.0.1" of "ipv4:10.0.0.1:5000".
std::string HostOfPeer(const std::string& peer);

// Whom bounds count: "user/alice", "node/gpu-7", or "host/10.0.0.1" of who is not asked, or has
// no certificate yet. Empty: the coordinator's own page, which has bounds of its own.
std::string BoundedName(const Principal& who, const std::string& peer);

// How many calls each caller has under way. From any thread.
class CallCounts {
 public:
  explicit CallCounts(std::size_t per_caller) : per_caller_(per_caller) {}

  // A call that is counted, until this is destroyed. Outlived by the counts.
  class Place {
   public:
    Place(Place&& other) noexcept
        : counts_(std::exchange(other.counts_, nullptr)), caller_(std::move(other.caller_)) {}
    Place& operator=(Place&& other) noexcept {
      std::swap(counts_, other.counts_);
      std::swap(caller_, other.caller_);
      return *this;
    }
    ~Place();

   private:
    friend class CallCounts;
    Place(CallCounts& counts, std::string caller) : counts_(&counts), caller_(std::move(caller)) {}
    CallCounts* counts_;  // null: moved from
    std::string caller_;
  };

  // Nothing: the caller has as many as it may.
  std::optional<Place> Enter(const std::string& caller);

  std::size_t per_caller() const { return per_caller_; }

 private:
  void Leave(const std::string& caller);

  const std::size_t per_caller_;
  threads::Mutex mutex_;  // calls come in and go out on gRPC's threads
  std::map<std::string, std::size_t> calls_ ABSL_GUARDED_BY(mutex_);  // no zeros
};

}  // namespace tactus::access
