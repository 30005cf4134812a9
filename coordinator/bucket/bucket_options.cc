#include "coordinator/bucket/bucket_options.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "identity/secret_file.h"
#include "runtime/host_port.h"

namespace tactus::bucket {
namespace {

constexpr std::string_view kScheme = "s3://";
constexpr std::size_t kPrefixBytesMax = 200;
constexpr std::size_t kPartBytesMin = std::size_t{5} << 20;

bool IsOneOf(std::string_view text, bool (*allowed)(char)) {
  return !text.empty() && std::ranges::all_of(text, allowed);
}

bool IsBucketName(std::string_view name) {
  return name.size() >= 3 && name.size() <= 63 && name.front() != '.' && name.front() != '-' &&
         IsOneOf(name, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-';
         });
}

// Names that need no escapes in a URL, and mean themselves there.
bool IsPrefix(std::string_view prefix) {
  if (prefix.empty()) return true;
  if (prefix.size() > kPrefixBytesMax) return false;
  const std::vector<std::string> names = absl::StrSplit(std::string(prefix), '/');
  return std::ranges::all_of(names, [](const std::string& name) {
    return name != "." && name != ".." && IsOneOf(name, [](char c) {
             return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' ||
                    c == '-';
           });
  });
}

std::pair<std::string, std::string> SplitPlace(const std::string& place) {
  const std::string rest = place.substr(kScheme.size());
  const std::size_t slash = rest.find('/');
  std::string prefix = slash == rest.npos ? "" : rest.substr(slash + 1);
  if (prefix.ends_with('/')) prefix.pop_back();
  return {rest.substr(0, slash), prefix};
}

// The host of an endpoint; empty: it is none.
std::string HostOf(const std::string& endpoint) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!endpoint.starts_with(scheme)) continue;
    const std::string rest = endpoint.substr(scheme.size());
    if (const auto address = runtime::ParseHostPort(rest)) {
      return address->port > 0 ? address->host : "";
    }
    const bool name = IsOneOf(rest, [](char c) {
      return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-';
    });
    return name ? rest : "";
  }
  return "";
}

absl::Status Wrong(const std::string& flag, const std::string& found, const std::string& allowed) {
  return absl::InvalidArgumentError(flag + ": found \"" + found + "\", allowed is " + allowed);
}

absl::Status Incomplete(const std::string& where) {
  return absl::FailedPreconditionError(
      where +
      ": has no keys of the bucket; wanted are an id and a secret (AWS_ACCESS_KEY_ID and "
      "AWS_SECRET_ACCESS_KEY of the environment, or a file of --blobs-credentials)");
}

}  // namespace

absl::Status BucketOptions::Validate() const {
  if (place.empty()) {
    for (const auto& [flag, text] :
         {std::pair{"blobs-endpoint", &endpoint}, std::pair{"blobs-credentials", &keys_file},
          std::pair{"blobs-ca", &authority_file}}) {
      if (text->empty()) continue;
      return absl::InvalidArgumentError(std::string(flag) +
                                        ": found without --blobs, whose bucket it is about");
    }
    return absl::OkStatus();
  }
  const bool is_place = place.starts_with(kScheme) && IsBucketName(SplitPlace(place).first) &&
                        IsPrefix(SplitPlace(place).second);
  if (!is_place) {
    return Wrong("blobs", place,
                 "s3://BUCKET or s3://BUCKET/PREFIX, a bucket's name and a prefix of letters, "
                 "digits, - _ . and /");
  }
  if (!endpoint.empty() && HostOf(endpoint).empty()) {
    return Wrong("blobs-endpoint", endpoint, "https://HOST or https://HOST:PORT (or http)");
  }
  if (region.size() > 63 || !IsOneOf(region, [](char c) {
        return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-';
      })) {
    return Wrong("blobs-region", region, "a region's name, such as eu-central-1");
  }
  if (attempts < 1 || part_bytes < kPartBytesMin) {
    return absl::InvalidArgumentError("bucket: attempts or part_bytes are too few");
  }
  return absl::OkStatus();
}

Place PlaceOf(const BucketOptions& options) {
  auto [bucket, prefix] = SplitPlace(options.place);
  if (!prefix.empty()) prefix += '/';
  return {.bucket = std::move(bucket), .prefix = std::move(prefix)};
}

std::string EndpointOf(const BucketOptions& options) {
  return options.endpoint.empty() ? "https://s3." + options.region + ".amazonaws.com"
                                  : options.endpoint;
}

std::string NameOf(const BucketOptions& options) {
  return options.place + " at " + EndpointOf(options);
}

bool IsExposed(const BucketOptions& options) {
  return options.endpoint.starts_with("http://") && !runtime::IsLoopback(HostOf(options.endpoint));
}

absl::StatusOr<Keys> KeysOf(const BucketOptions& options) {
  if (options.keys_file.empty()) {
    if (options.keys.id.empty() || options.keys.secret.empty()) return Incomplete("environment");
    return options.keys;
  }
  const absl::StatusOr<std::string> text = identity::ReadKeyFile(options.keys_file);
  if (!text.ok()) {
    return absl::Status(text.status().code(),
                        "blobs-credentials: " + std::string(text.status().message()));
  }
  Keys keys;
  bool counts = true;
  const std::vector<std::string> lines = absl::StrSplit(*text, '\n');
  for (const std::string& line : lines) {
    const std::string stripped(absl::StripAsciiWhitespace(line));
    if (stripped.starts_with('[')) counts = stripped == "[default]";
    const std::size_t equals = stripped.find('=');
    if (!counts || equals == stripped.npos) continue;
    const std::string name(absl::StripAsciiWhitespace(stripped.substr(0, equals)));
    const std::string value(absl::StripAsciiWhitespace(stripped.substr(equals + 1)));
    if (name == "aws_access_key_id") keys.id = value;
    if (name == "aws_secret_access_key") keys.secret = value;
    if (name == "aws_session_token") keys.token = value;
  }
  if (keys.id.empty() || keys.secret.empty()) {
    return Incomplete("blobs-credentials: " + options.keys_file);
  }
  return keys;
}

}  // namespace tactus::bucket
