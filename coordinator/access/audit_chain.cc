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

std::string TimeText(std::int64_t time) {
  constexpr std::int64_t kNanoseconds = 1'000'000'000;
  std::string text = runtime::UtcText(time / kNanoseconds);
  text.pop_back();  // the Z behind the seconds
  std::string fraction = std::to_string(time % kNanoseconds / 1000);
  fraction.insert(0, 6 - std::min<std::size_t>(6, fraction.size()), '0');
  return text + "." + fraction + "Z";
}

absl::Status Broken(const std::string& what) { return absl::DataLossError(what); }

}  // namespace

ChainEnd EmptyChain() { return {.number = 0, .hash = std::string(kHashDigits, '0')}; }

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
                  .prev = prev->get<std::string>()};
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

absl::StatusOr<AuditReport> VerifyAudit(const std::string& folder) {
  const std::vector<std::string> files = AuditFiles(folder);
  if (files.empty()) return absl::NotFoundError(folder + ": there is no audit log");
  AuditReport report;
  for (const std::string& file : files) {
    std::ifstream in(folder + "/" + file, std::ios::binary);
    if (!in) return absl::PermissionDeniedError(folder + "/" + file + ": cannot be read");
    std::uint64_t row = 0;
    for (std::string line; std::getline(in, line);) {
      ++row;
      const auto broken = [&](const std::string& what) {
        return Broken(folder + "/" + file + ": line " + std::to_string(row) + " " + what);
      };
      if (in.eof()) return broken("is cut off");
      const absl::StatusOr<ReadLine> read = ReadChainLine(line);
      if (!read.ok()) return broken(std::string(read.status().message()));
      if (report.lines > 0 &&
          (read->prev != report.end.hash || read->end.number != report.end.number + 1)) {
        return broken("does not follow the line before it, number " +
                      std::to_string(report.end.number));
      }
      if (report.lines == 0) report.first = read->end.number;
      ++report.lines;
      report.end = read->end;
    }
  }
  return report;
}

}  // namespace tactus::access
