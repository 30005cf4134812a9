#include "runtime/http_message.h"

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <boost/beast/http/status.hpp>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/time/time.h"
#include "runtime/host_port.h"
#include "runtime/now.h"
#include "runtime/percent.h"
#include "runtime/utf8.h"

namespace tactus::runtime {
namespace {

// Every answer has them: a browser is to load nothing from elsewhere, send nothing anywhere, guess
// no types, and keep nothing that an hour later looks like the present.
constexpr const char* kSecurityHeaders =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; frame-ancestors 'none'; "
    "form-action 'none'\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n"
    "Cache-Control: no-store\r\n";

constexpr const char* kBadText = "a bad escape, a control character, or what is not UTF-8";

// Nothing: it has kBadText.
std::optional<std::string> Decode(std::string_view text) {
  const std::optional<std::string> decoded = DecodePercent(text);
  const auto is_control = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
  if (!decoded || std::ranges::any_of(*decoded, is_control) || !IsUtf8(*decoded)) {
    return std::nullopt;
  }
  return decoded;
}

// In a query + is a blank.
std::optional<std::string> DecodeQuery(std::string_view text) {
  std::string blanks(text);
  std::ranges::replace(blanks, '+', ' ');
  return Decode(blanks);
}

absl::Status ParseQuery(std::string_view text, std::map<std::string, std::string>& query) {
  while (!text.empty()) {
    const std::string_view pair = text.substr(0, text.find('&'));
    text.remove_prefix(std::min(text.size(), pair.size() + 1));
    if (pair.empty()) continue;
    const std::size_t equals = pair.find('=');
    const auto name = DecodeQuery(pair.substr(0, equals));
    const auto value = DecodeQuery(equals == std::string_view::npos ? "" : pair.substr(equals + 1));
    if (!name.has_value() || !value.has_value()) {
      return absl::InvalidArgumentError(std::string("the query has ") + kBadText);
    }
    if (!query.emplace(*name, *value).second) {
      return absl::InvalidArgumentError("the query names \"" + *name + "\" twice");
    }
    if (query.size() > kQueryNamesMax) {
      return absl::InvalidArgumentError("the query has more than " +
                                        std::to_string(kQueryNamesMax) + " names");
    }
  }
  return absl::OkStatus();
}

// As HTTP writes it: "Sat, 21 Nov 2026 10:33:44 GMT".
std::string Date() {
  return absl::FormatTime("%a, %d %b %Y %H:%M:%S GMT", absl::FromUnixNanos(WallNow()),
                          absl::UTCTimeZone());
}

}  // namespace

HttpResponse PlainLine(unsigned status, const std::string& line) {
  return {.status = status, .body = line + "\n"};
}

absl::StatusOr<HttpRequest> ParseTarget(std::string_view target) {
  constexpr std::string_view kScheme = "http://";
  if (target.substr(0, kScheme.size()) == kScheme) {
    const std::size_t slash = target.find('/', kScheme.size());
    target = slash == std::string_view::npos ? "/" : target.substr(slash);
  }
  if (target.empty() || target[0] != '/') {
    return absl::InvalidArgumentError("the target does not begin with /");
  }
  const std::size_t mark = target.find('?');
  const auto path = Decode(target.substr(0, mark));
  if (!path.has_value()) {
    return absl::InvalidArgumentError(std::string("the path has ") + kBadText);
  }
  HttpRequest request{.path = *path};
  if (mark != std::string_view::npos) {
    const absl::Status status = ParseQuery(target.substr(mark + 1), request.query);
    if (!status.ok()) return status;
  }
  return request;
}

std::string HostName(std::string_view field) {
  const std::string text(field);
  std::optional<HostPort> address = ParseHostPort(text);
  if (!address) address = ParseHostPort(text + ":0");
  return address ? absl::AsciiStrToLower(address->host) : std::string();
}

bool IsLocalHost(const std::string& host) {
  if (host == "localhost") return true;
  boost::system::error_code error;
  boost::asio::ip::make_address(host, error);
  return !error;
}

std::string FormatHead(const HttpResponse& answer, long long length, bool keep_alive) {
  const auto reason =
      boost::beast::http::obsolete_reason(static_cast<boost::beast::http::status>(answer.status));
  std::string head = "HTTP/1.1 " + std::to_string(answer.status) + " " +
                     std::string(reason.data(), reason.size()) + "\r\n";
  head += "Date: " + Date() + "\r\n";
  head += "Content-Type: " + answer.content_type + "\r\n";
  if (length >= 0) head += "Content-Length: " + std::to_string(length) + "\r\n";
  if (answer.status == 405) head += "Allow: GET, HEAD\r\n";
  if (answer.status == 503) head += "Retry-After: 5\r\n";
  if (!keep_alive) head += "Connection: close\r\n";
  head += kSecurityHeaders;
  return head + "\r\n";
}

}  // namespace tactus::runtime
