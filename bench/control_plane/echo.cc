// What gRPC itself can do: streams of reports that are parsed, serialised and sent back.

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <signal.h>
#include <sys/prctl.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <thread>
#include <vector>

#include "bench/control_plane/load.h"
#include "bench/control_plane/simulated_agent.h"
#include "tactus/agent/v1/session.pb.h"

namespace tactus::bench {
namespace {

using Message = agent::v1::FromAgent;
using Traits = grpc::SerializationTraits<Message>;

// One message at a time, as the coordinator does.
class EchoCall final : public grpc::ServerGenericBidiReactor {
 public:
  EchoCall() { StartRead(&bytes_); }

  void OnReadDone(bool ok) override {
    if (!ok || !Traits::Deserialize(&bytes_, &message_).ok()) return Finish(grpc::Status::OK);
    bool own = false;
    Traits::Serialize(message_, &bytes_, &own);
    StartWrite(&bytes_);
  }
  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);
    StartRead(&bytes_);
  }
  void OnDone() override { delete this; }

 private:
  grpc::ByteBuffer bytes_;
  Message message_;
};

class EchoService final : public grpc::CallbackGenericService {
 public:
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext*) override {
    return new EchoCall;
  }
};

// Sends the same report for as long as fewer than `window` are on their way.
class EchoStream final : public grpc::ClientBidiReactor<Message, Message> {
 public:
  EchoStream(grpc::TemplatedGenericStub<Message, Message>& stub, std::uint64_t window)
      : window_(window), report_(SampleReport()) {
    stub.PrepareBidiStreamingCall(&context_, "/bench.Echo/Echo", {}, this);
    StartRead(&answer_);
    AddHold();  // writes are started from reactions of reads
    StartCall();
  }

  void Go() { Fill(); }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    ++echoed_;
    StartRead(&answer_);
    Fill();
  }
  void OnWriteDone(bool ok) override {
    if (!ok) return;
    ++sent_;
    writing_ = false;
    Fill();
  }

  std::uint64_t echoed() const { return echoed_; }

 private:
  void Fill() {
    while (sent_ - echoed_ < window_) {
      if (writing_.exchange(true)) return;
      report_.set_sequence(sent_ + 1);
      return StartWrite(&report_);
    }
  }

  const std::uint64_t window_;
  grpc::ClientContext context_;
  Message report_, answer_;
  std::atomic<bool> writing_ = false;
  std::atomic<std::uint64_t> sent_ = 0, echoed_ = 0;
};

}  // namespace

int RunEchoServer(const Arguments& arguments) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  EchoService service;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterCallbackGenericService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return 1;
  std::ofstream(arguments.Text("address-file")) << "grpc=127.0.0.1:" << port << "\n";
  server->Wait();
  return 0;
}

int RunEchoLoad(const Arguments& arguments) {
  const std::uint64_t agents = arguments.Number("agents", 10'000);
  const std::uint64_t connections = arguments.Number("connections", 200);
  const auto seconds = static_cast<double>(arguments.Number("seconds", 10));
  static std::vector<std::unique_ptr<grpc::TemplatedGenericStub<Message, Message>>> stubs;
  for (std::uint64_t i = 0; i < connections; ++i) {
    stubs.push_back(std::make_unique<grpc::TemplatedGenericStub<Message, Message>>(
        NewConnection(arguments.Text("server"))));
  }
  static std::vector<std::unique_ptr<EchoStream>> streams;  // nobody ends them
  for (std::uint64_t i = 0; i < agents; ++i) {
    streams.push_back(std::make_unique<EchoStream>(*stubs[i * connections / agents],
                                                   arguments.Number("window", 300)));
  }
  for (const auto& stream : streams) stream->Go();
  const auto echoed = [&] {
    std::uint64_t sum = 0;
    for (const auto& stream : streams) sum += stream->echoed();
    return static_cast<double>(sum);
  };
  // The connections are made and the windows are full first.
  while (echoed() < 2 * static_cast<double>(agents)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  Say("echo-begin");
  const double begin = Now(), before = echoed();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  const double rate = (echoed() - before) / (Now() - begin);
  Say("echo-end", {{"reports_per_second", rate},
                   {"message_bytes", static_cast<double>(SampleReport().ByteSizeLong())}});
  return 0;
}

}  // namespace tactus::bench
