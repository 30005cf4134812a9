// What a server of buckets answers, and what that means. Pure.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace tactus::bucket {

struct Answer {
  int status = 0;  // of HTTP
  std::string body = {};
  std::string tag = {};                // ETag, with its quotes
  std::uint64_t content_length = 0;    // as said; 0: nothing was
  std::optional<std::int64_t> time{};  // of the server, [s since 1970]
};

// Contents of the elements of this name, one after the other, as they stand there; for the small
// documents that such servers answer with, in which no element is within one of its own name.
std::vector<std::string> ElementsOf(const std::string& xml, const std::string& name);
// Of the first, with the five escapes of XML undone; empty: there is none.
std::string TextOf(const std::string& xml, const std::string& name);
std::string Unescaped(const std::string& text);
std::string Escaped(const std::string& text);
// For a query: everything but letters, digits, - _ . and ~ as %XX.
std::string PercentEncoded(const std::string& text);

// What the server calls what is wrong, as "NoSuchBucket"; empty: it says nothing.
std::string CodeOf(const Answer& answer);

// Trying the same again later may help: the server is overloaded or broken, or what was sent came
// damaged.
bool MayPass(const Answer& answer);

// Who asked what of whom.
struct Asked {
  std::string what = {};  // "PUT blobs/ab/..."
  std::string name = {};  // of the bucket, see NameOf
  std::int64_t now = 0;   // own time, [s since 1970]
};

// Ok for 2xx. NotFound: there is no such object. PermissionDenied: the keys are wrong or may not.
// FailedPrecondition: no such bucket, another region, clocks apart, and all else that stays wrong.
// Unavailable: MayPass.
absl::Status Judge(const Answer& answer, const Asked& asked);

}  // namespace tactus::bucket
