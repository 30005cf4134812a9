#include "client/api/options.h"

#include "runtime/host_port.h"

namespace tactus::api {

bool IsHostPort(const std::string& address) { return runtime::AreHostPorts(address); }

absl::Status ClientOptions::Validate() const {
  if (!IsHostPort(server)) {
    return absl::InvalidArgumentError("server: found '" + server +
                                      "', allowed is HOST:PORT, such as " + kServerDefault +
                                      ", or several with commas between them");
  }
  if (request_timeout <= Duration::zero()) {
    return absl::InvalidArgumentError("request_timeout: allowed is more than 0");
  }
  if (attempts_max < 1) {
    return absl::InvalidArgumentError("attempts_max: found " + std::to_string(attempts_max) +
                                      ", allowed is 1 or more");
  }
  if (!(retry_budget >= 0)) return absl::InvalidArgumentError("retry_budget: allowed is 0 or more");
  if (stream_lost_max < Duration::zero()) {
    return absl::InvalidArgumentError("stream_lost_max: allowed is 0 or more");
  }
  if (stream_max <= Duration::zero()) {
    return absl::InvalidArgumentError("stream_max: allowed is more than 0");
  }
  if (download_call_max <= Duration::zero()) {
    return absl::InvalidArgumentError("download_call_max: allowed is more than 0");
  }
  return absl::OkStatus();
}

}  // namespace tactus::api
