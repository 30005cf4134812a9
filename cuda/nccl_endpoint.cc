#include "cuda/nccl_endpoint.h"

#include <charconv>
#include <vector>

namespace tactus::cuda::nccl {
namespace {

constexpr std::string_view kName = "nccl1";  // the form of the text, not NCCL's version
constexpr std::string_view kNoId = "-";
constexpr std::string_view kDigits = "0123456789abcdef";
constexpr std::size_t kFields = 5;

std::string InHex(const UniqueId& id) {
  std::string hex;
  for (const std::byte byte : id.bytes) {
    hex += kDigits[std::to_integer<std::size_t>(byte >> 4)];
    hex += kDigits[std::to_integer<std::size_t>(byte & std::byte{15})];
  }
  return hex;
}

std::optional<UniqueId> FromHex(std::string_view hex) {
  UniqueId id;
  if (hex.size() != 2 * id.bytes.size()) return std::nullopt;
  for (std::size_t i = 0; i < id.bytes.size(); ++i) {
    const std::size_t high = kDigits.find(hex[2 * i]);
    const std::size_t low = kDigits.find(hex[2 * i + 1]);
    if (high == kDigits.npos || low == kDigits.npos) return std::nullopt;
    id.bytes[i] = static_cast<std::byte>(high * 16 + low);
  }
  return id;
}

template <typename Number>
std::optional<Number> ToNumber(std::string_view text) {
  Number number = 0;
  const char* const end = text.data() + text.size();
  const std::from_chars_result result = std::from_chars(text.data(), end, number);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return number;
}

std::vector<std::string_view> Split(std::string_view text) {
  std::vector<std::string_view> fields;
  // One more than there should be, which shows that there are too many.
  while (fields.size() <= kFields) {
    const std::size_t end = text.find(':');
    fields.push_back(text.substr(0, end));
    if (end == text.npos) break;
    text.remove_prefix(end + 1);
  }
  return fields;
}

std::optional<Endpoint> Parse(std::string_view text) {
  const std::vector<std::string_view> fields = Split(text);
  if (fields.size() != kFields || fields[0] != kName) return std::nullopt;
  const auto generation = ToNumber<std::uint64_t>(fields[1]);
  const auto rank = ToNumber<int>(fields[2]);
  const auto version = ToNumber<int>(fields[3]);
  if (!generation || !rank || !version) return std::nullopt;
  Endpoint endpoint{.generation = *generation, .rank = *rank, .nccl_version = *version};
  if (fields[4] == kNoId) return endpoint;
  endpoint.id = FromHex(fields[4]);
  if (!endpoint.id) return std::nullopt;
  return endpoint;
}

std::string Differs(const std::string& what, std::uint64_t is, std::uint64_t expected) {
  return what + " " + std::to_string(is) + ", expected " + std::to_string(expected);
}

}  // namespace

std::string ToText(const Endpoint& endpoint) {
  std::string text(kName);
  text += ':' + std::to_string(endpoint.generation);
  text += ':' + std::to_string(endpoint.rank);
  text += ':' + std::to_string(endpoint.nccl_version);
  text += ':' + (endpoint.id ? InHex(*endpoint.id) : std::string(kNoId));
  return text;
}

ParsedEndpoint EndpointFromText(std::string_view text, const Expected& expected) {
  const std::string who = "endpoint of rank " + std::to_string(expected.rank) + ": ";
  std::optional<Endpoint> endpoint = Parse(text);
  if (!endpoint) return {.reason = who + "not an NCCL endpoint"};
  if (endpoint->generation != expected.generation) {
    return {.reason = who + Differs("generation", endpoint->generation, expected.generation)};
  }
  if (endpoint->rank != expected.rank) {
    return {.reason = who + "it is that of rank " + std::to_string(endpoint->rank)};
  }
  if (endpoint->nccl_version != expected.nccl_version) {
    return {.reason = who + Differs("NCCL", static_cast<std::uint64_t>(endpoint->nccl_version),
                                    static_cast<std::uint64_t>(expected.nccl_version))};
  }
  if (expected.rank == 0 && !endpoint->id) return {.reason = who + "no unique id"};
  return {.endpoint = std::move(endpoint)};
}

}  // namespace tactus::cuda::nccl
