#include "coordinator/bucket/requester.h"

#include <curl/curl.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "base/check.h"
#include "base/rng.h"
#include "runtime/now.h"
#include "runtime/retry.h"
#include "runtime/sha256.h"

namespace tactus::bucket {
namespace {

constexpr std::size_t kAnswerBytesMax = std::size_t{4} << 20;  // of what is no object
constexpr long kConnectSeconds = 10;
constexpr std::size_t kIdleMax = 16;

// What of an answer is written down while it comes.
struct Coming {
  std::size_t bytes_max = 0;
  Answer answer{};
  const std::atomic<bool>* stopping = nullptr;
};

std::size_t TakeBody(char* bytes, std::size_t, std::size_t count, void* to) {
  auto* coming = static_cast<Coming*>(to);
  if (coming->answer.body.size() + count > coming->bytes_max) return 0;  // which ends it
  coming->answer.body.append(bytes, count);
  return count;
}

std::size_t TakeHeader(char* bytes, std::size_t, std::size_t count, void* to) {
  auto* coming = static_cast<Coming*>(to);
  const std::string line(bytes, count);
  const std::size_t colon = line.find(':');
  if (line.starts_with("HTTP/")) coming->answer = {};  // after a 100
  if (colon == line.npos) return count;
  std::string name = line.substr(0, colon);
  for (char& c : name) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  const std::size_t begin = line.find_first_not_of(" \t", colon + 1);
  const std::size_t end = line.find_last_not_of(" \t\r\n");
  const std::string value =
      begin == line.npos || end < begin ? "" : line.substr(begin, end + 1 - begin);
  if (name == "etag") coming->answer.tag = value;
  if (name == "date") {
    const time_t time = curl_getdate(value.c_str(), nullptr);
    if (time >= 0) coming->answer.time = time;
  }
  return count;
}

int KeepOn(void* to, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return *static_cast<Coming*>(to)->stopping ? 1 : 0;
}

class Headers {
 public:
  Headers() = default;
  ~Headers() { curl_slist_free_all(list_); }
  Headers(const Headers&) = delete;
  Headers& operator=(const Headers&) = delete;

  void Add(const std::string& line) {
    curl_slist* const longer = curl_slist_append(list_, line.c_str());
    TACTUS_CHECK(longer != nullptr);  // out of memory, as anywhere else
    list_ = longer;
  }
  curl_slist* list() const { return list_; }

 private:
  curl_slist* list_ = nullptr;
};

template <typename Value>
void Set(CURL* curl, CURLoption option, Value value) {
  TACTUS_CHECK(curl_easy_setopt(curl, option, value) == CURLE_OK);
}

// Nothing that is tried again will change that.
bool StaysWrong(CURLcode code) {
  return code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE ||
         code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_URL_MALFORMAT ||
         code == CURLE_NOT_BUILT_IN || code == CURLE_SSL_ISSUER_ERROR;
}

void StartCurlOnce() {
  static const CURLcode code = curl_global_init(CURL_GLOBAL_DEFAULT);
  TACTUS_CHECK(code == CURLE_OK);
}

}  // namespace

struct Requester::Connection {
  Connection() : curl(curl_easy_init()) { TACTUS_CHECK(curl != nullptr); }
  ~Connection() { curl_easy_cleanup(curl); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // As if new, but for the connection itself.
  void Reset() { curl_easy_reset(curl); }

  CURL* const curl;
  std::array<char, CURL_ERROR_SIZE> error{};
};

absl::Status Requester::Failure(const Connection& connection, int code, const Asked& asked) {
  const auto known = static_cast<CURLcode>(code);
  const std::string words =
      connection.error.front() != '\0' ? connection.error.data() : curl_easy_strerror(known);
  const std::string text = "blobs: " + asked.name + ": " + asked.what + ": " + words;
  if (!StaysWrong(known)) return absl::UnavailableError(text);
  return absl::FailedPreconditionError(text + "; correct --blobs-endpoint or --blobs-ca");
}

Requester::Requester(BucketOptions options)
    : options_(std::move(options)),
      place_(PlaceOf(options_)),
      address_(EndpointOf(options_) + "/" + place_.bucket) {
  StartCurlOnce();
}

Requester::~Requester() = default;

Asked Requester::AskedOf(const Request& request) const {
  return {.what = request.method + (request.key.empty() ? "" : " " + request.key),
          .name = NameOf(options_),
          .now = runtime::WallSeconds()};
}

std::unique_ptr<Requester::Connection> Requester::TakeConnection() {
  {
    const threads::MutexLock lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<Connection> connection = std::move(idle_.back());
      idle_.pop_back();
      return connection;
    }
  }
  return std::make_unique<Connection>();
}

void Requester::GiveBack(std::unique_ptr<Connection> connection) {
  connection->Reset();
  const threads::MutexLock lock(mutex_);
  if (idle_.size() < kIdleMax) idle_.push_back(std::move(connection));
}

void Requester::Stop() {
  stopping_ = true;
  const threads::MutexLock lock(mutex_);
  stopped_.NotifyAll();
}

// False: Stop.
bool Requester::WaitBefore(Duration delay) {
  const auto end = std::chrono::steady_clock::now() +
                   std::chrono::duration_cast<std::chrono::steady_clock::duration>(delay);
  const threads::MutexLock lock(mutex_);
  while (!stopping_ && stopped_.WaitUntil(mutex_, end)) {
  }
  return !stopping_;
}

absl::StatusOr<Answer> Requester::Send(const Request& request) {
  const std::string body_sha256 =
      request.body_sha256.empty() ? runtime::Sha256Of(request.body) : request.body_sha256;
  const int attempts = request.attempts > 0 ? request.attempts : options_.attempts;
  Rng rng(draws_++);
  for (int failures = 1;; ++failures) {
    const Instant began = runtime::Now();
    absl::StatusOr<Answer> answer = Attempt(request, body_sha256);
    if (stopping_) return absl::CancelledError("blobs: the coordinator is stopping");
    Tell(request, answer, began);
    if (!answer.ok() && !runtime::IsRetryable(answer.status())) return answer;
    // What an object holds is nobody's word about the request.
    const bool object = request.method == "GET" && !request.key.empty();
    if (answer.ok() && ((object && answer->status / 100 == 2) || !MayPass(*answer))) return answer;
    if (failures == attempts) {
      const absl::Status last = answer.ok() ? Judge(*answer, AskedOf(request)) : answer.status();
      return absl::UnavailableError(std::string(last.message()) + "; tried " +
                                    std::to_string(attempts) + " times");
    }
    if (!WaitBefore(runtime::BackoffDelay(options_.backoff, failures, rng))) {
      return absl::CancelledError("blobs: the coordinator is stopping");
    }
  }
}

void Requester::Tell(const Request& request, const absl::StatusOr<Answer>& answer,
                     Instant began) const {
  const absl::Status judged = answer.ok() ? Judge(*answer, AskedOf(request)) : answer.status();
  std::string_view outcome = "refused";
  if (judged.ok()) {
    outcome = "ok";
  } else if (absl::IsNotFound(judged)) {
    outcome = "absent";
  } else if (runtime::IsRetryable(judged)) {
    outcome = answer.ok() ? "busy" : "broken";
  }
  watch_({.method = request.method, .outcome = outcome, .took = runtime::Now() - began});
}

absl::StatusOr<Answer> Requester::Attempt(const Request& request, const std::string& body_sha256) {
  const absl::StatusOr<Keys> keys = KeysOf(options_);
  if (!keys.ok()) return absl::FailedPreconditionError(std::string(keys.status().message()));
  std::unique_ptr<Connection> connection = TakeConnection();
  Headers headers;
  headers.Add("x-amz-content-sha256: " + body_sha256);
  if (!keys->token.empty()) headers.Add("x-amz-security-token: " + keys->token);
  headers.Add("Content-Type: application/octet-stream");
  if (request.only_new) headers.Add("If-None-Match: *");
  // A server's refusal may be longer than a small range.
  Coming coming{.bytes_max = std::max(request.range ? request.range->count : kAnswerBytesMax,
                                      std::size_t{64} << 10),
                .stopping = &stopping_};
  Configure(*connection, *keys);
  SetRequest(connection->curl, request);
  Set(connection->curl, CURLOPT_HTTPHEADER, headers.list());
  Set(connection->curl, CURLOPT_WRITEDATA, &coming);
  Set(connection->curl, CURLOPT_HEADERDATA, &coming);
  Set(connection->curl, CURLOPT_XFERINFODATA, &coming);

  connection->error.front() = '\0';
  const CURLcode code = curl_easy_perform(connection->curl);
  if (code != CURLE_OK) return Failure(*connection, code, AskedOf(request));
  long status = 0;
  curl_off_t length = 0;
  curl_easy_getinfo(connection->curl, CURLINFO_RESPONSE_CODE, &status);
  curl_easy_getinfo(connection->curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
  GiveBack(std::move(connection));
  coming.answer.status = static_cast<int>(status);
  coming.answer.content_length = length > 0 ? static_cast<std::uint64_t>(length) : 0;
  const std::size_t came = coming.answer.body.size();
  if (request.range && status / 100 == 2 && came != request.range->count) {
    const Asked asked = AskedOf(request);
    return absl::UnavailableError("blobs: " + asked.name + ": " + asked.what + ": found " +
                                  std::to_string(came) + " bytes, wanted are " +
                                  std::to_string(request.range->count));
  }
  return std::move(coming.answer);
}

// What all requests have.
void Requester::Configure(Connection& connection, const Keys& keys) const {
  CURL* const curl = connection.curl;
  const std::string signature = "aws:amz:" + options_.region + ":s3";
  Set(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  Set(curl, CURLOPT_NOSIGNAL, 1L);
  Set(curl, CURLOPT_PATH_AS_IS, 1L);
  Set(curl, CURLOPT_ERRORBUFFER, connection.error.data());
  Set(curl, CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  Set(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
  Set(curl, CURLOPT_LOW_SPEED_TIME, static_cast<long>(ToSeconds(options_.silence)));
  Set(curl, CURLOPT_TCP_KEEPALIVE, 1L);
  Set(curl, CURLOPT_AWS_SIGV4, signature.c_str());
  Set(curl, CURLOPT_USERNAME, keys.id.c_str());
  Set(curl, CURLOPT_PASSWORD, keys.secret.c_str());
  Set(curl, CURLOPT_WRITEFUNCTION, TakeBody);
  Set(curl, CURLOPT_HEADERFUNCTION, TakeHeader);
  Set(curl, CURLOPT_XFERINFOFUNCTION, KeepOn);
  Set(curl, CURLOPT_NOPROGRESS, 0L);
  if (!options_.authority_file.empty()) Set(curl, CURLOPT_CAINFO, options_.authority_file.c_str());
}

void Requester::SetRequest(void* curl, const Request& request) const {
  const std::string url = address_ + (request.key.empty() ? "" : "/" + request.key) +
                          (request.query.empty() ? "" : "?" + request.query);
  Set(curl, CURLOPT_URL, url.c_str());
  if (request.method == "PUT" || request.method == "POST") {
    Set(curl, CURLOPT_POSTFIELDS, request.body.empty() ? "" : request.body.data());
    Set(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
  }
  if (request.method == "HEAD") Set(curl, CURLOPT_NOBODY, 1L);
  if (request.method != "GET" && request.method != "HEAD") {
    Set(curl, CURLOPT_CUSTOMREQUEST, request.method.c_str());
  }
  if (!request.range) return;
  const std::uint64_t last = request.range->offset + request.range->count - 1;
  const std::string range = std::to_string(request.range->offset) + "-" + std::to_string(last);
  Set(curl, CURLOPT_RANGE, range.c_str());
}

}  // namespace tactus::bucket
