// CreateJob under load, and the wait for a server that is coming up.

#include <grpcpp/generic/generic_stub.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "bench/control_plane/load.h"
#include "bench/control_plane/sample_job.h"
#include "tactus/v1/jobs.grpc.pb.h"

namespace tactus::bench {
namespace {

constexpr std::uint64_t kConnections = 8;

// What the clients have in common.
struct Submission {
  double end = 0;                      // [s] no call begins after it
  std::atomic<std::int64_t> left = 0;  // calls that may begin
  std::atomic<std::uint64_t> clients = 0;
  std::atomic<std::uint64_t> failed = 0;
  std::mutex mutex;
  std::vector<double> seconds;  // of the calls that succeeded; by mutex
};

std::string NewUuid() {
  static std::mutex mutex;
  static std::mt19937_64 random{std::random_device{}()};
  const std::lock_guard lock(mutex);
  const std::uint64_t high = random(), low = random();
  char text[37];
  std::snprintf(text, sizeof text, "%08x-%04x-4%03x-a%03x-%012llx",
                static_cast<unsigned>(high >> 32), static_cast<unsigned>(high >> 16 & 0xffff),
                static_cast<unsigned>(high & 0xfff), static_cast<unsigned>(low >> 52),
                static_cast<unsigned long long>(low & 0xffff'ffff'ffff));
  return text;
}

// One client: its next call begins when the one before has its answer.
class Client {
 public:
  Client(Submission& submission, v1::Jobs::Stub& stub) : submission_(submission), stub_(stub) {}

  void Next() {
    if (Now() > submission_.end || submission_.left.fetch_sub(1) <= 0) {
      --submission_.clients;
      return;
    }
    context_ = std::make_unique<grpc::ClientContext>();
    context_->set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
    request_.Clear();
    *request_.mutable_spec() = SampleSpec("load", 1);
    request_.set_request_id(NewUuid());
    begun_ = Now();
    stub_.async()->CreateJob(context_.get(), &request_, &job_, [this](const grpc::Status& status) {
      Answered(status);
      Next();
    });
  }

 private:
  void Answered(const grpc::Status& status) {
    if (!status.ok()) {
      if (submission_.failed++ == 0) {
        std::fprintf(stderr, "CreateJob: %d %s\n", static_cast<int>(status.error_code()),
                     status.error_message().c_str());
      }
      return;
    }
    const std::lock_guard lock(submission_.mutex);
    submission_.seconds.push_back(Now() - begun_);
  }

  Submission& submission_;
  v1::Jobs::Stub& stub_;
  std::unique_ptr<grpc::ClientContext> context_;
  v1::CreateJobRequest request_;
  v1::Job job_;
  double begun_ = 0;
};

bool Serving(const std::string& server) {
  const auto channel = grpc::CreateChannel(server, grpc::InsecureChannelCredentials());
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
  const grpc::Slice nothing;  // a HealthCheckRequest for the server as a whole
  const grpc::ByteBuffer request(&nothing, 1);
  grpc::ByteBuffer response;
  std::atomic<bool> done = false, serving = false;
  stub.UnaryCall(&context, "/grpc.health.v1.Health/Check", {}, &request, &response,
                 [&](const grpc::Status& status) {
                   grpc::Slice said;
                   // HealthCheckResponse{status: SERVING}
                   serving = status.ok() && response.DumpToSingleSlice(&said).ok() &&
                             said.size() == 2 && said.begin()[0] == 8 && said.begin()[1] == 1;
                   done = true;
                   done.notify_one();
                 });
  done.wait(false);
  return serving;
}

}  // namespace

int RunSubmits(const Arguments& arguments) {
  static Submission submission;
  const std::uint64_t clients = arguments.Number("clients", 64);
  const std::uint64_t seconds = arguments.Number("seconds", 600);
  submission.left = static_cast<std::int64_t>(arguments.Number("count", 1'000'000'000));
  submission.clients = clients;
  std::vector<std::unique_ptr<v1::Jobs::Stub>> stubs;
  for (std::uint64_t i = 0; i < std::min(clients, kConnections); ++i) {
    stubs.push_back(
        v1::Jobs::NewStub(NewConnection(arguments.Text("server"), arguments.Text("tls"))));
  }
  const double begin = Now();
  submission.end = begin + static_cast<double>(seconds);
  std::vector<std::unique_ptr<Client>> all;
  for (std::uint64_t i = 0; i < clients; ++i) {
    all.push_back(std::make_unique<Client>(submission, *stubs[i % stubs.size()]));
    all.back()->Next();
  }
  while (submission.clients > 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const double took = Now() - begin;
  const std::lock_guard lock(submission.mutex);
  std::sort(submission.seconds.begin(), submission.seconds.end());
  const auto done = static_cast<double>(submission.seconds.size());
  const auto quantile = [&](double share) {
    return done == 0 ? 0.0 : submission.seconds[static_cast<std::size_t>(share * (done - 1))];
  };
  Say("submitted", {{"jobs", done},
                    {"failed", static_cast<double>(submission.failed)},
                    {"seconds", took},
                    {"p50", quantile(0.5)},
                    {"p99", quantile(0.99)}});
  return submission.failed == 0 && done > 0 ? 0 : 1;
}

int RunReady(const Arguments& arguments) {
  const double end = Now() + 120;
  std::string line;
  while (Now() < end) {
    std::ifstream file(arguments.Text("address-file"));
    while (std::getline(file, line)) {
      if (line.rfind("grpc=", 0) != 0) continue;
      const double file_time = Now();
      while (!Serving(line.substr(5)) && Now() < end) continue;
      Say("serving", {{"file", file_time}, {"time", Now()}});
      return 0;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return 1;
}

}  // namespace tactus::bench
