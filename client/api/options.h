// What a client of a coordinator may choose.

#pragma once

#include <string>

#include "absl/status/status.h"
#include "base/time.h"
#include "identity/credentials.h"
#include "runtime/retry.h"

namespace tactus::api {

inline constexpr const char* kServerDefault = "127.0.0.1:7070";

// True for host:port with a port from 1 to 65535; a host of IPv6 stands in brackets.
bool IsHostPort(const std::string& address);

struct ClientOptions {
  std::string server = kServerDefault;  // host:port
  identity::Security security{};        // of Client::Dial
  // Of each unary call, its repetitions included; > 0. Uploads and backups get a second a MiB more,
  // integrity checks stream_max.
  Duration request_timeout = Seconds(10);
  // A call that may be repeated and found nobody (Unavailable) is made again, at most so often in
  // all; >= 1, and 1 is never.
  int attempts_max = 4;
  // What repetitions of all calls and transfers together may cost: each takes 1 of it and each call
  // that succeeds gives 0.1 back. Keeps a client from adding to a coordinator's troubles. >= 0.
  double retry_budget = 10;
  runtime::BackoffOptions backoff{};
  // A stream (watch, logs) that was open and then lost is opened again for so long; >= 0.
  Duration stream_lost_max = Seconds(60);
  // No stream is longer than this, whatever comes of it: then it is opened again, where it was; >
  // 0.
  Duration stream_max = Seconds(3600);
  // A download's call takes at most so long, > 0. One that brought something is gone on with, so a
  // download may take as long as it needs while it moves; one that brought nothing ends it.
  Duration download_call_max = Seconds(60);

  // InvalidArgument for the first value that is not allowed.
  absl::Status Validate() const;
};

}  // namespace tactus::api
