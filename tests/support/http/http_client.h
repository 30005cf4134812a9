// A client that speaks to an HTTP server byte by byte, well or badly.

#pragma once

#include <string>

namespace tactus::support {

// One connection, blocking; whatever takes longer than 20 s ends the test.
class HttpClient {
 public:
  // `address` is 127.0.0.1:port. `receive_bytes` above 0: as much the kernel takes for us.
  explicit HttpClient(const std::string& address, int receive_bytes = 0);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // False when the server is gone.
  bool Send(const std::string& bytes);
  // Sends a whole request line with a Host, and `fields`, each ending with \r\n.
  bool Ask(const std::string& method, const std::string& target, const std::string& fields = "");

  // What comes up to and with `end`; all that came when the server closes before.
  std::string ReadUntil(const std::string& end);
  std::string ReadToEnd() { return ReadUntil(std::string()); }
  // One answer, by its Content-Length; `body` is false after HEAD.
  std::string ReadAnswer(bool body = true);

  // Ends our side alone.
  void ShutdownSend();

 private:
  int socket_ = -1;
  std::string buffered_;
};

// The answer to one GET on a connection of its own.
std::string Get(const std::string& address, const std::string& target);

}  // namespace tactus::support
