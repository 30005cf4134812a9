#include "client/api/options.h"

namespace tactus::api {

bool IsHostPort(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0) return false;
  const std::string port = address.substr(colon + 1);
  if (port.empty() || port.size() > 5) return false;
  if (port.find_first_not_of("0123456789") != std::string::npos) return false;
  const int number = std::stoi(port);
  return number >= 1 && number <= 65535;
}

absl::Status ClientOptions::Validate() const {
  if (!IsHostPort(server)) {
    return absl::InvalidArgumentError("server: found '" + server +
                                      "', allowed is HOST:PORT, such as " + kServerDefault);
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
