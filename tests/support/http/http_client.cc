#include "tests/support/http/http_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "base/check.h"

namespace tactus::support {

HttpClient::HttpClient(const std::string& address, int receive_bytes)
    : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  TACTUS_CHECK(socket_ >= 0);
  if (receive_bytes > 0) {
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
  }
  const timeval patience{.tv_sec = 20, .tv_usec = 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  const std::size_t colon = address.rfind(':');
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(std::atoi(address.c_str() + colon + 1)));
  TACTUS_CHECK(::inet_pton(AF_INET, address.substr(0, colon).c_str(), &to.sin_addr) == 1);
  TACTUS_CHECK(::connect(socket_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0);
}

HttpClient::~HttpClient() { ::close(socket_); }

bool HttpClient::Send(const std::string& bytes) {
  for (std::size_t sent = 0; sent < bytes.size();) {
    const ssize_t count = ::send(socket_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (count <= 0) return false;
    sent += static_cast<std::size_t>(count);
  }
  return true;
}

bool HttpClient::Ask(const std::string& method, const std::string& target,
                     const std::string& fields) {
  return Send(method + " " + target + " HTTP/1.1\r\nHost: 127.0.0.1\r\n" + fields + "\r\n");
}

std::string HttpClient::ReadUntil(const std::string& end) {
  while (true) {
    const std::size_t found = end.empty() ? std::string::npos : buffered_.find(end);
    if (found != std::string::npos) {
      const std::string read = buffered_.substr(0, found + end.size());
      buffered_.erase(0, read.size());
      return read;
    }
    char chunk[16384];
    const ssize_t count = ::recv(socket_, chunk, sizeof chunk, 0);
    TACTUS_CHECK(count >= 0 || errno == ECONNRESET);
    if (count <= 0) return std::exchange(buffered_, {});
    buffered_.append(chunk, static_cast<std::size_t>(count));
  }
}

std::string HttpClient::ReadAnswer(bool body) {
  std::string answer = ReadUntil("\r\n\r\n");
  const std::string field = "Content-Length: ";
  const std::size_t at = answer.find(field);
  if (at == std::string::npos || !body) return answer;
  const std::size_t length = std::strtoul(answer.c_str() + at + field.size(), nullptr, 10);
  while (buffered_.size() < length) {
    char chunk[16384];
    const ssize_t count = ::recv(socket_, chunk, sizeof chunk, 0);
    TACTUS_CHECK(count > 0);
    buffered_.append(chunk, static_cast<std::size_t>(count));
  }
  answer += buffered_.substr(0, length);
  buffered_.erase(0, length);
  return answer;
}

void HttpClient::ShutdownSend() { ::shutdown(socket_, SHUT_WR); }

std::string Get(const std::string& address, const std::string& target) {
  HttpClient client(address);
  client.Ask("GET", target);
  return client.ReadAnswer();
}

}  // namespace tactus::support
