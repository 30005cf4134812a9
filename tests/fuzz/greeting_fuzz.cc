// What whoever connects to a worker, or answers one, may say first: nobody is taken for a member
// without the group's secret, and no bytes do harm. The first byte chooses the end and whether it
// is encrypted; of the rest, what is a first word may be signed, so that what comes behind it is
// reached.

#include <sys/socket.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "agent/collective/greeting.h"
#include "agent/collective/introduction.h"
#include "base/descriptor.h"
#include "tests/fuzz/require.h"

namespace tactus::fuzz {
namespace {

using collective::Introduction;

constexpr std::uint64_t kWord = 7;
constexpr std::uint8_t kOpens = 1;
constexpr std::uint8_t kEncrypted = 2;
constexpr std::uint8_t kSigned = 4;
constexpr std::uint8_t kInPieces = 8;

collective::Party PartyOf(std::uint32_t rank, bool encrypted) {
  return {.group = {.secret = "nobody knows it", .generation = 3},
          .encrypted = encrypted,
          .rank = rank,
          .size = 3,
          .lanes = 2};
}

void CheckParsers(std::span<const std::byte> bytes) {
  const std::span<const std::byte> first = bytes.first(std::min(bytes.size(), std::size_t{200}));
  if (const auto hello = collective::DecodeHello(first)) {
    Require(std::ranges::equal(collective::Encode(*hello), first), "a hello has one form");
    const collective::Greeting greeting(PartyOf(1, false).group, kWord);
    Require(!greeting.IsTrue(*hello), "nobody signs without the secret");
  }
  if (const auto answer = collective::DecodeAnswer(first)) {
    Require(std::ranges::equal(collective::Encode(*answer), first), "an answer has one form");
  }
}

// Signs what is a hello but for its proof.
std::vector<std::byte> Sign(std::span<const std::byte> bytes) {
  std::vector<std::byte> all(bytes.begin(), bytes.end());
  if (all.size() < collective::kHelloBytes) return all;
  const std::span<std::byte> first = std::span(all).first(collective::kHelloBytes);
  std::optional<collective::Hello> hello = collective::DecodeHello(first);
  if (!hello) return all;
  collective::Greeting(PartyOf(1, false).group, kWord).Sign(*hello);
  std::ranges::copy(collective::Encode(*hello), first.begin());
  return all;
}

void Run(std::uint8_t how, std::span<const std::byte> bytes) {
  const bool encrypted = (how & kEncrypted) != 0;
  const collective::Party party = PartyOf(1, encrypted);
  int ends[2] = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) != 0) return;
  const Descriptor stranger(ends[0]);
  const std::unique_ptr<Introduction> introduction =
      (how & kOpens) != 0 ? Introduction::Open(Descriptor(ends[1]), party, 0, 1, kWord)
                          : Introduction::Accept(Descriptor(ends[1]), party, kWord);
  const std::vector<std::byte> said =
      (how & kSigned) != 0 ? Sign(bytes) : std::vector<std::byte>(bytes.begin(), bytes.end());
  const std::size_t piece = (how & kInPieces) != 0 ? 5 : said.size();
  std::span<const std::byte> left = said;
  do {
    const auto next = left.first(std::min(piece, left.size()));
    left = left.subspan(next.size());
    if (!next.empty()) collective::WriteSome(stranger, next, {});
    Require(introduction->Advance() != Introduction::State::kDone, "a stranger is no member");
  } while (!left.empty());
}

}  // namespace
}  // namespace tactus::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return -1;
  const auto bytes = std::as_bytes(std::span(data, size)).subspan(1);
  tactus::fuzz::CheckParsers(bytes);
  tactus::fuzz::Run(data[0], bytes);
  return 0;
}
