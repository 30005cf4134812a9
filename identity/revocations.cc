#include "identity/revocations.h"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <sstream>
#include <string_view>
#include <utility>

#include "absl/time/time.h"
#include "base/descriptor.h"
#include "identity/name.h"
#include "identity/secret_file.h"
#include "runtime/now.h"
#include "runtime/process.h"

namespace tactus::identity {
namespace {

constexpr std::string_view kSerial = "serial ";
constexpr std::string_view kSince = " since ";

bool IsSerial(std::string_view text) {
  return !text.empty() && text.size() <= 64 && std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  });
}

bool IsEntry(const std::string& line) {
  if (line.starts_with(kSerial)) return IsSerial(std::string_view(line).substr(kSerial.size()));
  return ParseShortName(line, kDomainDefault).has_value();
}

absl::Status NoEntry(const std::string& where) {
  return absl::InvalidArgumentError(
      where +
      ": allowed are user/NAME, node/NAME, coordinator, serial HEX, each with since "
      "2026-12-02T10:00:00Z or without, and # comments");
}

std::string Trimmed(const std::string& line) {
  const std::size_t begin = line.find_first_not_of(" \t\r");
  if (begin == std::string::npos) return "";
  return line.substr(begin, line.find_last_not_of(" \t\r") - begin + 1);
}

// An entry and since when, of a line that has no comment. Nothing: it is none.
std::optional<std::pair<std::string, std::int64_t>> ReadEntry(const std::string& line) {
  const std::size_t at = line.find(kSince);
  const std::string entry = Trimmed(line.substr(0, at));
  if (!IsEntry(entry)) return std::nullopt;
  if (at == std::string::npos) return std::pair{entry, std::int64_t{0}};
  const std::optional<std::int64_t> since = ParseMoment(Trimmed(line.substr(at + kSince.size())));
  if (!since) return std::nullopt;
  return std::pair{entry, *since};
}

// The folder that the file is in, locked while it is open: who reads and replaces the file does so
// alone. Where the file system has no such locks (NFS has none of folders), without.
absl::StatusOr<Descriptor> LockFolderOf(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  Descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.open()) return runtime::FileError(errno, folder, "cannot be opened");
  while (::flock(opened.get(), LOCK_EX) != 0) {
    if (errno == EBADF || errno == ENOLCK || errno == EOPNOTSUPP) break;
    if (errno != EINTR) return runtime::FileError(errno, folder, "cannot be locked");
  }
  return opened;
}

}  // namespace

std::optional<std::int64_t> ParseMoment(const std::string& text) {
  absl::Time time;
  // "infinite-future" is a time to it, too.
  if (!absl::ParseTime(absl::RFC3339_full, text, &time, nullptr)) return std::nullopt;
  if (time < absl::UnixEpoch() || time == absl::InfiniteFuture()) return std::nullopt;
  return absl::ToUnixSeconds(time);
}

absl::StatusOr<Revocations> Revocations::Parse(const std::string& text) {
  Revocations revocations;
  std::istringstream in(text);
  int number = 0;
  for (std::string read; std::getline(in, read);) {
    ++number;
    const std::string line = Trimmed(read.substr(0, read.find('#')));
    if (line.empty()) continue;
    const auto entry = ReadEntry(line);
    if (!entry) return NoEntry("line " + std::to_string(number));
    revocations.Include(entry->first, entry->second);
  }
  return revocations;
}

void Revocations::Include(const std::string& entry, std::int64_t since) {
  const auto [found, added] = entries_.emplace(entry, since);
  if (!added) found->second = std::min(found->second, since);
}

void Revocations::Include(const Revocations& other) {
  for (const auto& [entry, since] : other.entries_) Include(entry, since);
}

std::optional<std::int64_t> Revocations::SinceOf(const std::string& entry) const {
  const auto found = entries_.find(entry);
  if (found == entries_.end()) return std::nullopt;
  return found->second;
}

std::optional<std::int64_t> Revocations::Since(const Certificate& certificate) const {
  const auto holder = SinceOf(ShortNameOf(certificate.holder));
  const auto serial = SinceOf(std::string(kSerial) + certificate.serial);
  return holder && serial ? std::min(*holder, *serial) : (holder ? holder : serial);
}

absl::Status CheckEntry(const std::string& entry) {
  return IsEntry(entry) ? absl::OkStatus() : NoEntry("found \"" + entry + "\"");
}

absl::Status Revoke(const std::string& path, const std::string& entry, std::int64_t since) {
  if (const absl::Status wrong = CheckEntry(entry); !wrong.ok()) return wrong;
  const absl::StatusOr<Descriptor> alone = LockFolderOf(path);
  if (!alone.ok()) return alone.status();
  absl::StatusOr<std::string> text = ReadSmallFile(path);
  if (absl::IsNotFound(text.status())) text = std::string();
  if (!text.ok()) return text.status();
  const absl::StatusOr<Revocations> known = Revocations::Parse(*text);
  if (!known.ok()) {
    return absl::InvalidArgumentError(path + ": " + std::string(known.status().message()));
  }
  const std::optional<std::int64_t> already = known->SinceOf(entry);
  if (already && *already <= since) return absl::OkStatus();
  if (!text->empty() && text->back() != '\n') *text += '\n';
  const std::string moment = since > 0 ? std::string(kSince) + runtime::UtcText(since) : "";
  return ReplaceFile(path, *text + entry + moment + "\n", 0644);
}

}  // namespace tactus::identity
