// What options a coordinator refuses.

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>

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

TEST(ServerOptionsTest, WhatSeveralCoordinatorsHaveIsOfASharedStore) {
  const std::string store = "postgresql://tactus:secret@db/tactus";
  EXPECT_TRUE((ServerOptions{.state_dir = "/s",
                             .store = store,
                             .lease = Seconds(1),
                             .advertise = "a:7070",
                             .files_dir = "/f"}
                   .Validate()
                   .ok()));
  for (const auto& [options, name] :
       {std::pair{ServerOptions{.state_dir = "/s", .files_dir = "/f"}, "files-dir: "},
        std::pair{ServerOptions{.state_dir = "/s", .advertise = "a:7070"}, "advertise: "},
        std::pair{ServerOptions{.state_dir = "/s", .store = store, .advertise = "a"}, "advertise:"},
        std::pair{ServerOptions{.state_dir = "/s", .store = store, .lease = Seconds(0.5)},
                  "lease:"},
        std::pair{ServerOptions{.state_dir = "/s", .store = "mysql://secret@db/x"}, "store: "}}) {
    const absl::Status status = options.Validate();
    EXPECT_TRUE(absl::IsInvalidArgument(status));
    EXPECT_TRUE(std::string(status.message()).starts_with(name)) << status;
    EXPECT_EQ(std::string(status.message()).find("secret"), std::string::npos) << status;
  }
}

}  // namespace
}  // namespace tactus::service
