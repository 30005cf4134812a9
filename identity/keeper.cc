#include "identity/keeper.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "identity/secret_file.h"
#include "identity/tls_folder.h"
#include "runtime/logging.h"
#include "runtime/now.h"

namespace tactus::identity {
namespace {

// Attempts to renew, of a certificate's life: some 30 before it runs out.
constexpr std::int64_t kAttemptsOfLife = 100;

}  // namespace

Keeper::Keeper(Options options, Handlers handlers)
    : options_(std::move(options)), handlers_(std::move(handlers)) {
  thread_.Post([this] {
    content_ = Content();
    Look();
    LookAgain();
  });
}

Keeper::~Keeper() { thread_.Stop(); }

void Keeper::LookAgain() {
  timer_.After(options_.look, [this] {
    Look();
    LookAgain();
  });
}

std::string Keeper::Content() const {
  return ReadSmallFile(options_.folder + "/cert.pem").value_or("") +
         ReadSmallFile(options_.folder + "/ca.pem").value_or("");
}

void Keeper::Look() {
  const std::int64_t now = runtime::WallSeconds();
  const absl::StatusOr<Certificate> present = CertificateOfFolder(options_.folder);
  if (present.ok() && now >= next_try_ && (now >= RenewalTime(*present) || handlers_.stale())) {
    next_try_ = now + (present->end - present->begin) / kAttemptsOfLife;
    Renew(*present);
  }
  std::string content = Content();
  if (content != std::exchange(content_, content)) handlers_.changed();
}

void Keeper::Renew(const Certificate& present) {
  const absl::StatusOr<Certificate> renewed = handlers_.renew();
  const auto log = runtime::Logger("identity");
  if (renewed.ok()) {
    complaint_.clear();
    next_try_ = 0;
    log->info("certificate renewed holder={} serial={} end={}", ShortNameOf(renewed->holder),
              renewed->serial, runtime::UtcText(renewed->end));
    return;
  }
  const std::string complaint(renewed.status().message());
  if (complaint == std::exchange(complaint_, complaint)) return;
  log->warn("certificate not renewed, it is tried again holder={} end={} reason={}",
            ShortNameOf(present.holder), runtime::UtcText(present.end), runtime::Quoted(complaint));
}

}  // namespace tactus::identity
