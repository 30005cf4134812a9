// What the HTTP server hands to those who answer, and what they give back; text alone, no sockets.

#pragma once

#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace tactus::runtime {

// A GET or HEAD request, checked and decoded.
struct HttpRequest {
  std::string path = {};                          // begins with '/'
  std::map<std::string, std::string> query = {};  // each name once
};

struct HttpResponse {
  unsigned status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body = {};
};

// A plain line, as every refusal is.
HttpResponse PlainLine(unsigned status, const std::string& line);

// Reads the target of a request line, "/path?name=value&other=2" or the same behind
// "http://authority". What is decoded is UTF-8 and has no control characters, so it may be shown,
// logged and sent on.
// Errors: InvalidArgument with what is wrong; kQueryNamesMax names at most.
absl::StatusOr<HttpRequest> ParseTarget(std::string_view target);
inline constexpr std::size_t kQueryNamesMax = 16;

// The name or number that a Host field asks for: in lower case, without port and brackets.
std::string HostName(std::string_view field);

// True for a HostName that is a number, or localhost. A page elsewhere can point a name of its own
// at 127.0.0.1 and read what a browser gets from there; it cannot point a number.
bool IsLocalHost(const std::string& host);

// The head of an answer, up to and with the empty line. `length` is the body's, or below 0 when the
// body ends with the connection.
std::string FormatHead(const HttpResponse& answer, long long length, bool keep_alive);

}  // namespace tactus::runtime
