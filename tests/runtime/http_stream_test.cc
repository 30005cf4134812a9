#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/http_server.h"
#include "tests/support/http/http_client.h"

namespace tactus::runtime {
namespace {

using support::Get;
using support::HttpClient;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

const std::string kBegin = "retry: 3000\n\n";

// A server whose /events are all sent what the test sends.
class HttpStreamTest : public ::testing::Test {
 protected:
  void Start(const HttpOptions& options = {}) {
    auto opened = HttpServer::Open(options);
    ASSERT_TRUE(opened.ok()) << opened.status();
    server_ = *std::move(opened);
    server_->RouteStream(
        "/events",
        [this](const HttpRequest& request,
               const std::shared_ptr<HttpStream>& stream) -> std::optional<HttpResponse> {
          if (request.query.contains("refuse")) return PlainLine(400, "not this one");
          streams_.push_back(stream);
          stream->OnClose([this] {
            if (!std::exchange(told_, true)) left_.set_value();
          });
          return std::nullopt;
        });
    server_->Route("/plain", [](const HttpRequest&) { return HttpResponse{.body = "plain"}; });
    server_->Start();
  }

  void SendAll(const std::shared_ptr<const std::string>& event, int times = 1) {
    std::promise<void> sent;
    server_->Post([&] {
      for (int i = 0; i < times; ++i) {
        for (const auto& stream : streams_) stream->Send(event);
      }
      sent.set_value();
    });
    sent.get_future().wait();
  }

  const std::string& address() const { return server_->address(); }

  std::vector<std::shared_ptr<HttpStream>> streams_;  // of the server's thread
  std::promise<void> left_;                           // once the first stream is closed
  bool told_ = false;                                 // of the server's thread
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpStreamTest, EventsOfSeveralLinesKeepThem) {
  EXPECT_EQ(*FormatEvent("job", "a\nb\r\nc"), "event: job\ndata: a\ndata: b\ndata: c\n\n");
}

TEST_F(HttpStreamTest, EveryReaderGetsEveryEvent) {
  Start();
  HttpClient first(address());
  first.Ask("GET", "/events");
  const std::string head = first.ReadUntil(kBegin);
  HttpClient second(address());
  second.Ask("GET", "/events");
  second.ReadUntil(kBegin);

  SendAll(FormatEvent("job", "1"));
  SendAll(FormatEvent("job", "2"));

  EXPECT_THAT(head, AllOf(StartsWith("HTTP/1.1 200 OK\r\n"),
                          HasSubstr("Content-Type: text/event-stream\r\n"),
                          Not(HasSubstr("Content-Length"))));
  const std::string both = "event: job\ndata: 1\n\nevent: job\ndata: 2\n\n";
  EXPECT_EQ(first.ReadUntil("2\n\n"), both);
  EXPECT_EQ(second.ReadUntil("2\n\n"), both);
}

TEST_F(HttpStreamTest, AStreamMayBeRefused) {
  Start();
  HttpClient client(address());

  client.Ask("GET", "/events?refuse=1");

  EXPECT_THAT(client.ReadToEnd(),
              AllOf(StartsWith("HTTP/1.1 400 "), EndsWith("\r\n\r\nnot this one\n")));
}

TEST_F(HttpStreamTest, AReaderThatFallsBehindIsToldAndHoldsNothingUp) {
  Start({.stream_bytes_max = 64 << 10});
  HttpClient slow(address(), 4096);
  slow.Ask("GET", "/events");
  slow.ReadUntil(kBegin);
  HttpClient quick(address());
  quick.Ask("GET", "/events");
  quick.ReadUntil(kBegin);
  const auto large = FormatEvent("job", std::string(32 << 10, 'x'));

  // Far more than the sockets' buffers take, for one who reads nothing.
  std::size_t got = 0;
  for (int i = 0; i < 1000; ++i) {
    SendAll(large);
    got += quick.ReadUntil("\n\n").size();
  }
  SendAll(FormatEvent("job", "last"));

  EXPECT_EQ(got, 1000 * large->size());
  EXPECT_EQ(quick.ReadUntil("\n\n"), "event: job\ndata: last\n\n");
  const std::string rest = slow.ReadUntil("last\n\n");
  EXPECT_THAT(rest, HasSubstr("event: lagging\ndata: {}\n\n"));
  EXPECT_THAT(rest, EndsWith("event: job\ndata: last\n\n"));
  EXPECT_LT(rest.size(), 500 * large->size());
}

TEST_F(HttpStreamTest, EventsThatWaitAreCountedToo) {
  Start({.stream_events_max = 8});
  HttpClient client(address());
  client.Ask("GET", "/events");
  client.ReadUntil(kBegin);

  // In one go, so that all but the first write wait.
  SendAll(FormatEvent("job", "1"), 100);
  SendAll(FormatEvent("job", "last"));

  EXPECT_THAT(client.ReadUntil("last\n\n"), HasSubstr("event: lagging\n"));
}

TEST_F(HttpStreamTest, AReaderThatTakesNothingAtAllIsCutOff) {
  Start({.send_timeout = std::chrono::milliseconds(100), .beat = std::chrono::milliseconds(20)});
  HttpClient slow(address(), 4096);
  slow.Ask("GET", "/events");
  slow.ReadUntil(kBegin);

  SendAll(FormatEvent("job", std::string(8 << 20, 'x')));

  left_.get_future().wait();
  EXPECT_LT(slow.ReadToEnd().size(), std::size_t{8} << 20);
}

TEST_F(HttpStreamTest, AQuietStreamGetsAComment) {
  Start({.beat = std::chrono::milliseconds(20)});
  HttpClient client(address());
  client.Ask("GET", "/events");
  client.ReadUntil(kBegin);

  EXPECT_EQ(client.ReadUntil("\n\n"), ":\n\n");
}

TEST_F(HttpStreamTest, WhoLeavesIsNoticed) {
  Start();
  {
    HttpClient client(address());
    client.Ask("GET", "/events");
    client.ReadUntil(kBegin);
  }

  left_.get_future().wait();
  SendAll(FormatEvent("job", "to nobody"));
}

TEST_F(HttpStreamTest, WhoGoesOnTalkingIsCutOff) {
  Start();
  HttpClient client(address());
  client.Ask("GET", "/events");
  client.ReadUntil(kBegin);

  client.Ask("GET", "/plain");

  left_.get_future().wait();
  EXPECT_THAT(client.ReadToEnd(), Not(HasSubstr("plain")));
}

TEST_F(HttpStreamTest, EndSendsWhatWaits) {
  Start();
  HttpClient client(address());
  client.Ask("GET", "/events");
  client.ReadUntil(kBegin);

  server_->Post([this] {
    streams_[0]->Send(FormatEvent("gone", "the job was deleted"));
    streams_[0]->End();
    streams_[0]->Send(FormatEvent("job", "too late"));
  });

  EXPECT_EQ(client.ReadToEnd(), "event: gone\ndata: the job was deleted\n\n");
}

TEST_F(HttpStreamTest, StreamsLeaveRoomForRequests) {
  Start({.streams_max = 2});
  std::vector<std::unique_ptr<HttpClient>> open;
  for (int i = 0; i < 2; ++i) {
    open.push_back(std::make_unique<HttpClient>(address()));
    open.back()->Ask("GET", "/events");
    open.back()->ReadUntil(kBegin);
  }

  EXPECT_THAT(Get(address(), "/events"), StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(Get(address(), "/plain"), StartsWith("HTTP/1.1 200 "));
}

TEST_F(HttpStreamTest, StopEndsOpenStreamsAndTellsNobody) {
  Start();
  HttpClient client(address());
  client.Ask("GET", "/events");
  client.ReadUntil(kBegin);

  server_->Stop();

  EXPECT_THAT(client.ReadToEnd(), IsEmpty());
  EXPECT_EQ(left_.get_future().wait_for(std::chrono::seconds(0)), std::future_status::timeout);
}

}  // namespace
}  // namespace tactus::runtime
