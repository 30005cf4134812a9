// What workers wrote, from an agent's stream to those who read it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/coordinator/fake_agent.h"
#include "tests/coordinator/server_fixture.h"

namespace tactus::service {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A job whose two workers are being started.
class LogsApiTest : public ServerFixture {
 protected:
  void SetUp() override {
    ServerFixture::SetUp();
    agent_ = std::make_unique<FakeAgent>(server_->address(), "a");
    agent_->Connect();
    ASSERT_TRUE(Create(SmallSpec()).ok());
    for (int i = 0; i < 2; ++i) workers_.push_back(agent_->Read().start_worker().worker_id());
  }

  void Log(std::size_t worker, const std::string& text) {
    if (ends_.size() <= worker) ends_.resize(worker + 1);
    agent_->Log("small-1", workers_.at(worker), ends_[worker], text);
    ends_[worker] += text.size();
  }

  // The entries of a stream until it ends or `most` have come.
  std::vector<v1::LogEntry> Stream(const v1::StreamLogsRequest& asked, std::size_t most = 1000,
                                   absl::Status* end = nullptr) {
    v1::StreamLogsRequest request = asked;
    request.set_name("small-1");
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
    const auto reader = jobs_->StreamLogs(&context, request);
    std::vector<v1::LogEntry> entries;
    v1::LogEntry entry;
    while (entries.size() < most && reader->Read(&entry)) entries.push_back(entry);
    if (entries.size() == most) context.TryCancel();
    const absl::Status status = runtime::FromGrpc(reader->Finish());
    if (end != nullptr) *end = status;
    return entries;
  }

  static std::vector<std::string> Texts(const std::vector<v1::LogEntry>& entries) {
    std::vector<std::string> texts;
    for (const v1::LogEntry& entry : entries) texts.push_back(entry.text());
    return texts;
  }

  static std::string Joined(const std::vector<v1::LogEntry>& entries) {
    std::string joined;
    for (const v1::LogEntry& entry : entries) joined += entry.text();
    return joined;
  }

  // Until so many bytes of all workers are kept.
  void Await(std::size_t bytes) {
    ASSERT_TRUE(Eventually([&] { return Joined(Stream({})).size() == bytes; }));
  }

  static v1::StreamLogsRequest OfRank(std::uint32_t rank) {
    v1::StreamLogsRequest request;
    request.add_ranks(rank);
    return request;
  }

  std::unique_ptr<FakeAgent> agent_;
  std::vector<std::uint64_t> workers_;  // by rank
  std::vector<std::uint64_t> ends_;     // of what they wrote
};

TEST_F(LogsApiTest, AWorkersLinesAreReadByItsRank) {
  Log(0, "of the first\n");
  Log(1, "of the second\n");
  Await(27);

  const std::vector<v1::LogEntry> second = Stream(OfRank(1));

  ASSERT_EQ(second.size(), 1u);
  EXPECT_EQ(second[0].text(), "of the second\n");
  EXPECT_EQ(second[0].rank(), 1u);
  EXPECT_EQ(second[0].worker_id(), workers_[1]);
  EXPECT_THAT(Texts(Stream(OfRank(0))), ElementsAre("of the first\n"));
  EXPECT_THAT(Stream(OfRank(7)), IsEmpty());
}

TEST_F(LogsApiTest, OfEachRankTheLastLinesAreRead) {
  Log(0, "1\n2\n3\n");
  Log(1, "4\n5\n6\n7");
  Await(13);
  v1::StreamLogsRequest request;
  request.set_tail_lines(2);

  EXPECT_THAT(Texts(Stream(request)), ElementsAre("2\n3\n", "6\n7"));
  request.add_ranks(1);
  request.set_tail_lines(1);
  EXPECT_THAT(Texts(Stream(request)), ElementsAre("7"));
  request.set_tail_lines(100);
  EXPECT_THAT(Texts(Stream(request)), ElementsAre("4\n5\n6\n7"));
}

TEST_F(LogsApiTest, AReaderGoesOnWhereItsTokenSays) {
  Log(0, "one\n");
  Log(1, "other\n");
  Await(10);
  const std::vector<v1::LogEntry> seen = Stream({});
  ASSERT_EQ(seen.size(), 2u);
  Log(0, "two\n");
  Await(14);

  v1::StreamLogsRequest request;
  request.set_resume_token(seen[1].resume_token());
  EXPECT_THAT(Texts(Stream(request)), ElementsAre("two\n"));
  request.set_resume_token(seen[0].resume_token());
  EXPECT_THAT(Texts(Stream(request)), ElementsAre("two\n", "other\n"));
  // The token outlives the coordinator.
  Stop();
  Start();
  EXPECT_THAT(Texts(Stream(request)), ElementsAre("two\n", "other\n"));
}

TEST_F(LogsApiTest, WhoFollowsGetsWhatComesUntilTheJobIsOver) {
  Log(0, "one\n");
  Await(4);
  v1::StreamLogsRequest follow;
  follow.set_follow(true);
  follow.set_name("small-1");
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
  const auto reader = jobs_->StreamLogs(&context, follow);
  v1::LogEntry entry;
  ASSERT_TRUE(reader->Read(&entry));
  EXPECT_EQ(entry.text(), "one\n");

  Log(0, "two\n");
  ASSERT_TRUE(reader->Read(&entry));
  EXPECT_EQ(entry.text(), "two\n");
  ASSERT_TRUE(Cancel("small-1").ok());

  EXPECT_FALSE(reader->Read(&entry));
  EXPECT_TRUE(runtime::FromGrpc(reader->Finish()).ok());
}

TEST_F(LogsApiTest, WhatIsNotProperIsRefusedByItsField) {
  absl::Status end;
  v1::StreamLogsRequest token;
  token.set_resume_token("garbage");
  EXPECT_THAT(Stream(token, 1, &end), IsEmpty());
  EXPECT_EQ(runtime::ReasonOf(end).reason, "INVALID_RESUME_TOKEN");
  v1::StreamLogsRequest tail;
  tail.set_tail_lines(1'000'001);
  EXPECT_THAT(Stream(tail, 1, &end), IsEmpty());
  EXPECT_EQ(runtime::FieldViolations(end).at(0).field, "tail_lines");
  v1::StreamLogsRequest ranks;
  for (std::uint32_t rank = 0; rank <= 4096; ++rank) ranks.add_ranks(rank);
  EXPECT_THAT(Stream(ranks, 1, &end), IsEmpty());
  EXPECT_EQ(runtime::FieldViolations(end).at(0).field, "ranks");
}

}  // namespace
}  // namespace tactus::service
