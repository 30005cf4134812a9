// Connections that were accepted and have not shown yet whose they are.

#pragma once

#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "agent/collective/introduction.h"
#include "agent/collective/tcp_socket.h"
#include "base/descriptor.h"
#include "base/time.h"

namespace tactus::collective {

// Bounded in number and in time, and so that no stranger keeps a member out: a member that has said
// its first word, which comes with its connection, is not counted with strangers any more, and
// where too many have said nothing it is the host with most of them whose oldest one goes.
class Newcomers {
 public:
  struct Limits {
    std::size_t strangers = 256;     // connections whose end has proven nothing yet, >= 1
    std::size_t at_once = 64;        // accepted between two turns to hear them, >= 1
    std::size_t alike = 4;           // whose first word is that of one rank and lane, >= 1
    Duration patience = Seconds(5);  // for a member's first word
  };

  // `party` outlives it. word: of this member's endpoint.
  Newcomers(const Party& party, std::uint64_t word, const Limits& limits)
      : party_(party), word_(word), limits_(limits) {}

  // Takes connections that wait at the listener. False: this process can take none; `why` says why.
  bool Accept(const Descriptor& listener, std::string& why);

  // A member that is through.
  struct Arrived {
    std::uint32_t rank = 0;
    std::uint32_t lane = 0;
    MeshConnection connection = {};
  };
  // Goes on with all of them without waiting.
  std::vector<Arrived> Hear();

  // Appends what poll(2) is to wait for.
  void Want(std::vector<pollfd>& wanted) const;

  // Counts one that cannot be a member, as there is one of the name already.
  void RefuseSecond(std::uint32_t rank);

  // One line on all that were refused, for a person; empty: none were. Who came and left without a
  // word is not counted.
  std::string Told() const;

 private:
  struct Newcomer {
    std::unique_ptr<Introduction> introduction;
    std::string host{};  // from where it came, as a number
    Deadline deadline{};
  };

  void MakeRoom();
  void Refuse(const std::string& host, const std::string& why);

  const Party& party_;
  const std::uint64_t word_;
  const Limits limits_;
  std::vector<Newcomer> all_;  // oldest first
  std::size_t refused_ = 0;
  std::string first_refusal_;
};

}  // namespace tactus::collective
