#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "coordinator/shell/event_history.h"
#include "coordinator/shell/job_watchers.h"
#include "coordinator/shell/watch_queue.h"
#include "runtime/status.h"

namespace tactus::service {
namespace {

using ::testing::ElementsAre;

v1::JobEvent Progress(std::uint64_t rounds) {
  v1::JobEvent event;
  event.mutable_progress()->set_rounds(rounds);
  return event;
}

v1::JobEvent Change(const std::string& etag) {
  v1::JobEvent event;
  event.mutable_job()->set_etag(etag);
  return event;
}

v1::JobEvent Decision(std::uint64_t version) {
  v1::JobEvent event;
  event.mutable_decision()->set_version(version);
  return event;
}

v1::JobEvent Bookmark(const std::string& token) {
  v1::JobEvent event;
  event.mutable_bookmark();
  event.set_resume_token(token);
  return event;
}

SharedEvent Shared(v1::JobEvent event) {
  return std::make_shared<const v1::JobEvent>(std::move(event));
}

// ---- What waits for one watcher

TEST(WatchQueueTest, OnlyTheNewestProgressWaitsAndChangesAllDo) {
  WatchQueue queue;
  ASSERT_TRUE(queue.Push(Shared(Progress(1))));
  ASSERT_TRUE(queue.Push(Shared(Change("a"))));
  ASSERT_TRUE(queue.Push(Shared(Progress(2))));
  ASSERT_TRUE(queue.Push(Shared(Change("b"))));

  EXPECT_EQ(queue.Pop()->job().etag(), "a");
  EXPECT_EQ(queue.Pop()->progress().rounds(), 2u);
  EXPECT_EQ(queue.Pop()->job().etag(), "b");
  EXPECT_EQ(queue.Pop(), nullptr);
}

TEST(WatchQueueTest, OfDecisionsTheNewestAreKept) {
  WatchQueue queue;
  for (std::uint64_t i = 0; i <= WatchQueue::kDecisionsMax; ++i) {
    ASSERT_TRUE(queue.Push(Shared(Decision(i))));
  }

  EXPECT_EQ(queue.size(), WatchQueue::kDecisionsMax);
  EXPECT_EQ(queue.Pop()->decision().version(), 1u);
}

TEST(WatchQueueTest, OnlyTheNewestBookmarkWaits) {
  WatchQueue queue;
  ASSERT_TRUE(queue.Push(Shared(Bookmark("1"))));
  ASSERT_TRUE(queue.Push(Shared(Bookmark("2"))));

  EXPECT_EQ(queue.size(), 1u);
  EXPECT_EQ(queue.Pop()->resume_token(), "2");
}

TEST(WatchQueueTest, AWatcherTooFarBehindIsCutOff) {
  WatchQueue queue;
  for (std::size_t i = 0; i < WatchQueue::kJobsMax; ++i) {
    ASSERT_TRUE(queue.Push(Shared(Change("x"))));
  }

  EXPECT_FALSE(queue.Push(Shared(Change("y"))));
}

TEST(WatchQueueTest, BytesThatWaitAreBoundedButOneEventMayBeLarger) {
  WatchQueue queue;
  const std::string half(WatchQueue::kBytesMax / 2, 'x');

  ASSERT_TRUE(queue.Push(Shared(Change(half + half + half))));
  EXPECT_FALSE(queue.Push(Shared(Change("y"))));
  queue.Pop();
  ASSERT_TRUE(queue.Push(Shared(Change(half))));
  EXPECT_FALSE(queue.Push(Shared(Change(half))));
}

// ---- What is kept for those who come back

constexpr JobId kWatched{7};

std::vector<std::string> EtagsOf(const std::vector<SharedEvent>& events) {
  std::vector<std::string> etags;
  for (const SharedEvent& event : events) etags.push_back(event->job().etag());
  return etags;
}

TEST(EventHistoryTest, AfterATokenComesWhatFollowedIt) {
  EventHistory history("life");
  history.Keep(kWatched, "uid");
  const std::string start = history.Token("uid");
  history.Add(kWatched, Change("1"));
  const std::string first = history.Add(kWatched, Change("2"))->resume_token();
  history.Add(kWatched, Change("3"));

  EXPECT_THAT(EtagsOf(*history.After(kWatched, "uid", start)), ElementsAre("1", "2", "3"));
  EXPECT_THAT(EtagsOf(*history.After(kWatched, "uid", first)), ElementsAre("3"));
  EXPECT_THAT(EtagsOf(*history.After(kWatched, "uid", history.Token("uid"))), ElementsAre());
}

TEST(EventHistoryTest, OfAJobTheLastEventsAreKept) {
  EventHistory history("life");
  history.Keep(kWatched, "uid");
  const std::string start = history.Token("uid");
  const std::string first = history.Add(kWatched, Change("first"))->resume_token();
  for (std::size_t i = 0; i < EventHistory::kEventsMax; ++i) history.Add(kWatched, Change("x"));

  EXPECT_EQ(history.After(kWatched, "uid", first)->size(), EventHistory::kEventsMax);
  const absl::Status expired = history.After(kWatched, "uid", start).status();
  EXPECT_TRUE(absl::IsOutOfRange(expired)) << expired;
  EXPECT_EQ(runtime::ReasonOf(expired).reason, "WATCH_EXPIRED");
}

TEST(EventHistoryTest, TheOldestEventsOfAllJobsGoWhenThereAreTooManyBytes) {
  EventHistory history("life");
  const std::string large(EventHistory::kBytesMax / 8, 'x');
  history.Keep(JobId{1}, "one");
  history.Keep(JobId{2}, "two");
  const std::string one = history.Token("one");
  history.Add(JobId{1}, Change(large));
  const std::string two = history.Token("two");
  for (int i = 0; i < 7; ++i) history.Add(JobId{2}, Change(large));

  EXPECT_LE(history.bytes(), EventHistory::kBytesMax);
  EXPECT_TRUE(absl::IsOutOfRange(history.After(JobId{1}, "one", one).status()));
  EXPECT_EQ(history.After(JobId{2}, "two", two)->size(), 7u);
}

TEST(EventHistoryTest, AJobThatIsOverIsKeptUntilOthersCome) {
  EventHistory history("life");
  history.Keep(JobId{1}, "one");
  const std::string token = history.Token("one");
  history.Add(JobId{1}, Change("end"));
  history.Over(JobId{1});
  EXPECT_THAT(EtagsOf(*history.After(JobId{1}, "one", token)), ElementsAre("end"));

  for (std::uint64_t i = 2; i <= EventHistory::kOverMax + 1; ++i) {
    history.Keep(JobId{i}, "other");
    history.Over(JobId{i});
  }

  EXPECT_TRUE(absl::IsOutOfRange(history.After(JobId{1}, "one", token).status()));
  EXPECT_EQ(history.bytes(), 0u);
}

TEST(EventHistoryTest, ATokenOfAnotherLifeHasExpired) {
  EventHistory before("before");
  EventHistory history("now");
  history.Keep(kWatched, "uid");

  const absl::Status status = history.After(kWatched, "uid", before.Token("uid")).status();

  EXPECT_TRUE(absl::IsOutOfRange(status));
  EXPECT_EQ(runtime::ReasonOf(status).reason, "WATCH_EXPIRED");
}

TEST(EventHistoryTest, WhatIsNoTokenOfTheJobIsRefused) {
  EventHistory history("now");
  history.Keep(kWatched, "uid");

  for (const std::string& token :
       {std::string("x"), std::string("."), std::string(".."), std::string("uid.now."),
        std::string("uid.now.-1"), std::string("uid.now.1x"), std::string("uid.now.1"),
        std::string("uid.now.99999999999999999999"), history.Token("other"),
        std::string(1000, '.')}) {
    const absl::Status status = history.After(kWatched, "uid", token).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << token << ": " << status;
    EXPECT_EQ(runtime::FieldViolations(status)[0].field, "resume_token");
  }
}

// ---- Who watches

class Recorder final : public JobWatcher {
 public:
  explicit Recorder(std::string peer) : peer_(std::move(peer)) {}
  const std::string& peer() const override { return peer_; }
  void OnEvent(const SharedEvent& event) override { events.push_back(event); }
  void OnEnd(const absl::Status&) override { ++ends; }

  std::vector<SharedEvent> events;
  int ends = 0;

 private:
  const std::string peer_;
};

std::shared_ptr<Recorder> Of(const std::string& peer) { return std::make_shared<Recorder>(peer); }

TEST(JobWatchersTest, AConnectionHasItsShareAndOthersTheirs) {
  JobWatchers watchers;
  std::vector<std::shared_ptr<Recorder>> greedy;
  for (std::size_t i = 0; i < JobWatchers::kOfConnectionMax; ++i) {
    greedy.push_back(Of("ipv4:10.0.0.1:1"));
    ASSERT_TRUE(watchers.Add(kWatched, greedy.back()).ok());
  }

  const absl::Status refused = watchers.Add(kWatched, Of("ipv4:10.0.0.1:1"));
  EXPECT_TRUE(absl::IsResourceExhausted(refused));
  EXPECT_EQ(runtime::ReasonOf(refused).reason, "TOO_MANY_WATCHES");
  EXPECT_TRUE(watchers.Add(kWatched, Of("ipv4:10.0.0.1:2")).ok());
  EXPECT_TRUE(watchers.Add(kWatched, Of("ipv4:10.0.0.2:1")).ok());

  watchers.Remove(greedy.front().get());
  EXPECT_TRUE(watchers.Add(kWatched, Of("ipv4:10.0.0.1:1")).ok());
}

TEST(JobWatchersTest, AHostHasItsShareOverAllConnections) {
  JobWatchers watchers;
  for (std::size_t i = 0; i < JobWatchers::kOfHostMax; ++i) {
    ASSERT_TRUE(watchers.Add(kWatched, Of("ipv4:10.0.0.1:" + std::to_string(i))).ok());
  }

  EXPECT_TRUE(absl::IsResourceExhausted(watchers.Add(kWatched, Of("ipv4:10.0.0.1:9999"))));
  EXPECT_TRUE(watchers.Add(kWatched, Of("ipv4:10.0.0.11:1")).ok());
}

TEST(JobWatchersTest, TheCoordinatorHasItsBound) {
  JobWatchers watchers;
  for (std::size_t i = 0; i < JobWatchers::kWatchersMax; ++i) {
    ASSERT_TRUE(watchers.Add(JobId{i}, Of("ipv4:10.0." + std::to_string(i) + ".1:1")).ok());
  }

  EXPECT_TRUE(absl::IsResourceExhausted(watchers.Add(kWatched, Of("ipv4:10.1.0.1:1"))));
  watchers.EndAll(absl::OkStatus());
  EXPECT_TRUE(watchers.Add(kWatched, Of("ipv4:10.1.0.1:1")).ok());
}

TEST(JobWatchersTest, WhoHearsNothingForFiveBeatsGetsABookmark) {
  JobWatchers watchers;
  const auto quiet = Of("ipv4:10.0.0.1:1");
  const auto busy = Of("ipv4:10.0.0.1:2");
  ASSERT_TRUE(watchers.Add(JobId{1}, quiet).ok());
  ASSERT_TRUE(watchers.Add(JobId{2}, busy).ok());
  const auto bookmark = [](JobId job) { return Shared(Bookmark(std::to_string(job.value))); };

  for (int i = 1; i < JobWatchers::kQuietBeatsMax; ++i) watchers.Beat(bookmark);
  EXPECT_TRUE(quiet->events.empty());
  watchers.Publish(JobId{2}, Shared(Change("a")));
  watchers.Beat(bookmark);

  ASSERT_EQ(quiet->events.size(), 1u);
  EXPECT_TRUE(quiet->events[0]->has_bookmark());
  EXPECT_EQ(quiet->events[0]->resume_token(), "1");
  ASSERT_EQ(busy->events.size(), 1u);
  EXPECT_TRUE(busy->events[0]->has_job());
}

TEST(JobWatchersTest, AHostIsAPeerWithoutItsPort) {
  EXPECT_EQ(HostOf("ipv4:10.0.0.1:5000"), "ipv4:10.0.0.1");
  EXPECT_EQ(HostOf("ipv6:%5B::1%5D:5000"), "ipv6:%5B::1%5D");
  EXPECT_EQ(HostOf("unix:/run/tactus"), "unix:/run/tactus");
}

}  // namespace
}  // namespace tactus::service
