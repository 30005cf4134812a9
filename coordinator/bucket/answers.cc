#include "coordinator/bucket/answers.h"

#include <array>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"

namespace tactus::bucket {
namespace {

constexpr std::size_t kWordsMax = 200;  // of a server's message
constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kEscapes = {
    {{"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}, {"&apos;", "'"}, {"&amp;", "&"}}};

// The server's words, in one line of printable characters.
std::string WordsOf(const Answer& answer) {
  std::string words = TextOf(answer.body, "Message").substr(0, kWordsMax);
  for (char& c : words) {
    if (c < ' ' || c > '~') c = ' ';
  }
  return words;
}

std::string ClockText(const Answer& answer, std::int64_t now) {
  if (!answer.time) return "this machine's clock and the server's are apart; set them right";
  const std::int64_t ahead = now - *answer.time;
  return "this machine's clock is " + std::to_string(std::abs(ahead)) + " s " +
         (ahead > 0 ? "ahead of" : "behind") + " the server's, allowed are 900 s; set it right";
}

// What to do, by the server's code; empty: nothing is known of it.
std::string AdviceOf(const Answer& answer, const std::string& code, std::int64_t now) {
  if (code == "NoSuchBucket") return "make the bucket, or correct --blobs";
  if (code == "RequestTimeTooSkewed") return ClockText(answer, now);
  if (code == "InvalidAccessKeyId") return "there is no such key id; correct the credentials";
  if (code == "SignatureDoesNotMatch") return "the secret key is wrong; correct the credentials";
  if (code == "ExpiredToken" || code == "InvalidToken" || code == "TokenRefreshRequired") {
    return "the session token is over or wrong; bring new credentials";
  }
  if (code == "AccessDenied") {
    return "these keys may not do that; wanted are GetObject, PutObject, DeleteObject, "
           "AbortMultipartUpload, ListBucket and ListBucketMultipartUploads";
  }
  if (code == "AuthorizationHeaderMalformed" || code == "PermanentRedirect" ||
      answer.status / 100 == 3) {
    return "the bucket is of another region; correct --blobs-region";
  }
  return "";
}

}  // namespace

std::vector<std::string> ElementsOf(const std::string& xml, const std::string& name) {
  std::vector<std::string> found;
  const std::string open = "<" + name + ">";
  const std::string close = "</" + name + ">";
  std::size_t at = 0;
  while ((at = xml.find(open, at)) != xml.npos) {
    at += open.size();
    const std::size_t end = xml.find(close, at);
    if (end == xml.npos) break;
    found.push_back(xml.substr(at, end - at));
    at = end + close.size();
  }
  return found;
}

std::string TextOf(const std::string& xml, const std::string& name) {
  const std::vector<std::string> found = ElementsOf(xml, name);
  return found.empty() ? "" : Unescaped(found.front());
}

std::string Unescaped(const std::string& text) {
  std::string plain;
  for (std::size_t at = 0; at < text.size();) {
    bool known = false;
    for (const auto& [escape, meaning] : kEscapes) {
      if (text.compare(at, escape.size(), escape) != 0) continue;
      plain += meaning;
      at += escape.size();
      known = true;
      break;
    }
    if (!known) plain += text[at++];
  }
  return plain;
}

std::string Escaped(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    bool known = false;
    for (const auto& [escape, meaning] : kEscapes) {
      if (meaning.front() != c) continue;
      escaped += escape;
      known = true;
    }
    if (!known) escaped += c;
  }
  return escaped;
}

std::string PercentEncoded(const std::string& text) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (absl::ascii_isalnum(byte) || c == '-' || c == '_' || c == '.' || c == '~') {
      encoded += c;
    } else {
      encoded += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return encoded;
}

std::string CodeOf(const Answer& answer) {
  std::string code;
  for (const char c : TextOf(answer.body, "Code").substr(0, 64)) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(c))) code += c;
  }
  return code;
}

bool MayPass(const Answer& answer) {
  if (answer.status == 429 || answer.status == 500 || answer.status / 10 == 50) {
    return answer.status != 501;
  }
  const std::string code = CodeOf(answer);
  return code == "RequestTimeout" || code == "SlowDown" || code == "InternalError" ||
         code == "XAmzContentSHA256Mismatch" || code == "BadDigest" || code == "OperationAborted" ||
         code == "IncompleteBody";
}

absl::Status Judge(const Answer& answer, const Asked& asked) {
  if (answer.status / 100 == 2) return absl::OkStatus();
  const std::string code = CodeOf(answer);
  std::string text = "blobs: " + asked.name + ": " + asked.what + " was answered with " +
                     std::to_string(answer.status) + (code.empty() ? "" : " " + code);
  const std::string advice = AdviceOf(answer, code, asked.now);
  const std::string words = WordsOf(answer);
  if (!advice.empty()) {
    text += ": " + advice;
  } else if (!words.empty()) {
    text += " (" + words + ")";
  }
  if (MayPass(answer)) return absl::UnavailableError(text);
  // A HEAD says nothing more than its number.
  const bool object = code == "NoSuchKey" || (answer.status == 404 && code.empty());
  if (object) return absl::NotFoundError(text);
  const bool clock = code == "RequestTimeTooSkewed";
  if ((answer.status == 401 || answer.status == 403 || code == "ExpiredToken" ||
       code == "InvalidToken") &&
      !clock) {
    return absl::PermissionDeniedError(text);
  }
  return absl::FailedPreconditionError(text);
}

}  // namespace tactus::bucket
