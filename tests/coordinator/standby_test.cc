// A coordinator that stands by, and callers that know several.

#include "coordinator/service/standby.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <vector>

#include "coordinator/service/server.h"
#include "identity/authority.h"
#include "identity/credentials.h"
#include "identity/dial.h"
#include "runtime/now.h"
#include "runtime/status.h"
#include "tactus/v1/jobs.grpc.pb.h"
#include "tests/coordinator/silent_connection.h"
#include "tests/support/temporary_folder.h"

namespace tactus::service {
namespace {

class StandbyTest : public testing::Test {
 protected:
  ServerOptions Options(const std::string& state, const std::string& listen = "127.0.0.1:0") const {
    return {.listen = listen, .state_dir = folder_.File(state), .metrics_listen = "off"};
  }

  static std::unique_ptr<v1::Jobs::Stub> Dial(const std::string& addresses) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
    arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 100);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 200);
    return v1::Jobs::NewStub(identity::Dial(
        {.addresses = addresses, .service = "tactus.v1.Jobs", .credentials = nullptr}, arguments));
  }

  static absl::Status List(v1::Jobs::Stub& jobs, bool wait) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    context.set_wait_for_ready(wait);
    v1::ListJobsResponse response;
    return runtime::FromGrpc(jobs.ListJobs(&context, v1::ListJobsRequest(), &response));
  }

  const TemporaryFolder folder_;
};

TEST_F(StandbyTest, EveryCallIsToldWhoLeads) {
  const auto standby = Standby::Open(Options("a"));
  ASSERT_TRUE(standby.ok()) << standby.status();
  const auto jobs = Dial((*standby)->address());

  absl::Status status = List(*jobs, true);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(status.message(), "coordinator: stands by; nobody leads yet");

  (*standby)->SetLeader("b:7070");
  status = List(*jobs, true);
  EXPECT_EQ(status.message(), "coordinator: stands by; b:7070 leads");
  EXPECT_EQ(runtime::ReasonOf(status).reason, "NOT_LEADING");
  EXPECT_EQ(runtime::ReasonOf(status).metadata.at("leader"), "b:7070");
}

TEST_F(StandbyTest, ItHoldsItsFolderAndItsAddress) {
  const auto standby = Standby::Open(Options("a"));
  ASSERT_TRUE(standby.ok()) << standby.status();

  EXPECT_TRUE(absl::IsUnavailable(Standby::Open(Options("a")).status()));
  EXPECT_TRUE(absl::IsUnavailable(Standby::Open(Options("b", (*standby)->address())).status()));
}

TEST_F(StandbyTest, AHostHasSoManyConnectionsAndThoseThatEndMakeRoom) {
  ServerOptions options = Options("a");
  options.bounds.connections_per_host = 3;
  const auto standby = Standby::Open(options);
  ASSERT_TRUE(standby.ok()) << standby.status();
  const auto jobs = Dial((*standby)->address());
  ASSERT_TRUE(absl::IsUnavailable(List(*jobs, true)));  // the first connection
  std::vector<Descriptor> silent;
  for (int i = 0; i < 2; ++i) silent.push_back(ConnectSilently((*standby)->address()));

  EXPECT_TRUE(Closes(ConnectSilently((*standby)->address()), 5000));

  EXPECT_EQ(List(*jobs, true).message(), "coordinator: stands by; nobody leads yet");
  silent.clear();
  // Who ended is found to have a moment after its peer knows.
  bool stays = false;
  for (int tries = 0; tries < 100 && !stays; ++tries) {
    const Descriptor again = ConnectSilently((*standby)->address());
    stays = !Closes(again, 200);
  }
  EXPECT_TRUE(stays);
}

TEST_F(StandbyTest, CallsOfWhoKnowsSeveralGoToTheOneThatServes) {
  auto standby = Standby::Open(Options("a"));
  ASSERT_TRUE(standby.ok()) << standby.status();
  auto server = Server::Open(Options("b"));
  ASSERT_TRUE(server.ok()) << server.status();
  const std::string first = (*standby)->address();
  const auto jobs = Dial(first + "," + (*server)->address());

  for (int i = 0; i < 10; ++i) EXPECT_TRUE(List(*jobs, true).ok());

  (*server)->Shutdown();
  EXPECT_TRUE(absl::IsUnavailable(List(*jobs, false)));
  standby->reset();
  const auto successor = Server::Open(Options("a", first));
  ASSERT_TRUE(successor.ok()) << successor.status();
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(List(*jobs, true).ok());
}

TEST_F(StandbyTest, OneWithAnAuthorityMakesItsCertificateBeforeItLeads) {
  ASSERT_TRUE(
      identity::InitAuthority(folder_.File("ca"), "tactus", runtime::WallSeconds(), 10).ok());
  ServerOptions options = Options("a");
  options.authority_folder = folder_.File("ca");
  options.security.tls_dir = folder_.File("tls");

  const auto standby = Standby::Open(options);

  ASSERT_TRUE(standby.ok()) << standby.status();
  const auto own = identity::CheckTlsFolder(folder_.File("tls"));
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_EQ(own->holder.kind, identity::Kind::kCoordinator);
}

}  // namespace
}  // namespace tactus::service
