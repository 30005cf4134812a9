// One connection of the HTTP server: reads requests, one after the other, and answers each.

#pragma once

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>

#include "runtime/control_thread.h"
#include "runtime/http_event_stream.h"
#include "runtime/http_server.h"

namespace tactus::runtime {

class HttpSession;

// What the sessions of a server share; on its thread.
struct HttpShared {
  using AnyHandler =
      std::variant<HttpServer::Handler, HttpServer::LaterHandler, HttpServer::StreamHandler>;

  HttpOptions options;
  bool loopback = false;  // the address is one
  std::string host = {};  // that of the address, as HostName has it
  std::map<std::string, AnyHandler> routes = {};
  // Shared with replies that are still to come, which find it stopped or gone.
  std::shared_ptr<ControlThread> thread = {};
  std::set<std::shared_ptr<HttpSession>> sessions = {};
  std::set<std::shared_ptr<HttpEventStream>> streams = {};
  std::size_t answer_bytes = 0;  // in answers under way
};

// Owned by the server's set of sessions until it closes, and by its own reads and writes.
class HttpSession final : public std::enable_shared_from_this<HttpSession> {
 public:
  // `shared` outlives the session.
  HttpSession(boost::asio::ip::tcp::socket socket, HttpShared& shared);
  ~HttpSession();

  // Reads the next request. The first call, once the session is in the set, starts it.
  void Read();
  // Answers the request under way; called once for each.
  void Answer(HttpResponse answer);
  void Close();

 private:
  using Parser = boost::beast::http::request_parser<boost::beast::http::empty_body>;

  void OnRead(const boost::system::error_code& error);
  // The answer to a request that could not be read.
  HttpResponse Unreadable(const boost::system::error_code& error) const;
  // What is wrong with the request as such; nothing: it is for a handler.
  std::optional<HttpResponse> Objection() const;
  void Dispatch(const HttpRequest& request);
  void Open(const HttpRequest& request, const HttpServer::StreamHandler& handler);
  void OnAnswered(const boost::system::error_code& error);
  void Linger();

  boost::beast::tcp_stream stream_;
  HttpShared& shared_;
  boost::beast::flat_buffer buffer_;
  std::optional<Parser> parser_;
  std::string head_;
  std::string body_;
  bool keep_alive_ = true;
  bool head_only_ = false;
  std::size_t lingered_bytes_ = 0;
};

}  // namespace tactus::runtime
