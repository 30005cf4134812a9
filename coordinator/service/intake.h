// Where a coordinator's connections come in, whether it leads or stands by.

#pragma once

#include <grpcpp/grpcpp.h>

#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "coordinator/service/connections.h"

namespace tactus::service {

// Hands over to gRPC what the bounds allow, and closes the rest without a word, as gRPC has none
// before a connection stands. One thread.
class Intake {
 public:
  // Of each refusal. `unsaid`: how many there were since the log was told last, which has a line of
  // them by now; 0: it is not due, as thousands a second may come.
  using Refused =
      std::function<void(std::uint64_t unsaid, const std::string& host, const std::string& why)>;
  Intake(const Connections::Limits& limits, Refused refused)
      : open_(limits), refused_(std::move(refused)) {}

  void Take(boost::asio::ip::tcp::socket connection,
            grpc::experimental::ExternalConnectionAcceptor& acceptor);

 private:
  void Refuse(const std::string& host, Connections::Verdict verdict);

  Connections open_;
  const Refused refused_;  // empty: nobody else is told
};

}  // namespace tactus::service
