// What options a coordinator refuses.

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "coordinator/service/server.h"

namespace tactus::service {
namespace {

TEST(ServerOptionsTest, ATapeTooSmallIsRefused) {
  const std::string message = "tape-bytes: found 10, allowed is 0, for no tape, or 4096 and more";

  EXPECT_EQ(ServerOptions({.state_dir = "s", .tape_bytes = 10}).Validate().message(), message);
}

TEST(ServerOptionsTest, WrongValuesAreNamed) {
  EXPECT_TRUE(ServerOptions{.state_dir = "/s"}.Validate().ok());
  for (const ServerOptions& options :
       {ServerOptions{.listen = "7070", .state_dir = "/s"},
        ServerOptions{.listen = "a:66000", .state_dir = "/s"}, ServerOptions{},
        ServerOptions{.state_dir = "/s", .metrics_listen = "on"},
        ServerOptions{.state_dir = "/s", .retain_jobs = std::chrono::minutes(59)},
        ServerOptions{.state_dir = "/s", .retain_jobs = -std::chrono::hours(2)},
        ServerOptions{.state_dir = "/s", .retain_bytes = 1},
        ServerOptions{.state_dir = "/s", .backup = {.folder = "/b"}}}) {
    EXPECT_TRUE(absl::IsInvalidArgument(options.Validate()));
  }
}

}  // namespace
}  // namespace tactus::service
