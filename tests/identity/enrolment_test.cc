// Coming by a certificate where several coordinators are known, of which one leads.

#include "identity/enrolment.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "identity/authority.h"
#include "identity/credentials.h"
#include "identity/request.h"
#include "identity/rotation.h"
#include "identity/token.h"
#include "runtime/now.h"
#include "runtime/status.h"
#include "tactus/v1/enrolment.grpc.pb.h"
#include "tests/support/temporary_folder.h"

namespace tactus::identity {
namespace {

// One of several: it signs for whoever comes, or stands by.
class FakeCoordinator final : public v1::Enrolment::Service {
 public:
  FakeCoordinator(std::string ca, const std::string& tls_dir, bool leads)
      : ca_(std::move(ca)), leads_(leads) {
    const auto credentials = MakeServerCredentials(tls_dir, Strangers::kMayConnect);
    EXPECT_TRUE(credentials.ok()) << credentials.status();
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", *credentials, &port);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    address_ = "127.0.0.1:" + std::to_string(port);
  }
  ~FakeCoordinator() override { server_->Shutdown(std::chrono::system_clock::now()); }

  grpc::Status Enrol(grpc::ServerContext*, const v1::EnrolRequest* request,
                     v1::EnrolResponse* response) override {
    return Sign(request->certificate_request(), response);
  }
  grpc::Status Renew(grpc::ServerContext*, const v1::RenewRequest* request,
                     v1::RenewResponse* response) override {
    return Sign(request->certificate_request(), response);
  }

  const std::string& address() const { return address_; }

 private:
  template <typename Response>
  grpc::Status Sign(const std::string& request, Response* response) {
    if (!leads_) {
      return runtime::ToGrpc(runtime::WithReason(absl::UnavailableError("coordinator: stands by"),
                                                 {.reason = "NOT_LEADING"}));
    }
    const std::int64_t now = runtime::WallSeconds();
    const auto issued =
        IssueCertificate(*ReadAuthority(ca_, now),
                         {.kind = Kind::kNode, .name = "a", .now = now, .request = request});
    if (!issued.ok()) return runtime::ToGrpc(issued.status());
    response->set_certificate(issued->certificate);
    response->set_authorities(issued->authority);
    return grpc::Status::OK;
  }

  const std::string ca_;
  const bool leads_;
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

class EnrolmentOfSeveralTest : public testing::Test {
 protected:
  EnrolmentOfSeveralTest() {
    const std::int64_t now = runtime::WallSeconds();
    EXPECT_TRUE(InitAuthority(ca_, "tactus", now, 10).ok());
    EXPECT_TRUE(IssueInto(ca_, tls_, {.kind = Kind::kCoordinator, .now = now}).ok());
    const auto pin = KeyHashOfCertificate(ReadAuthority(ca_, now)->certificate);
    token_ = TokenText(*MakeToken(*pin));
  }
  absl::StatusOr<Certificate> EnrolAt(const std::string& servers, Duration within) const {
    return EnrolInto({.folder = own_, .server = servers, .token = token_, .within = within});
  }

  const TemporaryFolder folder_;
  const std::string ca_ = folder_.File("ca");
  const std::string tls_ = folder_.File("coordinator");
  const std::string own_ = folder_.File("own");
  std::string token_;
};

TEST_F(EnrolmentOfSeveralTest, TheOneThatLeadsSignsWhereverItStandsInTheList) {
  const FakeCoordinator stands_by(ca_, tls_, false);
  const FakeCoordinator leads(ca_, tls_, true);
  const std::string servers = "127.0.0.1:1," + stands_by.address() + "," + leads.address();

  const auto enrolled = EnrolAt(servers, Seconds(20));
  ASSERT_TRUE(enrolled.ok()) << enrolled.status();
  EXPECT_EQ(enrolled->holder.name, "a");

  const auto renewed = RenewOver(own_, servers, Seconds(20));
  ASSERT_TRUE(renewed.ok()) << renewed.status();
  EXPECT_NE(renewed->serial, enrolled->serial);
}

TEST_F(EnrolmentOfSeveralTest, WhereNoneLeadsAllAreNamed) {
  const FakeCoordinator stands_by(ca_, tls_, false);
  const std::string servers = "127.0.0.1:1," + stands_by.address();

  const absl::Status enrolled = EnrolAt(servers, Seconds(1)).status();
  EXPECT_TRUE(absl::IsUnavailable(enrolled)) << enrolled;
  EXPECT_NE(enrolled.message().find(servers), std::string::npos) << enrolled;
}

}  // namespace
}  // namespace tactus::identity
