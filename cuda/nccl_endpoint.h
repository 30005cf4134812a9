// What the members of an NCCL group tell one another before they meet, as text for the rendezvous.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tactus::cuda::nccl {

// NCCL's name of a group to be: made by rank 0, and known to all before they can meet. Good for one
// meeting.
struct UniqueId {
  std::array<std::byte, 128> bytes{};

  bool operator==(const UniqueId&) const = default;
};

// A member's part. The generation is that of the group's membership, so that what an older group
// left behind cannot bring members of two groups together.
struct Endpoint {
  std::uint64_t generation = 0;
  int rank = 0;                     // in [0, size)
  int nccl_version = 0;             // as of Version()
  std::optional<UniqueId> id = {};  // rank 0's alone
};

// One line of ASCII without spaces, less than 400 bytes.
std::string ToText(const Endpoint& endpoint);

// What was expected of an endpoint.
struct Expected {
  std::uint64_t generation = 0;
  int rank = 0;
  int nccl_version = 0;
};

// An endpoint, or the reason why the text is refused.
struct ParsedEndpoint {
  std::optional<Endpoint> endpoint = {};
  std::string reason = "";
};

// Refused: what is no such text, an endpoint of another generation or rank, another version of
// NCCL, which does not talk to this one, and rank 0's without a unique id.
ParsedEndpoint EndpointFromText(std::string_view text, const Expected& expected);

}  // namespace tactus::cuda::nccl
