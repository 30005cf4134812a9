// The status page's paths, at a coordinator with an agent that does what the test says.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/coordinator/fake_agent.h"
#include "tests/coordinator/server_fixture.h"
#include "tests/support/http/http_client.h"

namespace tactus::service {
namespace {

using support::HttpClient;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class PageTest : public ServerFixture {
 protected:
  PageTest() { options_.metrics_listen = "127.0.0.1:0"; }

  std::string Get(const std::string& target) const {
    return support::Get(server_->metrics_address(), target);
  }
  // The id of a new job, which waits: there are no devices.
  std::string NewJob() {
    const auto job = Create(SmallSpec());
    EXPECT_TRUE(job.ok()) << job.status();
    return job->name().substr(job->name().rfind('/') + 1);
  }
  std::unique_ptr<HttpClient> OpenEvents(const std::string& job) const {
    auto client = std::make_unique<HttpClient>(server_->metrics_address());
    client->Ask("GET", "/events?job=" + job);
    return client;
  }
};

TEST_F(PageTest, TheFilesAreServedWithTheirTypes) {
  EXPECT_THAT(Get("/"), AllOf(StartsWith("HTTP/1.1 200 OK\r\n"),
                              HasSubstr("Content-Type: text/html; charset=utf-8\r\n"),
                              HasSubstr("<title>Tactus</title>")));
  EXPECT_THAT(Get("/app.js"), HasSubstr("Content-Type: text/javascript; charset=utf-8\r\n"));
  EXPECT_THAT(Get("/style.css"), HasSubstr("Content-Type: text/css; charset=utf-8\r\n"));
}

TEST_F(PageTest, JobsAndNodesAreJson) {
  const std::string job = NewJob();

  EXPECT_THAT(Get("/api/jobs"), AllOf(StartsWith("HTTP/1.1 200 OK\r\n"),
                                      HasSubstr("Content-Type: application/json\r\n"),
                                      HasSubstr("\"name\":\"projects/default/jobs/" + job + "\"")));
  EXPECT_THAT(Get("/api/job?job=" + job), HasSubstr("\"state\":\"JOB_STATE_QUEUED\""));
  EXPECT_THAT(Get("/api/job?job=projects/default/jobs/" + job), HasSubstr("\"spec\":{"));
  EXPECT_THAT(Get("/api/rounds?job=" + job + "&points=10"), EndsWith("\r\n\r\n{}"));
  EXPECT_THAT(Get("/api/decisions?job=" + job), EndsWith("\r\n\r\n{}"));
  EXPECT_THAT(Get("/api/logs?job=" + job), EndsWith("\r\n\r\n{\"entries\":[],\"more\":false}"));
  EXPECT_THAT(Get("/api/nodes"), EndsWith("\r\n\r\n{}"));
}

TEST_F(PageTest, AJobThatIsNotThereIs404InAPlainLine) {
  for (const char* path : {"/api/job", "/api/rounds", "/api/decisions", "/api/logs"}) {
    EXPECT_THAT(Get(std::string(path) + "?job=none-77"),
                AllOf(StartsWith("HTTP/1.1 404 Not Found\r\n"), HasSubstr("no such job")))
        << path;
  }
}

TEST_F(PageTest, LogLinesAreReadOnBehindTheLastEntry) {
  FakeAgent agent(server_->address(), "a");
  agent.Connect();
  const std::string job = NewJob();
  const std::uint64_t worker = agent.Read().start_worker().worker_id();
  const std::string first = "first\n<b>\"two\"\n";
  agent.Log(job, worker, 0, first);
  std::string answer;
  ASSERT_TRUE(Eventually([&] {
    answer = Get("/api/logs?job=" + job + "&tail=1");
    return answer.find("\"text\"") != std::string::npos;
  }));
  EXPECT_THAT(answer, AllOf(HasSubstr("two"), Not(HasSubstr("first")), Not(HasSubstr("<b>"))));
  const std::string field = "\"resume_token\":\"";
  const std::size_t at = answer.find(field) + field.size();
  const std::string token = answer.substr(at, answer.find('"', at) - at);

  agent.Log(job, worker, first.size(), "three\n");

  ASSERT_TRUE(Eventually([&] {
    answer = Get("/api/logs?job=" + job + "&resume_token=" + token);
    return answer.find("three") != std::string::npos;
  }));
  EXPECT_THAT(answer, Not(HasSubstr("two")));
}

TEST_F(PageTest, QueriesOutOfRangeAre400) {
  for (const char* target :
       {"/api/job", "/api/job?job=", "/api/job?job=../x", "/api/job?job=a%2Fb", "/api/job?jobs=a",
        "/api/rounds?job=a-1&points=0", "/api/rounds?job=a-1&points=100000",
        "/api/rounds?job=a-1&points=1e3", "/api/rounds?job=a-1&first_round=-1",
        "/api/rounds?job=a-1&first_round=99999999999999999999", "/api/jobs?page_size=-1",
        "/api/jobs?page_size=201", "/api/jobs?page_token=nonsense",
        "/api/jobs?filter=state%3DSLEEPING", "/api/decisions?job=a-1&newest=1001",
        "/api/logs?job=a-1&tail=1001", "/api/nodes?page_size=x", "/events", "/events?job=A"}) {
    EXPECT_THAT(Get(target), StartsWith("HTTP/1.1 400 Bad Request\r\n")) << target;
  }
  EXPECT_THAT(Get("/api/jobs?filter=" + std::string(2000, 'a')), StartsWith("HTTP/1.1 400 "));
}

TEST_F(PageTest, AStreamBeginsWithTheJobAndEndsWithIt) {
  const std::string job = NewJob();
  const auto first = OpenEvents(job);
  EXPECT_THAT(first->ReadUntil("}\n\n"), AllOf(HasSubstr("Content-Type: text/event-stream\r\n"),
                                               HasSubstr("event: job\ndata: {\"name\"")));
  // The second page shares the watch, and begins with the job all the same.
  const auto second = OpenEvents(job);
  EXPECT_THAT(second->ReadUntil("}\n\n"), HasSubstr("event: job\ndata: {\"name\""));

  ASSERT_TRUE(Cancel(job).ok());

  for (const auto& client : {first.get(), second.get()}) {
    const std::string rest = client->ReadToEnd();
    EXPECT_THAT(rest, HasSubstr("\"state\":\"JOB_STATE_CANCELLED\""));
    EXPECT_THAT(rest, EndsWith("event: over\ndata: {}\n\n"));
  }
}

TEST_F(PageTest, AStreamOfAJobThatIsNotThereSaysSoAndEnds) {
  EXPECT_THAT(OpenEvents("none-77")->ReadToEnd(), HasSubstr("event: gone\ndata: "));
}

TEST_F(PageTest, StreamsEndWithTheServer) {
  const std::string job = NewJob();
  std::vector<std::unique_ptr<HttpClient>> open;
  for (int i = 0; i < 50; ++i) {
    open.push_back(OpenEvents(job));
    open.back()->ReadUntil("}\n\n");
  }

  Stop();

  for (const auto& client : open) EXPECT_THAT(client->ReadToEnd(), Not(HasSubstr("event: over")));
}

TEST_F(PageTest, AJobIsWatchedAnewAfterAllHaveLeft) {
  const std::string job = NewJob();
  for (int i = 0; i < 20; ++i) {
    EXPECT_THAT(OpenEvents(job)->ReadUntil("}\n\n"), HasSubstr("event: job\n"));
  }
}

TEST_F(PageTest, JobsBeyondTheBoundAreNotWatched) {
  std::vector<std::unique_ptr<HttpClient>> open;
  bool refused = false;
  for (int i = 0; i < 80 && !refused; ++i) {
    open.push_back(OpenEvents(NewJob()));
    refused = open.back()->ReadUntil("\r\n").starts_with("HTTP/1.1 503 ");
  }

  EXPECT_TRUE(refused);
  EXPECT_EQ(open.size(), 65u);
}

}  // namespace
}  // namespace tactus::service
