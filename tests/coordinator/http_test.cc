// What the coordinator serves over HTTP.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/coordinator/server_fixture.h"
#include "tests/support/http/http_client.h"

namespace tactus::service {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class HttpTest : public ServerFixture {
 protected:
  HttpTest() { options_.metrics_listen = "127.0.0.1:0"; }
  std::string Get(const std::string& target) const {
    return support::Get(server_->metrics_address(), target);
  }
};

TEST_F(HttpTest, MetricsAreServedAsPrometheusReadsThem) {
  EXPECT_THAT(Get("/metrics"), AllOf(StartsWith("HTTP/1.1 200 OK\r\n"),
                                     HasSubstr("Content-Type: text/plain; version=0.0.4\r\n"),
                                     HasSubstr("\ntactus_build_info{version=\"")));
}

TEST_F(HttpTest, AnUnknownPathIsNotFound) {
  EXPECT_THAT(Get("/metric"), StartsWith("HTTP/1.1 404 Not Found\r\n"));
}

TEST_F(HttpTest, ATakenAddressIsNamed) {
  ServerOptions options = options_;
  options.state_dir = folder_ + "/other";
  options.metrics_listen = server_->metrics_address();

  const auto second = Server::Open(options);

  EXPECT_TRUE(absl::IsUnavailable(second.status()));
  EXPECT_THAT(std::string(second.status().message()),
              HasSubstr("metrics-listen: " + server_->metrics_address()));
}

}  // namespace
}  // namespace tactus::service
