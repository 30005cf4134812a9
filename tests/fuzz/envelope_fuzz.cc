// A record of provenance that somebody gives to `tactus verify`: what is read of it is what is
// written of that again, and what was not signed is not taken for signed.

#include <cstddef>
#include <cstdint>
#include <string>

#include "coordinator/access/envelope.h"
#include "coordinator/access/provenance.h"
#include "identity/signature.h"
#include "tests/fuzz/require.h"

namespace tactus::fuzz {
namespace {

void RunStatement(const std::string& text) {
  const absl::StatusOr<access::Provenance> record = access::ReadStatement(text);
  if (!record.ok()) return;
  Require(!record->builder.empty() && record->signed_at != 0,
          "a record says who made it, and when");
  for (const access::Provenance::File& file : record->files) {
    Require(!file.name.empty() && file.sha256.size() == 64, "a file has a name and a hash");
  }
  const absl::StatusOr<access::Provenance> again =
      access::ReadStatement(access::StatementOf(*record));
  // Without the parts that are not read, it may be none; with them it is the same.
  if (again.ok()) Require(again->files.size() == record->files.size(), "files stay");
}

void Run(const std::string& text) {
  RunStatement(text);
  const absl::StatusOr<access::Envelope> envelope = access::ReadEnvelope(text);
  if (!envelope.ok()) return;
  RunStatement(envelope->payload);
  const absl::StatusOr<access::Envelope> again = access::ReadEnvelope(access::TextOf(*envelope));
  Require(again.ok(), "what is written can be read");
  Require(again->payload == envelope->payload, "a payload stays to the byte");
  Require(again->signatures.size() == envelope->signatures.size(), "signatures stay");
  const std::string bytes = access::SignedBytes(*envelope);
  for (const access::Envelope::Signature& one : envelope->signatures) {
    // The key of the seed's certificate is thrown away: it signs nothing any more.
    const bool right = identity::CheckSignature(one.certificate, bytes, one.signature).ok();
    Require(!right || bytes.find("\"subject\"") != std::string::npos, "only the seed is signed");
    const auto issued = identity::CheckIssued(one.certificate, one.certificate, 1'700'000'000);
    static_cast<void>(issued.ok());
  }
}

}  // namespace
}  // namespace tactus::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tactus::fuzz::Run({reinterpret_cast<const char*>(data), size});
  return 0;
}
