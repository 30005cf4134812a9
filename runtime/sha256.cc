#include "runtime/sha256.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <vector>

#include "absl/strings/escaping.h"
#include "base/check.h"
#include "base/descriptor.h"
#include "runtime/process.h"

namespace tactus::runtime {
namespace {

constexpr std::size_t kDigits = 64;
constexpr std::size_t kPieceBytes = 1u << 20;

}  // namespace

struct Sha256::State {
  // libcrypto fails here only without memory.
  State() : context(EVP_MD_CTX_new()) {
    TACTUS_CHECK(context != nullptr);
    TACTUS_CHECK(EVP_DigestInit_ex(context, EVP_sha256(), nullptr) == 1);
  }
  ~State() { EVP_MD_CTX_free(context); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  EVP_MD_CTX* context;
};

Sha256::Sha256() : state_(std::make_unique<State>()) {}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&& other) noexcept = default;
Sha256& Sha256::operator=(Sha256&& other) noexcept = default;

void Sha256::Update(std::string_view bytes) {
  TACTUS_CHECK(state_ != nullptr);
  TACTUS_CHECK(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) == 1);
}

std::string Sha256::Finish() {
  TACTUS_CHECK(state_ != nullptr);
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  TACTUS_CHECK(EVP_DigestFinal_ex(state_->context, digest.data(), &size) == 1);
  state_.reset();
  return absl::BytesToHexString({reinterpret_cast<const char*>(digest.data()), size});
}

std::string Sha256Of(std::string_view bytes) {
  Sha256 hash;
  hash.Update(bytes);
  return hash.Finish();
}

bool IsSha256(std::string_view text) {
  return text.size() == kDigits && std::ranges::all_of(text, [](const char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

absl::StatusOr<std::string> HashFile(const std::string& path, const std::stop_token& stop) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.open()) return FileError(errno, path, "cannot open");
  Sha256 hash;
  std::vector<char> bytes(kPieceBytes);
  ssize_t count = 0;
  do {
    if (stop.stop_requested()) return absl::CancelledError(path + ": hashing was given up");
    count = ::read(file.get(), bytes.data(), bytes.size());
    if (count > 0) hash.Update({bytes.data(), static_cast<std::size_t>(count)});
  } while (count > 0 || (count < 0 && errno == EINTR));
  if (count < 0) return FileError(errno, path, "cannot read");
  return hash.Finish();
}

}  // namespace tactus::runtime
