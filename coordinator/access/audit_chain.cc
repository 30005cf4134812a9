#include "coordinator/access/audit_chain.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/now.h"
#include "runtime/process.h"
#include "runtime/sha256.h"

namespace tactus::access {
namespace {

constexpr std::size_t kTextBytesMax = 256;
constexpr std::size_t kHashDigits = 64;
constexpr std::string_view kHash = R"(,"hash":")";
constexpr std::string_view kEnd = R"("})";
constexpr std::string_view kPrefix = "audit-";
constexpr std::string_view kSuffix = ".jsonl";
constexpr std::size_t kNumberDigits = 20;
constexpr char kCoordinator[] = "coordinator";
constexpr char kRemoval[] = "audit/lines_removed";
constexpr char kDone[] = "OK";

std::string TimeText(std::int64_t time) {
  constexpr std::int64_t kNanoseconds = 1'000'000'000;
  std::string text = runtime::UtcText(time / kNanoseconds);
  text.pop_back();  // the Z behind the seconds
  std::string fraction = std::to_string(time % kNanoseconds / 1000);
  fraction.insert(0, 6 - std::min<std::size_t>(6, fraction.size()), '0');
  return text + "." + fraction + "Z";
}

absl::Status Broken(const std::string& what) { return absl::DataLossError(what); }

std::string TextOf(const nlohmann::json& fields, const char* key) {
  const auto found = fields.find(key);
  return found != fields.end() && found->is_string() ? found->get<std::string>() : "";
}

// Nobody but the coordinator writes one: of refused calls there is no `about`.
std::string RemovalOf(const nlohmann::json& fields) {
  const bool is_one = TextOf(fields, "method") == kRemoval && TextOf(fields, "code") == kDone &&
                      TextOf(fields, "who") == kCoordinator;
  return is_one ? TextOf(fields, "about") : "";
}

}  // namespace

ChainEnd EmptyChain() { return {.number = 0, .hash = std::string(kHashDigits, '0')}; }

AuditEntry RemovalEntry(const ChainEnd& gone) {
  return {.time = runtime::WallNow(),
          .who = kCoordinator,
          .method = kRemoval,
          .about = "up to number " + std::to_string(gone.number) + ", hash " + gone.hash,
          .code = kDone};
}

std::string ChainLine(const AuditEntry& entry, ChainEnd& end) {
  const auto cut = [](const std::string& text) { return text.substr(0, kTextBytesMax); };
  const nlohmann::ordered_json fields = {{"n", end.number + 1},
                                         {"time", TimeText(entry.time)},
                                         {"who", cut(entry.who)},
                                         {"peer", cut(entry.peer)},
                                         {"certificate", cut(entry.certificate)},
                                         {"method", cut(entry.method)},
                                         {"about", cut(entry.about)},
                                         {"code", cut(entry.code)},
                                         {"prev", end.hash}};
  // What callers name may be no UTF-8.
  std::string line = fields.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  line.pop_back();
  end = {.number = end.number + 1, .hash = runtime::Sha256Of(line)};
  return line + std::string(kHash) + end.hash + std::string(kEnd) + "\n";
}

absl::StatusOr<ReadLine> ReadChainLine(std::string_view line) {
  const std::size_t tail = kHash.size() + kHashDigits + kEnd.size();
  if (line.size() < tail || !line.ends_with(kEnd)) return Broken("is no line of an audit log");
  const std::string_view content = line.substr(0, line.size() - tail);
  const std::string_view hash = line.substr(content.size() + kHash.size(), kHashDigits);
  if (line.substr(content.size(), kHash.size()) != kHash || runtime::Sha256Of(content) != hash) {
    return Broken("its hash is not that of its content");
  }
  const nlohmann::json fields = nlohmann::json::parse(line, nullptr, false);
  const auto number = fields.is_object() ? fields.find("n") : fields.end();
  const auto prev = fields.is_object() ? fields.find("prev") : fields.end();
  if (fields.is_discarded() || number == fields.end() || !number->is_number_unsigned() ||
      prev == fields.end() || !prev->is_string()) {
    return Broken("has no number or no hash of the line before");
  }
  return ReadLine{.end = {.number = number->get<std::uint64_t>(), .hash = std::string(hash)},
                  .prev = prev->get<std::string>(),
                  .removal = RemovalOf(fields)};
}

std::string AuditFileName(std::uint64_t first) {
  std::string digits = std::to_string(first);
  digits.insert(0, kNumberDigits - digits.size(), '0');
  return std::string(kPrefix) + digits + std::string(kSuffix);
}

std::uint64_t FirstLineOf(const std::string& name) {
  return std::stoull(name.substr(kPrefix.size(), kNumberDigits));
}

std::vector<std::string> AuditFiles(const std::string& folder) {
  std::vector<std::string> files = runtime::NamesIn(folder);
  std::erase_if(files, [](const std::string& name) {
    return !name.starts_with(kPrefix) || !name.ends_with(kSuffix) ||
           name.size() != kPrefix.size() + kNumberDigits + kSuffix.size() ||
           name.find_first_not_of("0123456789", kPrefix.size()) != kPrefix.size() + kNumberDigits;
  });
  std::ranges::sort(files);
  return files;
}

namespace {

// What is known of a chain while it is read.
struct Reading {
  AuditReport report{};
  std::string removal{};  // that a later line has to say; empty: none has to
};

// The next line; what is wrong with it.
absl::Status Follow(const std::string& line, Reading& reading) {
  AuditReport& report = reading.report;
  const absl::StatusOr<ReadLine> read = ReadChainLine(line);
  if (!read.ok()) return read.status();
  if (report.lines == 0) {
    const ChainEnd before = {.number = read->end.number - 1, .hash = read->prev};
    report.first = read->end.number;
    if (report.first > 1) reading.removal = RemovalEntry(before).about;
  } else if (read->prev != report.end.hash || read->end.number != report.end.number + 1) {
    return Broken("does not follow the line before it, number " +
                  std::to_string(report.end.number));
  }
  if (!reading.removal.empty() && read->removal == reading.removal) {
    report.removal_line = read->end.number;
  }
  ++report.lines;
  report.end = read->end;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<AuditReport> VerifyAudit(const std::string& folder) {
  const std::vector<std::string> files = AuditFiles(folder);
  if (files.empty()) return absl::NotFoundError(folder + ": there is no audit log");
  Reading reading;
  for (const std::string& file : files) {
    std::ifstream in(folder + "/" + file, std::ios::binary);
    if (!in) return absl::PermissionDeniedError(folder + "/" + file + ": cannot be read");
    std::uint64_t row = 0;
    for (std::string line; std::getline(in, line);) {
      ++row;
      const absl::Status status = in.eof() ? Broken("is cut off") : Follow(line, reading);
      if (status.ok()) continue;
      return Broken(folder + "/" + file + ": line " + std::to_string(row) + " " +
                    std::string(status.message()));
    }
  }
  if (!reading.removal.empty() && reading.report.removal_line == 0) {
    return Broken(folder + "/" + files.front() + ": line 1 is number " +
                  std::to_string(reading.report.first) +
                  ", and no line says that those before it were removed");
  }
  return reading.report;
}

}  // namespace tactus::access
