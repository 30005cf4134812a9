// A coordinator in this process with a folder of its own, and the calls that tests make.

#pragma once

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/service/server.h"
#include "runtime/status.h"
#include "tactus/v1/admin.grpc.pb.h"
#include "tactus/v1/artifacts.grpc.pb.h"
#include "tactus/v1/jobs.grpc.pb.h"
#include "tactus/v1/nodes.grpc.pb.h"

namespace tactus::service {

// A job of two workers that stops after a round.
v1::JobSpec SmallSpec();

class ServerFixture : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  // With options_, in the folder.
  void Start();
  void Stop();

  std::shared_ptr<grpc::Channel> NewChannel() const;

  // One unary call of any stub, with a deadline.
  template <typename Stub, typename Request, typename Response>
  absl::StatusOr<Response> Call(const std::unique_ptr<Stub>& stub,
                                grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                             Response*),
                                const Request& request,
                                std::chrono::milliseconds timeout = std::chrono::minutes(1)) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + timeout);
    Response response;
    const absl::Status status =
        runtime::FromGrpc((stub.get()->*method)(&context, request, &response));
    if (!status.ok()) return status;
    return response;
  }

  absl::StatusOr<v1::Job> Create(const v1::JobSpec& spec, const std::string& request_id = "");
  absl::StatusOr<v1::Job> Get(const std::string& name, const std::string& after = "");
  absl::StatusOr<v1::Job> Cancel(const std::string& name);

  // Polls until it is so; false: it was not within a minute.
  template <typename Condition>
  static bool Eventually(const Condition& condition) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::yield();
    }
    return true;
  }

  std::string StateFolder() const { return folder_ + "/state"; }
  std::string BlobPath(const std::string& sha256) const {
    return StateFolder() + "/blobs/" + sha256.substr(0, 2) + "/" + sha256;
  }

  ServerOptions options_{.listen = "127.0.0.1:0", .metrics_listen = "off"};  // for the next Start
  std::string folder_;
  std::unique_ptr<Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Jobs::Stub> jobs_;
  std::unique_ptr<v1::Nodes::Stub> nodes_;
  std::unique_ptr<v1::Admin::Stub> admin_;
  std::unique_ptr<v1::Artifacts::Stub> artifacts_;
};

}  // namespace tactus::service
