#include "runtime/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "base/descriptor.h"

namespace tactus::runtime {
namespace {

constexpr char kVariable[] = "NOTIFY_SOCKET";

}  // namespace

ServiceManager ServiceManager::TakeFromEnvironment() {
  const char* const value = std::getenv(kVariable);
  ServiceManager manager(value == nullptr ? "" : value);
  ::unsetenv(kVariable);
  return manager;
}

void ServiceManager::Ready(const std::string& status) const { Send("READY=1\nSTATUS=" + status); }

void ServiceManager::Stopping(Duration within) const {
  const auto microseconds = std::chrono::duration_cast<std::chrono::microseconds>(within).count();
  Send("STOPPING=1" + (microseconds > 0 ? "\nEXTEND_TIMEOUT_USEC=" + std::to_string(microseconds)
                                        : std::string()));
}

void ServiceManager::Send(const std::string& message) const {
  sockaddr_un address{};
  if (socket_.empty() || socket_.size() >= sizeof address.sun_path) return;
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, socket_.data(), socket_.size());
  if (socket_.front() == '@') address.sun_path[0] = '\0';
  const Descriptor sender(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!sender.open()) return;
  // Its length says where a name without a file ends.
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_.size());
  [[maybe_unused]] const ssize_t sent =
      ::sendto(sender.get(), message.data(), message.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
               reinterpret_cast<const sockaddr*>(&address), length);
}

}  // namespace tactus::runtime
