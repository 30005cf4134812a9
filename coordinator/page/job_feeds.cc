#include "coordinator/page/job_feeds.h"

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <utility>

#include "coordinator/page/api_calls.h"

namespace tactus::page {
namespace {

// Events of a watch on their way to the server's thread. It takes them as they come; if it ever
// does not, the watch ends, and the pages open it anew.
constexpr int kOnTheirWayMax = 64;

std::shared_ptr<const std::string> Written(const v1::JobEvent& event) {
  switch (event.event_case()) {
    case v1::JobEvent::kJob:
      return runtime::FormatEvent("job", ToJson(event.job()));
    case v1::JobEvent::kProgress:
      return runtime::FormatEvent("progress", ToJson(event.progress()));
    case v1::JobEvent::kDecision:
      return runtime::FormatEvent("decision", ToJson(event.decision()));
    default:
      return nullptr;
  }
}

}  // namespace

// A WatchJob call; alive until it is done, whoever forgets it before.
class JobWatch final : public grpc::ClientReadReactor<v1::JobEvent>,
                       public std::enable_shared_from_this<JobWatch> {
 public:
  // `feeds` is there while its server runs.
  JobWatch(JobFeeds& feeds, JobFeeds::Token token, std::string job)
      : token_(std::move(token)), feeds_(feeds), server_(feeds.server_), job_(std::move(job)) {}

  void Start() {
    self_ = shared_from_this();
    request_.set_name(job_);
    feeds_.jobs_.async()->WatchJob(&context_, &request_, this);
    StartRead(&event_);
    StartCall();
  }

  void Cancel() { context_.TryCancel(); }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    const std::shared_ptr<const std::string> text = Written(event_);
    if (text != nullptr) {
      if (on_their_way_.fetch_add(1) >= kOnTheirWayMax) return context_.TryCancel();
      server_.Post([watch = std::weak_ptr(self_), &feeds = feeds_, job = job_,
                    kind = event_.event_case(), text] {
        const std::shared_ptr<JobWatch> still = watch.lock();
        if (still == nullptr) return;
        still->on_their_way_.fetch_sub(1);
        feeds.Spread(still.get(), job, kind, text);
      });
    }
    StartRead(&event_);
  }

  void OnDone(const grpc::Status& status) override {
    std::shared_ptr<const std::string> last;
    if (status.ok()) {
      last = runtime::FormatEvent("over", "{}");
    } else if (status.error_code() == grpc::StatusCode::NOT_FOUND) {
      last = runtime::FormatEvent("gone", status.error_message());
    }
    // Whatever is posted is dropped when the server stops, and this with it; the token is not to
    // be.
    const JobFeeds::Token until_here = std::move(token_);
    server_.Post([self = std::move(self_), &feeds = feeds_, last] {
      feeds.End(self.get(), self->job_, last);
    });
  }

 private:
  JobFeeds::Token token_;  // until the call is done
  JobFeeds& feeds_;
  runtime::HttpServer& server_;
  const std::string job_;
  std::shared_ptr<JobWatch> self_;  // until the call is done
  grpc::ClientContext context_;
  v1::WatchJobRequest request_;
  v1::JobEvent event_;
  std::atomic<int> on_their_way_ = 0;  // gRPC's threads add, the server's takes away
};

JobFeeds::~JobFeeds() = default;

std::optional<runtime::HttpResponse> JobFeeds::Join(
    const std::string& job, const Token& token,
    const std::shared_ptr<runtime::HttpStream>& reader) {
  auto found = feeds_.find(job);
  if (found == feeds_.end()) {
    if (feeds_.size() >= kJobsMax) {
      return runtime::PlainLine(503, "too many jobs are being watched");
    }
    found = feeds_.emplace(job, Feed{.watch = std::make_shared<JobWatch>(*this, token, job)}).first;
    found->second.watch->Start();
  }
  Feed& feed = found->second;
  feed.readers.insert(reader);
  reader->OnClose([this, job, key = std::weak_ptr(reader)] { Leave(job, key.lock()); });
  if (feed.job != nullptr) reader->Send(feed.job);
  if (feed.progress != nullptr) reader->Send(feed.progress);
  return std::nullopt;
}

void JobFeeds::Close() {
  for (auto& [job, feed] : feeds_) feed.watch->Cancel();
  feeds_.clear();
}

JobFeeds::Feed* JobFeeds::Find(const JobWatch* watch, const std::string& job) {
  const auto found = feeds_.find(job);
  return found != feeds_.end() && found->second.watch.get() == watch ? &found->second : nullptr;
}

void JobFeeds::Spread(const JobWatch* watch, const std::string& job, v1::JobEvent::EventCase kind,
                      const SharedText& text) {
  Feed* const feed = Find(watch, job);
  if (feed == nullptr) return;
  if (kind == v1::JobEvent::kJob) feed->job = text;
  if (kind == v1::JobEvent::kProgress) feed->progress = text;
  // A copy: who breaks off meanwhile leaves the set, and the last one takes the feed along.
  const auto readers = feed->readers;
  for (const auto& reader : readers) reader->Send(text);
}

void JobFeeds::End(const JobWatch* watch, const std::string& job, const SharedText& last) {
  Feed* const feed = Find(watch, job);
  if (feed == nullptr) return;
  const auto readers = std::exchange(feed->readers, {});
  feeds_.erase(job);
  for (const auto& reader : readers) {
    if (last != nullptr) reader->Send(last);
    reader->End();
  }
}

void JobFeeds::Leave(const std::string& job, const std::shared_ptr<runtime::HttpStream>& reader) {
  const auto found = feeds_.find(job);
  if (found == feeds_.end() || found->second.readers.erase(reader) == 0) return;
  if (!found->second.readers.empty()) return;
  const std::shared_ptr<JobWatch> watch = found->second.watch;
  feeds_.erase(found);
  watch->Cancel();
}

}  // namespace tactus::page
