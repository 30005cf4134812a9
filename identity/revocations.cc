#include "identity/revocations.h"

#include <algorithm>
#include <sstream>
#include <string_view>

#include "identity/name.h"
#include "identity/secret_file.h"

namespace tactus::identity {
namespace {

constexpr std::string_view kSerial = "serial ";

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
      where + ": allowed are user/NAME, node/NAME, coordinator, serial HEX and # comments");
}

std::string Trimmed(const std::string& line) {
  const std::size_t begin = line.find_first_not_of(" \t\r");
  if (begin == std::string::npos) return "";
  return line.substr(begin, line.find_last_not_of(" \t\r") - begin + 1);
}

}  // namespace

absl::StatusOr<Revocations> Revocations::Parse(const std::string& text) {
  Revocations revocations;
  std::istringstream in(text);
  int number = 0;
  for (std::string read; std::getline(in, read);) {
    ++number;
    const std::string line = Trimmed(read.substr(0, read.find('#')));
    if (line.empty()) continue;
    if (!IsEntry(line)) return NoEntry("line " + std::to_string(number));
    revocations.entries_.insert(line);
  }
  return revocations;
}

bool Revocations::Has(const Certificate& certificate) const {
  return entries_.contains(ShortNameOf(certificate.holder)) ||
         entries_.contains(std::string(kSerial) + certificate.serial);
}

absl::Status Revoke(const std::string& path, const std::string& entry) {
  if (!IsEntry(entry)) return NoEntry("found \"" + entry + "\"");
  absl::StatusOr<std::string> text = ReadSmallFile(path);
  if (absl::IsNotFound(text.status())) text = std::string();
  if (!text.ok()) return text.status();
  const absl::StatusOr<Revocations> known = Revocations::Parse(*text);
  if (!known.ok()) {
    return absl::InvalidArgumentError(path + ": " + std::string(known.status().message()));
  }
  std::istringstream in(*text);
  for (std::string line; std::getline(in, line);) {
    if (Trimmed(line.substr(0, line.find('#'))) == entry) return absl::OkStatus();
  }
  if (!text->empty() && text->back() != '\n') *text += '\n';
  return ReplaceFile(path, *text + entry + "\n", 0644);
}

}  // namespace tactus::identity
