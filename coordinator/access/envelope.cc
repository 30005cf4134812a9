#include "coordinator/access/envelope.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/escaping.h"
#include "identity/certificate.h"
#include "identity/signature.h"

namespace tactus::access {
namespace {

constexpr std::size_t kBytesMax = std::size_t{16} << 20;
constexpr std::size_t kSignaturesMax = 16;

std::string Base64(const std::string& bytes) {
  std::string text;
  absl::Base64Escape(bytes, &text);
  return text;
}

// Standard or with the letters of URLs, as DSSE allows both.
std::optional<std::string> FromBase64(const std::string& text) {
  std::string bytes;
  if (absl::Base64Unescape(text, &bytes) || absl::WebSafeBase64Unescape(text, &bytes)) return bytes;
  return std::nullopt;
}

absl::Status No(const std::string& what) { return absl::InvalidArgumentError("envelope: " + what); }

std::optional<std::string> TextIn(const nlohmann::json& fields, const char* key) {
  const auto found = fields.find(key);
  if (found == fields.end() || !found->is_string()) return std::nullopt;
  return found->get<std::string>();
}

absl::StatusOr<Envelope::Signature> ReadSignature(const nlohmann::json& fields) {
  if (!fields.is_object()) return No("a signature is no object");
  const std::optional<std::string> text = TextIn(fields, "sig");
  std::optional<std::string> bytes = text ? FromBase64(*text) : std::nullopt;
  if (!bytes) return No("a signature has no sig in base64");
  return Envelope::Signature{.key_id = TextIn(fields, "keyid").value_or(""),
                             .signature = *std::move(bytes),
                             .certificate = TextIn(fields, "cert").value_or("")};
}

}  // namespace

std::string TextOf(const Envelope& envelope) {
  nlohmann::ordered_json signatures = nlohmann::ordered_json::array();
  for (const Envelope::Signature& one : envelope.signatures) {
    signatures.push_back(
        {{"keyid", one.key_id}, {"sig", Base64(one.signature)}, {"cert", one.certificate}});
  }
  const nlohmann::ordered_json fields = {{"payloadType", envelope.payload_type},
                                         {"payload", Base64(envelope.payload)},
                                         {"signatures", std::move(signatures)}};
  return fields.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

absl::StatusOr<Envelope> ReadEnvelope(const std::string& text) {
  if (text.size() > kBytesMax) return No("is larger than 16 MiB");
  const nlohmann::json fields = nlohmann::json::parse(text, nullptr, false);
  if (!fields.is_object()) return No("is no JSON object");
  const std::optional<std::string> type = TextIn(fields, "payloadType");
  const std::optional<std::string> payload = TextIn(fields, "payload");
  std::optional<std::string> bytes = payload ? FromBase64(*payload) : std::nullopt;
  if (!type || !bytes) return No("has no payloadType, or no payload in base64");
  const auto signatures = fields.find("signatures");
  if (signatures == fields.end() || !signatures->is_array()) return No("has no signatures");
  if (signatures->size() > kSignaturesMax) {
    return No("has " + std::to_string(signatures->size()) + " signatures, allowed are " +
              std::to_string(kSignaturesMax));
  }
  Envelope envelope = {.payload_type = *type, .payload = *std::move(bytes)};
  for (const nlohmann::json& one : *signatures) {
    absl::StatusOr<Envelope::Signature> read = ReadSignature(one);
    if (!read.ok()) return read.status();
    envelope.signatures.push_back(*std::move(read));
  }
  return envelope;
}

std::string SignedBytes(const Envelope& envelope) {
  return "DSSEv1 " + std::to_string(envelope.payload_type.size()) + " " + envelope.payload_type +
         " " + std::to_string(envelope.payload.size()) + " " + envelope.payload;
}

absl::Status AddSignature(const std::string& certificate, const std::string& key,
                          Envelope& envelope) {
  const absl::StatusOr<identity::Certificate> read = identity::ReadCertificate(certificate);
  if (!read.ok()) return read.status();
  absl::StatusOr<std::string> signature = identity::Sign(key, SignedBytes(envelope));
  if (!signature.ok()) return signature.status();
  envelope.signatures.push_back({.key_id = read->fingerprint,
                                 .signature = *std::move(signature),
                                 .certificate = certificate});
  return absl::OkStatus();
}

}  // namespace tactus::access
