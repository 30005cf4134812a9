#include "agent/daemon/worker_socket.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <vector>

#include "tests/agent/daemon/await.h"
#include "tests/support/temporary_folder.h"

namespace tactus::agent {
namespace {

// The worker's end: plain blocking calls.
class Client {
 public:
  explicit Client(const std::string& path) : socket_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    connected_ =
        ::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  }
  ~Client() { Close(); }

  bool connected() const { return connected_; }
  // False when the other end is closed.
  bool Write(const std::string& text) {
    return ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(text.size());
  }
  std::string ReadLine() {
    std::string line;
    for (char c = 0; ::read(socket_, &c, 1) == 1 && c != '\n';) line += c;
    return line;
  }
  void Close() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
  }

 private:
  int socket_;
  bool connected_ = false;
};

class WorkerSocketTest : public testing::Test {
 protected:
  WorkerSocketTest() {
    control_.RunAndWait([this] {
      absl::StatusOr<std::unique_ptr<WorkerSocket>> socket = WorkerSocket::Listen(
          control_, path_,
          {.is_worker = [this](pid_t pid) { return admits_ && pid == ::getpid(); },
           .line = [this](std::string_view line) { OnLine(line); },
           .misused = [this](const std::string& reason) { misused_.Set(reason); }});
      if (socket.ok()) socket_ = *std::move(socket);
    });
  }
  ~WorkerSocketTest() override {
    control_.RunAndWait([this] { socket_.reset(); });
    control_.Stop();
  }

  // Lines up to and without "end".
  void OnLine(std::string_view line) {
    if (line == "end") {
      lines_.Set(arriving_);
    } else {
      arriving_.emplace_back(line);
    }
  }
  bool Send(const std::string& line) {
    bool sent = false;
    control_.RunAndWait([&] { sent = socket_->Send(line); });
    return sent;
  }

  TemporaryFolder folder_;
  const std::string path_ = folder_.File("sock");
  bool admits_ = true;  // whoever connects
  std::vector<std::string> arriving_;
  Once<std::vector<std::string>> lines_;
  Once<std::string> misused_;
  runtime::ControlThread control_;
  std::unique_ptr<WorkerSocket> socket_;
};

using Lines = std::vector<std::string>;

TEST_F(WorkerSocketTest, LinesComeWholeHoweverTheyAreCut) {
  Client client(path_);
  ASSERT_TRUE(client.connected());
  const std::string longer(300'000, 'x');

  for (const std::string& piece : {std::string("on"), std::string("e\ntwo\nthr"),
                                   std::string("ee\n\n"), longer + "\n", std::string("end\n")}) {
    ASSERT_TRUE(client.Write(piece));
  }

  EXPECT_EQ(lines_.Await(), (Lines{"one", "two", "three", "", longer}));
}

TEST_F(WorkerSocketTest, LinesDownWaitForTheConnectionAndKeepTheirOrder) {
  ASSERT_TRUE(Send("first"));
  ASSERT_TRUE(Send("second"));

  Client client(path_);

  EXPECT_EQ(client.ReadLine(), "first");
  EXPECT_EQ(client.ReadLine(), "second");
  ASSERT_TRUE(Send("third"));
  EXPECT_EQ(client.ReadLine(), "third");
}

TEST_F(WorkerSocketTest, ThePathIsGoneOnceTheWorkerIsConnected) {
  Client client(path_);
  ASSERT_TRUE(Send("hello"));
  ASSERT_EQ(client.ReadLine(), "hello");

  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(WorkerSocketTest, ALineThatNeverEndsIsMisuse) {
  Client client(path_);
  const std::string chunk(1 << 20, 'x');

  bool open = true;
  for (int i = 0; i < 17 && open; ++i) open = client.Write(chunk);

  EXPECT_TRUE(misused_.Await().has_value());
}

TEST_F(WorkerSocketTest, AWorkerThatReadsNothingFillsABoundedQueue) {
  Client client(path_);
  const std::string line(1 << 20, 'x');

  int sent = 0;
  while (sent < 200 && Send(line)) ++sent;

  EXPECT_GE(sent, 60);
  EXPECT_LT(sent, 70);
}

TEST_F(WorkerSocketTest, DrainTakesTheLastLinesOfAWorkerThatIsGone) {
  Client client(path_);
  ASSERT_TRUE(Send("hello"));
  ASSERT_EQ(client.ReadLine(), "hello");

  Lines drained;
  control_.RunAndWait([&] {  // nothing else runs on the thread meanwhile
    EXPECT_TRUE(client.Write("a\nb\n"));
    client.Close();
    socket_->Drain();
    drained = arriving_;
  });

  EXPECT_EQ(drained, (Lines{"a", "b"}));
}

TEST_F(WorkerSocketTest, APathThatIsTooLongIsInvalid) {
  control_.RunAndWait([this] {
    EXPECT_EQ(
        WorkerSocket::Listen(control_, folder_.File(std::string(100, 'x')), {}).status().code(),
        absl::StatusCode::kInvalidArgument);
  });
}

}  // namespace
}  // namespace tactus::agent
