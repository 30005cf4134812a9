#include "client/local/verify.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "client/text/text.h"
#include "coordinator/access/envelope.h"
#include "coordinator/access/provenance.h"
#include "identity/signature.h"
#include "runtime/now.h"
#include "runtime/sha256.h"

namespace tactus::client {
namespace {

namespace fs = std::filesystem;
using access::Provenance;

constexpr std::size_t kRecordBytesMax = std::size_t{16} << 20;

absl::StatusOr<std::string> ReadRecord(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    return absl::NotFoundError(path + ": cannot be read; tactus download brings it with a result");
  }
  std::string text(kRecordBytesMax + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  return text;
}

// A link is not followed: what it leads to is no file of the result.
VerifyFinding CheckFile(const fs::path& folder, const Provenance::File& file) {
  const std::string name = Printable(file.name);
  const fs::path path = folder / file.name;
  std::error_code error;
  const fs::file_status status = fs::symlink_status(path, error);
  if (!fs::exists(status)) return {.right = false, .text = name + ": is not there"};
  if (!fs::is_regular_file(status)) return {.right = false, .text = name + ": is no file"};
  const absl::StatusOr<std::string> sha256 = runtime::HashFile(path.string());
  if (!sha256.ok()) {
    return {.right = false, .text = name + ": " + std::string(sha256.status().message())};
  }
  if (*sha256 == file.sha256) return {.text = name + ": as recorded"};
  return {
      .right = false,
      .text = name + ": is another one: found sha256 " + *sha256 + ", recorded is " + file.sha256};
}

// What somebody put beside the files may be taken for one of them.
void FindOthers(const fs::path& folder, const std::set<std::string>& known,
                std::vector<VerifyFinding>& findings) {
  std::error_code error;
  std::set<std::string> others;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    std::error_code ignored;
    const fs::file_status status = at->symlink_status(ignored);
    if (fs::is_directory(status)) continue;
    const std::string name = at->path().lexically_relative(folder).generic_string();
    if (!known.contains(name)) others.insert(name);
  }
  if (error) findings.push_back({.right = false, .text = folder.string() + ": " + error.message()});
  for (const std::string& name : others) {
    findings.push_back({.right = false, .text = Printable(name) + ": is not in the record"});
  }
}

// Whether the key that signed was a coordinator's of the authority.
VerifyFinding CheckHolder(const access::Envelope::Signature& signature, const Provenance& record,
                          const VerifyOrder& order) {
  const auto wrong = [](const std::string& what) {
    return VerifyFinding{.right = false, .text = "signature: " + what};
  };
  const auto issued =
      identity::CheckIssued(signature.certificate, order.authority, record.signed_at);
  if (!issued.ok()) return wrong(std::string(issued.status().message()));
  const std::string id = identity::SpiffeIdOf(issued->holder);
  if (issued->holder.kind != identity::Kind::kCoordinator) {
    return wrong("is by " + id + ", allowed is a coordinator");
  }
  if (!order.domain.empty() && issued->holder.domain != order.domain) {
    return wrong("is by " + id + ", allowed is spiffe://" + order.domain + "/coordinator");
  }
  if (id != record.builder) {
    return wrong("is by " + id + ", and the record says " + Printable(record.builder));
  }
  std::string text = "signature: by " + id + ", certificate " + issued->serial + ", at " +
                     runtime::UtcText(record.signed_at);
  if (!order.revoked) {
    text += "; whether that was revoked is not asked without --revoked";
  } else if (const std::optional<std::int64_t> since = order.revoked->Since(*issued)) {
    // The time of the signature is the signer's own word. Who has a stolen key may write any, so
    // it counts only against the time that whoever revoked it gave.
    if (*since == 0)
      return wrong("is by certificate " + issued->serial + " of " + id + ", which is revoked");
    if (record.signed_at >= *since) {
      return wrong("is by certificate " + issued->serial + " of " + id + ", at " +
                   runtime::UtcText(record.signed_at) + ", and that is revoked since " +
                   runtime::UtcText(*since));
    }
    text += "; the certificate is revoked since " + runtime::UtcText(*since) +
            ", and by the record's own word signed before";
  }
  if (order.now >= issued->end) {
    text += "; the certificate has expired since, at " + runtime::UtcText(issued->end) +
            ", and was valid when it signed";
  }
  return {.text = text};
}

VerifyFinding CheckSignatures(const access::Envelope& envelope, const Provenance& record,
                              const VerifyOrder& order) {
  if (envelope.signatures.empty()) {
    return {.right = order.authority.empty(),
            .text =
                "signature: there is none, as the coordinator had no certificate: whoever may "
                "write the files may write the record"};
  }
  const std::string bytes = access::SignedBytes(envelope);
  std::optional<VerifyFinding> wrong;
  for (const access::Envelope::Signature& one : envelope.signatures) {
    const absl::Status right = identity::CheckSignature(one.certificate, bytes, one.signature);
    VerifyFinding finding = {.right = false, .text = "signature: " + std::string(right.message())};
    if (right.ok() && order.authority.empty()) {
      finding = {.text =
                     "signature: is whole, and whose it is was not asked: give --ca or "
                     "--tls-dir"};
    } else if (right.ok()) {
      finding = CheckHolder(one, record, order);
    }
    if (finding.right) return finding;
    if (!wrong) wrong = std::move(finding);
  }
  return *wrong;
}

}  // namespace

absl::StatusOr<std::vector<VerifyFinding>> VerifyResult(const VerifyOrder& order) {
  const fs::path folder = order.folder;
  const absl::StatusOr<std::string> text = ReadRecord((folder / access::kProvenanceFile).string());
  if (!text.ok()) return text.status();
  const auto named = [](const absl::Status& status) {
    return absl::InvalidArgumentError(std::string(access::kProvenanceFile) + ": " +
                                      std::string(status.message()));
  };
  const absl::StatusOr<access::Envelope> envelope = access::ReadEnvelope(*text);
  if (!envelope.ok()) return named(envelope.status());
  if (envelope->payload_type != access::kStatementPayload) {
    return named(absl::InvalidArgumentError("its payload is no statement of in-toto's"));
  }
  const absl::StatusOr<Provenance> record = access::ReadStatement(envelope->payload);
  if (!record.ok()) return named(record.status());
  std::vector<VerifyFinding> findings;
  std::set<std::string> known = {access::kProvenanceFile};
  std::vector<Provenance::File> files = record->files;
  if (!record->plans.name.empty()) files.push_back(record->plans);
  for (const Provenance::File& file : files) {
    const fs::path path = fs::path(file.name).lexically_normal();
    const bool below = path.is_relative() && !path.empty() && *path.begin() != "..";
    findings.push_back(below ? CheckFile(folder, file)
                             : VerifyFinding{.right = false,
                                             .text = Printable(file.name) + ": leaves the folder"});
    known.insert(path.generic_string());
  }
  FindOthers(folder, known, findings);
  findings.push_back(
      {.text = "made by job " + Printable(ShortName(record->job)) + ", submitted by " +
               (record->owner.empty() ? "nobody in particular" : Printable(record->owner)) +
               ", ended at " + runtime::UtcText(record->ended)});
  findings.push_back(CheckSignatures(*envelope, *record, order));
  return findings;
}

}  // namespace tactus::client
