#include "coordinator/access/gate.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "identity/authority.h"
#include "identity/credentials.h"
#include "identity/revocations.h"
#include "identity/secret_file.h"
#include "runtime/now.h"
#include "runtime/status.h"
#include "tests/support/temporary_folder.h"

namespace tactus::access {
namespace {

std::string ReadAll(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class GateTest : public testing::Test {
 protected:
  GateTest() {
    const std::int64_t before = runtime::WallSeconds() - 20 * identity::kDaySeconds;
    EXPECT_TRUE(identity::InitAuthority(folder_.File("ca"), "tactus", before, 100).ok());
    Issue("coordinator", {.kind = identity::Kind::kCoordinator,
                          .now = before,
                          .seconds = 50 * identity::kDaySeconds});
    Issue("late", {.kind = identity::Kind::kNode,
                   .name = "a",
                   .now = before,
                   .seconds = identity::kDaySeconds});
  }

  void Issue(const std::string& folder, const identity::CertificateOrder& order) {
    const auto issued = identity::IssueInto(folder_.File("ca"), folder_.File(folder), order);
    EXPECT_TRUE(issued.ok()) << issued.status();
  }
  // Why a new gate does not let in whose certificate has run out.
  std::string ReasonForLate() {
    const auto gate = Gate::Open({.tls_dir = folder_.File("coordinator")});
    EXPECT_TRUE(gate.ok()) << gate.status();
    const auto who = (*gate)->Identify(ReadAll(folder_.File("late") + "/cert.pem"));
    return runtime::ReasonOf(who.status()).reason;
  }

  TemporaryFolder folder_;
};

// An agent that is merely late keeps its workers; one that is let in no more does not.
TEST_F(GateTest, WhoIsLateIsToldSoUnlessItIsLetInNoMore) {
  EXPECT_EQ(ReasonForLate(), "CERTIFICATE_EXPIRED");

  const std::string revoked = folder_.File("coordinator") + "/" + identity::kRevokedFile;
  ASSERT_TRUE(identity::Revoke(revoked, "node/a").ok());
  EXPECT_EQ(ReasonForLate(), "NOT_IDENTIFIED");
}

// So that a takeover lets nobody in again.
TEST_F(GateTest, WhoIsRevokedInTheSharedFolderIsLetInByNoCoordinatorOfIt) {
  Issue("alice", {.kind = identity::Kind::kUser, .name = "admin", .now = runtime::WallSeconds()});
  const std::string alice = ReadAll(folder_.File("alice") + "/cert.pem");
  ASSERT_TRUE(identity::MakePrivateFolder(folder_.File("shared")).ok());
  const auto reason = [&](const std::string& shared) {
    const auto gate = Gate::Open({.tls_dir = folder_.File("coordinator"), .shared_folder = shared});
    EXPECT_TRUE(gate.ok()) << gate.status();
    return runtime::ReasonOf((*gate)->Identify(alice).status()).reason;
  };
  EXPECT_EQ(reason(folder_.File("shared")), "");

  ASSERT_TRUE(identity::Revoke(folder_.File("shared") + "/revoked", "user/admin").ok());
  EXPECT_EQ(reason(folder_.File("shared")), "NOT_IDENTIFIED");
  EXPECT_EQ(reason(""), "");

  std::ofstream(folder_.File("shared") + "/revoked") << "alice\n";
  const absl::Status wrong =
      Gate::Open({.tls_dir = folder_.File("coordinator"), .shared_folder = folder_.File("shared")})
          .status();
  EXPECT_TRUE(absl::IsInvalidArgument(wrong)) << wrong;
  EXPECT_EQ(wrong.message().find(folder_.File("shared") + "/revoked: line 1"), 0u) << wrong;
}

}  // namespace
}  // namespace tactus::access
