#include "coordinator/bucket/bucket.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/time/time.h"
#include "base/descriptor.h"
#include "runtime/now.h"
#include "runtime/process.h"
#include "runtime/sha256.h"

namespace tactus::bucket {
namespace {

constexpr int kProbeAttempts = 3;

// Fills `bytes` from the file, or says that it is shorter than was said.
absl::Status ReadPart(const Descriptor& file, const std::string& path, std::string& bytes) {
  std::size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t count = ::read(file.get(), bytes.data() + filled, bytes.size() - filled);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return runtime::FileError(errno, path, "cannot read");
    if (count == 0) return absl::DataLossError(path + ": is shorter than it was");
    filled += static_cast<std::size_t>(count);
  }
  return absl::OkStatus();
}

absl::Status CheckHash(const Bucket::File& file, const std::string& sha256) {
  if (sha256 == file.sha256) return absl::OkStatus();
  return absl::DataLossError(file.path + ": is damaged: its content has the hash " + sha256);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Bucket>> Bucket::Open(const BucketOptions& options) {
  const absl::StatusOr<Keys> keys = KeysOf(options);
  if (!keys.ok()) return absl::FailedPreconditionError(std::string(keys.status().message()));
  return std::unique_ptr<Bucket>(new Bucket(options));
}

// The answer if it is a yes.
absl::StatusOr<Answer> Bucket::Ask(const Request& request) {
  absl::StatusOr<Answer> answer = requester_.Send(request);
  if (!answer.ok()) return answer;
  const absl::Status judged = Judge(*answer, requester_.AskedOf(request));
  if (!judged.ok()) return judged;
  return answer;
}

absl::StatusOr<Bucket::Probed> Bucket::Probe() {
  const Instant begin = runtime::Now();
  const std::int64_t wall = runtime::WallSeconds();
  const std::string word = "tactus " + std::to_string(runtime::WallNow());
  const std::string key = prefix_ + "probe-" + runtime::Sha256Of(word).substr(0, 16);
  const absl::StatusOr<Answer> put =
      Ask({.method = "PUT", .key = key, .body = word, .attempts = kProbeAttempts});
  if (!put.ok()) return put.status();
  const absl::StatusOr<Answer> got =
      Ask({.key = key,
           .range = Request::Range{.offset = 0, .count = word.size()},
           .attempts = kProbeAttempts});
  absl::Status status = got.status();
  if (got.ok() && got->body != word) {
    status = absl::DataLossError("blobs: " + NameOf(options()) +
                                 ": gives something else than was written to it");
  }
  if (status.ok()) {
    status = Ask({.query = "list-type=2&max-keys=1&prefix=" + PercentEncoded(key),
                  .attempts = kProbeAttempts})
                 .status();
  }
  const absl::StatusOr<Answer> removed =
      Ask({.method = "DELETE", .key = key, .attempts = kProbeAttempts});
  if (status.ok()) status = removed.status();
  if (!status.ok()) return status;
  return Probed{.seconds = ToSeconds(runtime::Now() - begin),
                .clock_seconds = put->time ? static_cast<double>(wall - *put->time) : 0};
}

absl::Status Bucket::Unlisted(const std::string& why) const {
  return absl::UnavailableError("blobs: " + NameOf(options()) + ": cannot be listed: " + why);
}

absl::Status Bucket::List(const std::string& prefix, const std::function<void(Object)>& found) {
  std::string token;
  while (true) {
    std::string query = token.empty() ? "" : "continuation-token=" + PercentEncoded(token) + "&";
    query += "list-type=2&prefix=" + PercentEncoded(prefix_ + prefix);
    const absl::StatusOr<Answer> answer = Ask({.query = query});
    if (!answer.ok()) return answer.status();
    // Whatever is not listed counts as gone: a proxy's page, or half an answer, lists nothing.
    const bool whole = answer->body.find("<ListBucketResult") != std::string::npos &&
                       answer->body.find("</ListBucketResult>") != std::string::npos;
    if (!whole) return Unlisted("the answer is no ListBucketResult");
    for (const std::string& object : ElementsOf(answer->body, "Contents")) {
      const std::string key = TextOf(object, "Key");
      std::uint64_t size = 0;
      if (!key.starts_with(prefix_) || !absl::SimpleAtoi(TextOf(object, "Size"), &size)) continue;
      found({.key = key.substr(prefix_.size()), .size_bytes = size});
    }
    if (TextOf(answer->body, "IsTruncated") != "true") return absl::OkStatus();
    const std::string next = TextOf(answer->body, "NextContinuationToken");
    if (next.empty() || next == token) {
      return Unlisted("the answer is cut and says not how it goes on (ListObjectsV2 is needed)");
    }
    token = next;
  }
}

absl::Status Bucket::Put(const std::string& key, std::string_view bytes) {
  return Ask({.method = "PUT", .key = prefix_ + key, .body = bytes}).status();
}

absl::Status Bucket::PutNew(const std::string& key, std::string_view bytes) {
  constexpr int kThere = 412;      // Precondition Failed
  constexpr int kMeanwhile = 409;  // somebody else's is being written
  constexpr int kUnknown = 501;    // Not Implemented
  const Request request{.method = "PUT", .key = prefix_ + key, .body = bytes, .only_new = true};
  const absl::StatusOr<Answer> answer = requester_.Send(request);
  if (!answer.ok()) return answer.status();
  if (answer->status == kThere || answer->status == kMeanwhile) return absl::OkStatus();
  if (answer->status == kUnknown) return Put(key, bytes);
  return Judge(*answer, requester_.AskedOf(request));
}

absl::Status Bucket::PutFile(const std::string& key, const File& file) {
  if (file.size_bytes > options().part_bytes) return PutParts(key, file);
  const Descriptor opened(::open(file.path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!opened.open()) return runtime::FileError(errno, file.path, "cannot open");
  std::string bytes(file.size_bytes, '\0');
  absl::Status status = ReadPart(opened, file.path, bytes);
  if (status.ok()) status = CheckHash(file, runtime::Sha256Of(bytes));
  if (!status.ok()) return status;
  return Ask({.method = "PUT", .key = prefix_ + key, .body = bytes, .body_sha256 = file.sha256})
      .status();
}

absl::Status Bucket::PutParts(const std::string& key, const File& file) {
  const absl::StatusOr<Answer> begun =
      Ask({.method = "POST", .key = prefix_ + key, .query = "uploads="});
  if (!begun.ok()) return begun.status();
  const std::string upload = PercentEncoded(TextOf(begun->body, "UploadId"));
  if (upload.empty()) {
    return absl::FailedPreconditionError("blobs: " + NameOf(options()) +
                                         ": answers an upload without an id");
  }
  const absl::Status status = SendParts(key, file, upload);
  if (status.ok()) return status;
  // Else they would be paid for until RemoveOldParts.
  const absl::Status ignored =
      Ask({.method = "DELETE", .key = prefix_ + key, .query = "uploadId=" + upload, .attempts = 1})
          .status();
  return status;
}

absl::Status Bucket::SendParts(const std::string& key, const File& file,
                               const std::string& upload) {
  const Descriptor opened(::open(file.path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!opened.open()) return runtime::FileError(errno, file.path, "cannot open");
  runtime::Sha256 hash;
  std::vector<std::string> tags;
  std::string bytes;
  for (std::uint64_t left = file.size_bytes; left > 0; left -= bytes.size()) {
    bytes.resize(std::min<std::uint64_t>(left, options().part_bytes));
    const absl::Status read = ReadPart(opened, file.path, bytes);
    if (!read.ok()) return read;
    hash.Update(bytes);
    const absl::StatusOr<Answer> sent =
        Ask({.method = "PUT",
             .key = prefix_ + key,
             .query = "partNumber=" + std::to_string(tags.size() + 1) + "&uploadId=" + upload,
             .body = bytes});
    if (!sent.ok()) return sent.status();
    tags.push_back(sent->tag);
  }
  // What was read now, and sent, is what was hashed as it came.
  const absl::Status whole = CheckHash(file, hash.Finish());
  return whole.ok() ? Complete(key, file, upload, tags) : whole;
}

absl::Status Bucket::Complete(const std::string& key, const File& file, const std::string& upload,
                              const std::vector<std::string>& tags) {
  std::string xml = "<CompleteMultipartUpload>";
  for (std::size_t i = 0; i < tags.size(); ++i) {
    xml += "<Part><PartNumber>" + std::to_string(i + 1) + "</PartNumber><ETag>" + Escaped(tags[i]) +
           "</ETag></Part>";
  }
  xml += "</CompleteMultipartUpload>";
  const Request request{
      .method = "POST", .key = prefix_ + key, .query = "uploadId=" + upload, .body = xml};
  const absl::StatusOr<Answer> answer = requester_.Send(request);
  if (!answer.ok()) return answer.status();
  // An attempt whose answer was lost has ended the upload already; the object says whether it did.
  // And a yes may come with a no in it, as the server begins to answer before it knows.
  const bool ended = CodeOf(*answer) == "NoSuchUpload";
  if (!ended) {
    const absl::Status judged = Judge(*answer, requester_.AskedOf(request));
    if (!judged.ok()) return judged;
  }
  if (!ended && !CodeOf(*answer).empty()) {
    return absl::UnavailableError("blobs: " + NameOf(options()) + ": POST " + request.key +
                                  " was answered with " + CodeOf(*answer));
  }
  const absl::StatusOr<std::uint64_t> size = SizeOf(key);
  if (!size.ok()) return size.status();
  if (*size == file.size_bytes) return absl::OkStatus();
  return absl::UnavailableError("blobs: " + NameOf(options()) + ": " + key + " has " +
                                std::to_string(*size) + " bytes, sent were " +
                                std::to_string(file.size_bytes));
}

absl::StatusOr<std::string> Bucket::Get(const std::string& key, const Request::Range& range) {
  absl::StatusOr<Answer> answer = Ask({.key = prefix_ + key, .range = range});
  if (!answer.ok()) return answer.status();
  return std::move(answer->body);
}

absl::StatusOr<std::uint64_t> Bucket::SizeOf(const std::string& key) {
  const absl::StatusOr<Answer> answer = Ask({.method = "HEAD", .key = prefix_ + key});
  if (!answer.ok()) return answer.status();
  return answer->content_length;
}

absl::Status Bucket::Remove(const std::string& key) {
  const absl::Status status = Ask({.method = "DELETE", .key = prefix_ + key}).status();
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

absl::StatusOr<std::size_t> Bucket::RemoveOldParts(const std::string& prefix, Duration age) {
  const absl::StatusOr<Answer> answer =
      Ask({.query = "prefix=" + PercentEncoded(prefix_ + prefix) + "&uploads="});
  if (!answer.ok()) return answer.status();
  const absl::Time limit = absl::FromUnixNanos(runtime::WallNow()) - absl::Nanoseconds(age.count());
  std::size_t removed = 0;
  for (const std::string& upload : ElementsOf(answer->body, "Upload")) {
    absl::Time begun;
    const bool old =
        absl::ParseTime(absl::RFC3339_full, TextOf(upload, "Initiated"), &begun, nullptr) &&
        begun < limit;
    const std::string key = TextOf(upload, "Key");
    if (!old || !key.starts_with(prefix_ + prefix)) continue;
    const absl::Status status =
        Ask({.method = "DELETE",
             .key = key,
             .query = "uploadId=" + PercentEncoded(TextOf(upload, "UploadId"))})
            .status();
    if (!status.ok() && !absl::IsNotFound(status)) return status;
    ++removed;
  }
  return removed;
}

}  // namespace tactus::bucket
