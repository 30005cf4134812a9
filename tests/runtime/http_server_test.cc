#include "runtime/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

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

// A server with one page of each kind: /plain says its query, /later is answered by the test.
class HttpServerTest : public ::testing::Test {
 protected:
  void Start(const HttpOptions& options = {}) {
    auto opened = HttpServer::Open(options);
    ASSERT_TRUE(opened.ok()) << opened.status();
    server_ = *std::move(opened);
    server_->Route("/plain", [](const HttpRequest& request) {
      std::string body = request.path;
      for (const auto& [name, value] : request.query) body += " " + name + "=" + value;
      return HttpResponse{.body = body};
    });
    server_->Route("/large", [](const HttpRequest&) {
      return HttpResponse{.body = std::string(8 << 20, 'x')};
    });
    server_->RouteLater("/later", [this](const HttpRequest&, HttpServer::Reply reply) {
      later_.set_value(std::move(reply));
    });
    server_->Start();
  }
  const std::string& address() const { return server_->address(); }

  std::promise<HttpServer::Reply> later_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, AnswersAGetWithItsPathAndQuery) {
  Start();

  const std::string answer = Get(address(), "/plain?b=2&a=x%20y+z");

  EXPECT_THAT(answer,
              AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), EndsWith("\r\n\r\n/plain a=x y z b=2"),
                    HasSubstr("Content-Type: text/plain; charset=utf-8\r\n"),
                    HasSubstr("Content-Length: 18\r\n"), HasSubstr("Date: ")));
}

TEST_F(HttpServerTest, EveryAnswerHasTheSecurityHeaders) {
  Start();

  for (const char* target : {"/plain", "/nothing", "/plain?%"}) {
    const std::string answer = Get(address(), target);
    EXPECT_THAT(answer,
                AllOf(HasSubstr("Content-Security-Policy: default-src 'none'; script-src 'self'; "
                                "style-src 'self'; img-src 'self'; connect-src 'self'; base-uri "
                                "'none'; frame-ancestors 'none'; form-action 'none'\r\n"),
                      HasSubstr("X-Content-Type-Options: nosniff\r\n"),
                      HasSubstr("Referrer-Policy: no-referrer\r\n"),
                      HasSubstr("Cache-Control: no-store\r\n")))
        << target;
  }
}

TEST_F(HttpServerTest, HeadSendsTheHeadAlone) {
  Start();
  HttpClient client(address());

  client.Ask("HEAD", "/plain");
  const std::string head = client.ReadAnswer(false);
  client.Ask("GET", "/plain", "Connection: close\r\n");
  const std::string rest = client.ReadToEnd();

  EXPECT_THAT(head, HasSubstr("Content-Length: 6\r\n"));
  EXPECT_THAT(rest, AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), EndsWith("\r\n\r\n/plain"),
                          HasSubstr("Connection: close\r\n")));
}

struct Refused {
  std::string bytes;
  std::string status;
};

TEST_F(HttpServerTest, WhatIsNotARequestIsRefusedInAPlainLine) {
  Start({.header_bytes_max = 8 << 10});
  const std::string host = " HTTP/1.1\r\nHost: 127.0.0.1\r\n";
  const std::vector<Refused> all = {
      {"GET /nothing" + host + "\r\n", "404 Not Found"},
      {"POST /plain" + host + "Content-Length: 3\r\n\r\nabc", "405 Method Not Allowed"},
      {"DELETE /plain" + host + "\r\n", "405 Method Not Allowed"},
      {"BREW /plain" + host + "\r\n", "405 Method Not Allowed"},
      {"GET /plain" + host + "Content-Length: 3\r\n\r\nabc", "413 Payload Too Large"},
      {"GET /plain" + host + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "413 Payload"},
      {"GET /" + std::string(5000, 'a') + host + "\r\n", "414 URI Too Long"},
      {"GET /" + std::string(500'000, 'a') + host + "\r\n", "414 URI Too Long"},
      {"GET /plain" + host + "A: " + std::string(9000, 'a') + "\r\n\r\n", "431 Request Header"},
      {"GET /plain HTTP/1.1\r\n\r\n", "400 Bad Request"},
      {"GET /plain" + host + "Host: 127.0.0.1\r\n\r\n", "400 Bad Request"},
      {"GET plain" + host + "\r\n", "400 Bad Request"},
      {"GET /plain?%zz" + host + "\r\n", "400 Bad Request"},
      {"GET /plain?a=%ff" + host + "\r\n", "400 Bad Request"},
      {"GET /plain?a=1&a=2" + host + "\r\n", "400 Bad Request"},
      {"GET /%00" + host + "\r\n", "400 Bad Request"},
      {"\x16\x03\x01\x02\r\n\r\n", "400 Bad Request"},
      {"GET /plain HTTP/3.7\r\nHost: 127.0.0.1\r\n\r\n", "505 HTTP Version"},
  };

  for (const Refused& refused : all) {
    HttpClient client(address());
    client.Send(refused.bytes);
    const std::string answer = client.ReadAnswer();
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 " + refused.status)) << refused.bytes.substr(0, 80);
    EXPECT_THAT(answer, EndsWith("\n")) << refused.bytes.substr(0, 80);
  }

  EXPECT_THAT(Get(address(), "/plain"), StartsWith("HTTP/1.1 200 OK"));
}

TEST_F(HttpServerTest, ALoopbackAddressAnswersNoForeignHost) {
  Start();
  for (const char* host :
       {"localhost:1", "127.0.0.1", "[::1]:80", "localhost", "LOCALHOST:80", "LocalHost"}) {
    HttpClient client(address());
    client.Send("GET /plain HTTP/1.1\r\nHost: " + std::string(host) + "\r\n\r\n");
    EXPECT_THAT(client.ReadAnswer(), StartsWith("HTTP/1.1 200 ")) << host;
  }
  for (const char* host : {"evil.example", "localhost.evil.example:1", "127.0.0.1.evil.example"}) {
    HttpClient client(address());
    client.Send("GET /plain HTTP/1.1\r\nHost: " + std::string(host) + "\r\n\r\n");
    EXPECT_THAT(client.ReadAnswer(), StartsWith("HTTP/1.1 421 ")) << host;
  }
}

// 127.1 is a name here: only resolvers take it for 127.0.0.1.
TEST_F(HttpServerTest, ALoopbackAddressAnswersToTheNameItWasGiven) {
  Start({.address = "127.1:0"});
  const std::string port = address().substr(address().rfind(':'));
  HttpClient client("127.0.0.1" + port);

  client.Send("GET /plain HTTP/1.1\r\nHost: 127.1" + port + "\r\n\r\n");

  EXPECT_THAT(client.ReadAnswer(), StartsWith("HTTP/1.1 200 "));
}

TEST_F(HttpServerTest, PipelinedRequestsAreAnsweredInTheirOrder) {
  Start();
  HttpClient client(address());
  std::string requests;
  for (int i = 0; i < 200; ++i) {
    requests += "GET /plain?n=" + std::to_string(i) + " HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
  }

  client.Send(requests);

  for (int i = 0; i < 200; ++i) {
    EXPECT_THAT(client.ReadAnswer(), EndsWith("/plain n=" + std::to_string(i)));
  }
}

TEST_F(HttpServerTest, ARequestMayComeInPieces) {
  Start();
  HttpClient client(address());

  for (const char c : std::string("GET /plain HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")) {
    client.Send(std::string(1, c));
  }

  EXPECT_THAT(client.ReadAnswer(), EndsWith("\r\n\r\n/plain"));
}

TEST_F(HttpServerTest, OldClientsGetOneAnswerAConnection) {
  Start();
  HttpClient client(address());

  client.Send("GET /plain HTTP/1.0\r\n\r\n");

  EXPECT_THAT(client.ReadToEnd(), AllOf(HasSubstr("Connection: close\r\n"), EndsWith("/plain")));
}

TEST_F(HttpServerTest, HalfARequestIsCutOffAndHoldsUpNobody) {
  Start({.request_timeout = std::chrono::milliseconds(300)});
  HttpClient slow(address());
  slow.Send("GET /plain HTTP/1.1\r\nHost: 127.");

  EXPECT_THAT(Get(address(), "/plain"), StartsWith("HTTP/1.1 200 OK"));
  EXPECT_THAT(slow.ReadToEnd(), IsEmpty());
}

TEST_F(HttpServerTest, AClientThatSendsNoMoreStillGetsItsAnswer) {
  Start();
  HttpClient client(address());

  client.Ask("GET", "/plain");
  client.ShutdownSend();

  EXPECT_THAT(client.ReadToEnd(), EndsWith("\r\n\r\n/plain"));
}

TEST_F(HttpServerTest, ConnectionsAboveTheLimitAreRefusedUntilOneGoes) {
  Start({.connections_max = 2});
  auto first = std::make_unique<HttpClient>(address());
  first->Ask("GET", "/plain");
  first->ReadAnswer();
  HttpClient second(address());
  second.Ask("GET", "/plain");
  second.ReadAnswer();

  HttpClient third(address());
  EXPECT_THAT(third.ReadToEnd(),
              AllOf(StartsWith("HTTP/1.1 503 "), HasSubstr("Retry-After: "), EndsWith("open\n")));

  first.reset();
  std::string answer;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (answer.find("200 OK") == std::string::npos &&
         std::chrono::steady_clock::now() < deadline) {
    HttpClient again(address());
    if (again.Ask("GET", "/plain", "Connection: close\r\n")) answer = again.ReadToEnd();
  }
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK"));
}

TEST_F(HttpServerTest, AnAnswerMayComeLaterFromAnotherThread) {
  Start();
  HttpClient client(address());
  client.Ask("GET", "/later");

  std::thread([reply = later_.get_future().get()] { reply({.body = "late"}); }).join();

  EXPECT_THAT(client.ReadAnswer(), EndsWith("\r\n\r\nlate"));
}

TEST_F(HttpServerTest, AnAnswerThatIsDroppedIs500) {
  Start();
  HttpClient client(address());
  client.Ask("GET", "/later");

  { const HttpServer::Reply dropped = later_.get_future().get(); }

  EXPECT_THAT(client.ReadAnswer(), StartsWith("HTTP/1.1 500 "));
}

TEST_F(HttpServerTest, AnAnswerMayComeAfterTheServerIsGone) {
  Start();
  HttpClient client(address());
  client.Ask("GET", "/later");
  const HttpServer::Reply reply = later_.get_future().get();

  server_.reset();
  reply({.body = "nobody reads this"});

  EXPECT_THAT(client.ReadToEnd(), IsEmpty());
}

TEST_F(HttpServerTest, AnswersThatNobodyTakesAreBounded) {
  Start({.answer_bytes_max = 10 << 20});
  HttpClient slow(address(), 4096);
  slow.Ask("GET", "/large");
  slow.ReadUntil("\r\n\r\n");

  EXPECT_THAT(Get(address(), "/large"), StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(Get(address(), "/plain"), StartsWith("HTTP/1.1 200 "));
  EXPECT_EQ(slow.ReadUntil(std::string(8 << 20, 'x')).size(), std::size_t{8} << 20);
  EXPECT_THAT(Get(address(), "/large"), StartsWith("HTTP/1.1 200 "));
}

TEST_F(HttpServerTest, AReaderThatTakesNothingOfItsAnswerIsCutOff) {
  Start({.send_timeout = std::chrono::milliseconds(200), .answer_bytes_max = 10 << 20});
  HttpClient slow(address(), 4096);
  slow.Ask("GET", "/large");
  slow.ReadUntil("\r\n\r\n");

  std::string answer;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (answer.find("200 OK") == std::string::npos &&
         std::chrono::steady_clock::now() < deadline) {
    HttpClient other(address());
    other.Ask("GET", "/large");
    answer = other.ReadUntil("\r\n\r\n");
  }

  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 "));
  EXPECT_LT(slow.ReadToEnd().size(), std::size_t{8} << 20);
}

TEST_F(HttpServerTest, StopEndsConnectionsThatWait) {
  Start();
  HttpClient idle(address());
  idle.Ask("GET", "/plain");
  idle.ReadAnswer();
  HttpClient half(address());
  half.Send("GET /pl");

  server_->Stop();

  EXPECT_THAT(idle.ReadToEnd(), IsEmpty());
  EXPECT_THAT(half.ReadToEnd(), IsEmpty());
}

TEST(HttpServerOpenTest, TakesAFreePortAndSaysWhich) {
  const auto server = HttpServer::Open({.address = "localhost:0"});

  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_THAT((*server)->address(), testing::MatchesRegex("localhost:[1-9][0-9]*"));
}

TEST(HttpServerOpenTest, ATakenPortIsAStatusThatNamesIt) {
  const auto first = HttpServer::Open({});
  ASSERT_TRUE(first.ok()) << first.status();

  const auto second = HttpServer::Open({.address = (*first)->address()});

  EXPECT_TRUE(absl::IsUnavailable(second.status()));
  EXPECT_THAT(std::string(second.status().message()), HasSubstr((*first)->address()));
}

TEST(HttpServerOpenTest, AddressesWithoutAPortAreRefused) {
  for (const char* address : {"", "localhost", "localhost:", ":80", "localhost:http", "a:65536"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(HttpServer::Open({.address = address}).status()))
        << address;
  }
}

}  // namespace
}  // namespace tactus::runtime
