#include "runtime/service_manager.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/descriptor.h"
#include "tests/support/temporary_folder.h"

namespace tactus::runtime {
namespace {

// A service manager's end of the socket.
class Listener {
 public:
  explicit Listener(const std::string& name)
      : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name.data(), name.size());
    if (name.front() == '@') address.sun_path[0] = '\0';
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address),
                     static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size())),
              0)
        << std::strerror(errno);
  }

  // What came, a message; empty: nothing.
  std::string Next() {
    std::array<char, 256> buffer{};
    const ssize_t got = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
    return got <= 0 ? "" : std::string(buffer.data(), static_cast<std::size_t>(got));
  }

 private:
  Descriptor socket_;
};

TEST(ServiceManagerTest, AProcessSaysHowItStands) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/notify";
  Listener listener(path);
  const ServiceManager manager(path);

  manager.Ready("serving at 127.0.0.1:7070");
  EXPECT_EQ(listener.Next(), "READY=1\nSTATUS=serving at 127.0.0.1:7070");

  manager.Stopping(Seconds(70.5));
  EXPECT_EQ(listener.Next(), "STOPPING=1\nEXTEND_TIMEOUT_USEC=70500000");
  manager.Stopping();
  EXPECT_EQ(listener.Next(), "STOPPING=1");
  EXPECT_EQ(listener.Next(), "");
}

TEST(ServiceManagerTest, ASocketMayBeWithoutAFile) {
  const std::string name = "@tactus-service-manager-test-" + std::to_string(::getpid());
  Listener listener(name);

  ServiceManager(name).Ready("serving");

  EXPECT_EQ(listener.Next(), "READY=1\nSTATUS=serving");
}

TEST(ServiceManagerTest, ChildrenDoNotInheritTheSocket) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/notify";
  Listener listener(path);
  ::setenv("NOTIFY_SOCKET", path.c_str(), 1);

  ServiceManager::TakeFromEnvironment().Ready("serving");

  EXPECT_EQ(listener.Next(), "READY=1\nSTATUS=serving");
  EXPECT_EQ(std::getenv("NOTIFY_SOCKET"), nullptr);
}

TEST(ServiceManagerTest, NobodyHasToListen) {
  const TemporaryFolder folder;
  ServiceManager::TakeFromEnvironment().Ready("there is no such variable");
  ServiceManager(folder.path() + "/nobody").Ready("there is no such socket");
  ServiceManager(std::string(300, 'x')).Ready("no socket has so long a name");
}

}  // namespace
}  // namespace tactus::runtime
