// A text with signatures over it, as DSSE has it: what in-toto, SLSA and cosign read.
//
// https://github.com/secure-systems-lab/dsse, version 1: what is signed is the bytes of the payload
// as they stand there, so that nothing has to be written in one form alone, and the payload is not
// looked at before its signature is known to be right.

#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tactus::access {

inline constexpr const char* kStatementPayload = "application/vnd.in-toto+json";

struct Envelope {
  struct Signature {
    std::string key_id{};       // SHA-256 of the certificate as DER; a hint that nobody trusts
    std::string signature{};    // as identity::Sign has it
    std::string certificate{};  // PEM, beside what DSSE asks for
  };
  std::string payload_type{};
  std::string payload{};
  std::vector<Signature> signatures{};  // none: not signed
};

// One line of JSON, its end included.
std::string TextOf(const Envelope& envelope);

// Of at most 16 MiB. Fields that it does not know are left out. Errors: InvalidArgument, it is no
// envelope.
absl::StatusOr<Envelope> ReadEnvelope(const std::string& text);

// What is signed: type and payload, so that neither can be taken for another one.
std::string SignedBytes(const Envelope& envelope);

// Adds a signature by this key, of this certificate, both PEM. Errors: of identity::Sign and
// identity::ReadCertificate.
absl::Status AddSignature(const std::string& certificate, const std::string& key,
                          Envelope& envelope);

}  // namespace tactus::access
