#include "client/local/doctor_blobs.h"

#include <cmath>
#include <memory>
#include <string>

#include "client/text/text.h"

namespace tactus::client {
namespace {

// From 900 s on a server refuses all requests.
constexpr double kBucketClockApart = 60;  // [s]
constexpr double kBucketSlow = 2;         // [s] for four requests

}  // namespace

absl::StatusOr<bucket::Bucket::Probed> LookAtBlobs(const bucket::BucketOptions& options) {
  const absl::Status valid = options.Validate();
  if (!valid.ok()) return valid;
  const absl::StatusOr<std::unique_ptr<bucket::Bucket>> bucket = bucket::Bucket::Open(options);
  if (!bucket.ok()) return bucket.status();
  return (*bucket)->Probe();
}

Finding JudgeBlobs(const bucket::BucketOptions& options,
                   const absl::StatusOr<bucket::Bucket::Probed>& probed) {
  const auto finding = [](Grade grade, const std::string& found, const std::string& advice) {
    return Finding{.grade = grade, .subject = "blobs", .found = found, .advice = advice};
  };
  if (!probed.ok()) {
    return finding(Grade::kBad, Printable(std::string(probed.status().message())),
                   "a coordinator with this bucket does not start (docs/operations.md)");
  }
  const std::string found =
      Printable(NameOf(options)) + " took, gave back and removed an object within " +
      FormatCount(static_cast<std::uint64_t>(std::ceil(probed->seconds * 1e3))) + " ms";
  const double apart = std::abs(probed->clock_seconds);
  if (apart > kBucketClockApart) {
    return finding(Grade::kLook,
                   found + "; this machine's clock is " +
                       FormatCount(static_cast<std::uint64_t>(apart)) + " s " +
                       (probed->clock_seconds > 0 ? "ahead of" : "behind") + " the server's",
                   "set it right: from 900 s on all requests are refused");
  }
  if (IsExposed(options)) {
    return finding(Grade::kLook, found, "files go there in clear; give an endpoint of https");
  }
  if (probed->seconds > kBucketSlow) {
    return finding(Grade::kLook, found, "look at the way there; checkpoints will take long");
  }
  return finding(Grade::kOk, found, "");
}

}  // namespace tactus::client
