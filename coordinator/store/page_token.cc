#include "coordinator/store/page_token.h"

#include <optional>

#include "absl/strings/escaping.h"
#include "runtime/status.h"

namespace tactus::store {
namespace {

constexpr char kVersion = 1;
constexpr std::size_t kWordBytes = 8;
constexpr std::size_t kFixedBytes = 1 + 5 * kWordBytes;  // version, server, query, position, check
constexpr std::size_t kTokenMax = 4096;

// FNV-1a: against mistakes, not against forgery.
std::uint64_t HashOf(std::string_view bytes) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char byte : bytes) {
    hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3ULL;
  }
  return hash;
}

void AppendWord(std::string& bytes, std::uint64_t word) {
  for (std::size_t i = 0; i < kWordBytes; ++i) {
    bytes += static_cast<char>((word >> (8 * i)) & 0xff);
  }
}

std::uint64_t WordAt(std::string_view bytes, std::size_t offset) {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < kWordBytes; ++i) {
    word |= std::uint64_t{static_cast<unsigned char>(bytes[offset + i])} << (8 * i);
  }
  return word;
}

std::optional<std::string> FromHex(std::string_view hex) {
  if (hex.size() % 2 != 0 || hex.size() > kTokenMax ||
      hex.find_first_not_of("0123456789abcdef") != hex.npos) {
    return std::nullopt;
  }
  return absl::HexStringToBytes(std::string(hex));
}

absl::Status Refused(const char* why) {
  return runtime::InvalidFields(
      {{.field = "page_token",
        .description = std::string(why) +
                       "; allowed are none and the next_page_token of the former page of the same "
                       "listing"}});
}

}  // namespace

std::string EncodePageToken(const Listing& listing, const PagePosition& position) {
  std::string bytes(1, kVersion);
  AppendWord(bytes, HashOf(listing.server));
  AppendWord(bytes, HashOf(listing.query));
  AppendWord(bytes, static_cast<std::uint64_t>(position.number));
  AppendWord(bytes, static_cast<std::uint64_t>(position.second));
  bytes += position.text;
  AppendWord(bytes, HashOf(bytes));
  return absl::BytesToHexString(bytes);
}

absl::StatusOr<PagePosition> DecodePageToken(const Listing& listing, std::string_view token) {
  const std::optional<std::string> bytes = FromHex(token);
  if (!bytes || bytes->size() < kFixedBytes || bytes->front() != kVersion) {
    return Refused("not a token of a listing");
  }
  const std::size_t checked = bytes->size() - kWordBytes;
  if (WordAt(*bytes, checked) != HashOf(std::string_view(*bytes).substr(0, checked))) {
    return Refused("not a whole token of a listing");
  }
  if (WordAt(*bytes, 1) != HashOf(listing.server)) return Refused("of another server");
  if (WordAt(*bytes, 1 + kWordBytes) != HashOf(listing.query)) {
    return Refused("of another listing, filter or order");
  }
  return PagePosition{.number = static_cast<std::int64_t>(WordAt(*bytes, 1 + 2 * kWordBytes)),
                      .second = static_cast<std::int64_t>(WordAt(*bytes, 1 + 3 * kWordBytes)),
                      .text = bytes->substr(1 + 4 * kWordBytes, bytes->size() - kFixedBytes)};
}

}  // namespace tactus::store
