// Where a bucket is, and by which keys it is gone to.

#pragma once

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/time.h"
#include "runtime/retry.h"

namespace tactus::bucket {

struct Place {
  std::string bucket = {};
  std::string prefix = {};  // of all our keys: empty, or it ends with a slash
};

// Secrets: in no log, no message and no support bundle.
struct Keys {
  std::string id = {};
  std::string secret = {};
  std::string token = {};  // of keys for a while; empty: none
};

struct BucketOptions {
  std::string place = {};            // s3://BUCKET or s3://BUCKET/PREFIX; empty: no bucket
  std::string endpoint = {};         // http(s)://HOST[:PORT]; empty: Amazon's of the region
  std::string region = "us-east-1";  // that signatures name
  std::string keys_file = {};        // see KeysOf; empty: `keys`
  std::string authority_file =
      {};          // certificates (PEM) that the endpoint's is held to; empty: the system's
  Keys keys = {};  // of the environment, which main reads
  // No flags of their own; other than the defaults in tests.
  int attempts = 8;                      // of a request, >= 1
  runtime::BackoffOptions backoff = {};  // between them
  Duration silence =
      Seconds(30);  // an attempt of which nothing moves for so long fails; whole seconds
  std::size_t part_bytes = std::size_t{16}
                           << 20;  // of a multipart upload, >= 5 MiB; 10,000 parts at most

  // Errors: InvalidArgument, the first option that is wrong, by its flag.
  absl::Status Validate() const;
};

// Of options that are valid.
Place PlaceOf(const BucketOptions& options);
// With the default put in.
std::string EndpointOf(const BucketOptions& options);
// "s3://BUCKET/PREFIX at https://HOST": for people.
std::string NameOf(const BucketOptions& options);
// Content goes to another machine in clear.
bool IsExposed(const BucketOptions& options);

// Of the file, which is read anew each time so that keys may change, or of `options.keys`. The file
// has lines `aws_access_key_id = ...`, `aws_secret_access_key = ...` and perhaps `aws_session_token
// = ...`, of which those above any section or in [default] count, as in ~/.aws/credentials.
// Errors: FailedPrecondition, there are none, or everybody may read the file; NotFound; as the file
// system has them.
absl::StatusOr<Keys> KeysOf(const BucketOptions& options);

}  // namespace tactus::bucket
