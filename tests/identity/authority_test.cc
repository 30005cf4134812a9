// The authority and what is read of its certificates.

#include "identity/authority.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

#include "identity/certificate.h"
#include "identity/credentials.h"
#include "identity/revocations.h"
#include "identity/secret_file.h"
#include "runtime/now.h"
#include "tests/support/temporary_folder.h"

namespace tactus::identity {
namespace {

constexpr std::int64_t kNow = 1'900'000'000;

std::string Content(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

unsigned ModeOf(const std::string& path) {
  struct stat found {};
  EXPECT_EQ(::stat(path.c_str(), &found), 0) << path;
  return found.st_mode & 07777;
}

std::int64_t Today() { return runtime::WallNow() / 1'000'000'000; }

AuthorityTexts NewAuthority(const std::string& domain = "tactus") {
  const absl::StatusOr<AuthorityTexts> made = MakeAuthority(domain, kNow, 10);
  EXPECT_TRUE(made.ok()) << made.status();
  return *made;
}

TlsTexts Issued(const AuthorityTexts& authority, CertificateOrder order) {
  order.now = kNow;
  const absl::StatusOr<TlsTexts> issued = IssueCertificate(authority, order);
  EXPECT_TRUE(issued.ok()) << issued.status();
  return issued.ok() ? *issued : TlsTexts{};
}

TEST(AuthorityTest, WhomItIssuesForIsReadBack) {
  const AuthorityTexts authority = NewAuthority("lab");

  const TlsTexts node = Issued(authority, {.kind = Kind::kNode, .name = "gpu-7"});
  const absl::StatusOr<Certificate> read = CheckTlsTexts(node, kNow);

  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->holder, (Name{.domain = "lab", .kind = Kind::kNode, .name = "gpu-7"}));
  EXPECT_EQ(read->begin, kNow - kClockSkewSeconds);
  EXPECT_EQ(read->end, kNow + 7 * kDaySeconds);
  EXPECT_EQ(read->serial.size(), 32u);
  EXPECT_EQ(read->fingerprint.size(), 64u);
  EXPECT_EQ(ReadCertificate(node.certificate)->serial, read->serial);
}

TEST(AuthorityTest, NoCertificateOutlivesTheAuthority) {
  const TlsTexts user =
      Issued(NewAuthority(), {.kind = Kind::kUser, .name = "alice", .seconds = 100 * kDaySeconds});

  EXPECT_EQ(ReadCertificate(user.certificate)->end, kNow + 10 * kDaySeconds);
}

TEST(AuthorityTest, WhatDoesNotGoTogetherIsNamedByItsFile) {
  const AuthorityTexts authority = NewAuthority();
  const TlsTexts good = Issued(authority, {.kind = Kind::kUser, .name = "alice"});
  const TlsTexts other = Issued(NewAuthority(), {.kind = Kind::kUser, .name = "alice"});
  const auto error = [](const TlsTexts& texts, std::int64_t now = kNow) {
    return std::string(CheckTlsTexts(texts, now).status().message());
  };

  EXPECT_EQ(error(good), "");
  EXPECT_EQ(error({good.authority, good.certificate, other.key}),
            "key.pem: is not the key of cert.pem");
  EXPECT_TRUE(error({good.authority, other.certificate, other.key})
                  .starts_with("cert.pem: ca.pem has not signed it: "));
  EXPECT_TRUE(error(good, kNow + 8 * kDaySeconds).starts_with("cert.pem: is valid from 2030-"));
  EXPECT_TRUE(error(good, kNow - kDaySeconds).starts_with("cert.pem: is valid from 2030-"));
  EXPECT_EQ(error({"", good.certificate, good.key}), "ca.pem: has no certificate");
  EXPECT_TRUE(error({good.authority, "x", good.key}).starts_with("cert.pem: "));
  EXPECT_TRUE(error({good.authority, good.certificate, "x"}).starts_with("key.pem: "));
  EXPECT_TRUE(error({good.authority, authority.certificate, authority.key})
                  .starts_with("cert.pem: the certificate has 1 URIs"));
}

TEST(AuthorityTest, AnOrderThatCannotBeIsRefused) {
  const AuthorityTexts authority = NewAuthority();
  for (const CertificateOrder& order :
       {CertificateOrder{.kind = Kind::kNode, .name = "A"},
        CertificateOrder{.kind = Kind::kNode, .name = ""},
        CertificateOrder{.kind = Kind::kUser, .name = "a/b"},
        CertificateOrder{.kind = Kind::kUser, .name = "a,DNS:b"},
        CertificateOrder{.kind = Kind::kCoordinator, .name = "x"},
        CertificateOrder{.kind = Kind::kUser, .name = "a", .dns = {"h,IP:1.2.3.4"}},
        CertificateOrder{.kind = Kind::kUser, .name = "a", .addresses = {"1.2.3"}},
        CertificateOrder{.kind = Kind::kUser, .name = "a", .seconds = 0}}) {
    EXPECT_TRUE(absl::IsInvalidArgument(IssueCertificate(authority, order).status())) << order.name;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(MakeAuthority("a/b", kNow, 1).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(MakeAuthority("tactus", kNow, 0).status()));
}

class AuthorityFilesTest : public testing::Test {
 protected:
  TemporaryFolder folder_;
  const std::string ca_ = folder_.path() + "/ca";
  const std::string tls_ = folder_.path() + "/tls";
};

TEST_F(AuthorityFilesTest, KeysAreTheirOwnersAloneAndFoldersToo) {
  ::umask(0);  // nothing here rests on it

  ASSERT_TRUE(InitAuthority(ca_, "tactus", Today(), 10).ok());
  const auto issued = IssueInto(ca_, tls_, {.kind = Kind::kNode, .name = "a", .now = Today()});
  ::umask(022);

  ASSERT_TRUE(issued.ok()) << issued.status();
  EXPECT_EQ(ModeOf(ca_), 0700u);
  EXPECT_EQ(ModeOf(ca_ + "/ca-key.pem"), 0600u);
  EXPECT_EQ(ModeOf(tls_), 0700u);
  EXPECT_EQ(ModeOf(tls_ + "/key.pem"), 0600u);
  EXPECT_TRUE(CheckTlsFolder(tls_).ok());
}

TEST_F(AuthorityFilesTest, NothingThatIsThereIsOverwritten) {
  ASSERT_TRUE(InitAuthority(ca_, "tactus", Today(), 10).ok());
  const std::string key = Content(ca_ + "/ca-key.pem");
  const CertificateOrder order = {.kind = Kind::kNode, .name = "a", .now = Today()};
  ASSERT_TRUE(IssueInto(ca_, tls_, order).ok());
  const std::string certificate = Content(tls_ + "/cert.pem");

  EXPECT_TRUE(absl::IsAlreadyExists(InitAuthority(ca_, "tactus", Today(), 10)));
  EXPECT_TRUE(absl::IsAlreadyExists(IssueInto(ca_, tls_, order).status()));
  // Of whom one file alone is there, the other is not made, either.
  std::filesystem::remove(ca_ + "/ca-key.pem");
  EXPECT_TRUE(absl::IsAlreadyExists(InitAuthority(ca_, "tactus", Today(), 10)));
  EXPECT_FALSE(std::filesystem::exists(ca_ + "/ca-key.pem"));
  std::filesystem::create_symlink(folder_.path() + "/elsewhere", ca_ + "/ca-key.pem");
  std::filesystem::remove(ca_ + "/ca.pem");
  EXPECT_TRUE(absl::IsAlreadyExists(InitAuthority(ca_, "tactus", Today(), 10)));

  EXPECT_FALSE(std::filesystem::exists(folder_.path() + "/elsewhere"));
  EXPECT_EQ(Content(tls_ + "/cert.pem"), certificate);
  EXPECT_FALSE(key.empty());
}

TEST_F(AuthorityFilesTest, ARenewedCertificateIsForTheSameHolderAndKey) {
  ASSERT_TRUE(InitAuthority(ca_, "tactus", Today(), 10).ok());
  const auto first =
      IssueInto(ca_, tls_, {.kind = Kind::kUser, .name = "alice", .now = Today(), .seconds = 60});
  ASSERT_TRUE(first.ok());
  const std::string key = Content(tls_ + "/key.pem");

  const auto renewed = RenewIn(ca_, tls_, {.now = Today()});

  ASSERT_TRUE(renewed.ok()) << renewed.status();
  EXPECT_EQ(renewed->holder, first->holder);
  EXPECT_GT(renewed->end, first->end);
  EXPECT_NE(renewed->serial, first->serial);
  EXPECT_EQ(Content(tls_ + "/key.pem"), key);
  EXPECT_EQ(ModeOf(tls_ + "/cert.pem"), 0644u);
  EXPECT_TRUE(CheckTlsFolder(tls_).ok());
}

TEST_F(AuthorityFilesTest, AKeyThatEverybodyMayReadIsNotUsed) {
  ASSERT_TRUE(InitAuthority(ca_, "tactus", Today(), 10).ok());
  const CertificateOrder order = {.kind = Kind::kNode, .name = "a", .now = Today()};
  ASSERT_TRUE(IssueInto(ca_, tls_, order).ok());

  std::filesystem::permissions(tls_ + "/key.pem", std::filesystem::perms(0604));
  EXPECT_TRUE(absl::IsFailedPrecondition(CheckTlsFolder(tls_).status()));
  std::filesystem::permissions(ca_ + "/ca-key.pem", std::filesystem::perms(0644));
  EXPECT_TRUE(
      absl::IsFailedPrecondition(IssueInto(ca_, folder_.path() + "/other", order).status()));
}

TEST_F(AuthorityFilesTest, WhoIsRevokedIsOnTheListOnceAndByWhateverName) {
  const std::string path = folder_.path() + "/revoked";
  std::ofstream(path) << "# who left\nuser/alice  # in May";  // without an end of line

  EXPECT_TRUE(Revoke(path, "node/gpu-7").ok());
  EXPECT_TRUE(Revoke(path, "node/gpu-7").ok());
  EXPECT_TRUE(Revoke(path, "user/alice").ok());
  EXPECT_TRUE(Revoke(path, "serial 0f").ok());
  EXPECT_TRUE(absl::IsInvalidArgument(Revoke(path, "gpu-7")));
  EXPECT_TRUE(absl::IsInvalidArgument(Revoke(path, "serial 0F")));

  const auto list = Revocations::Parse(Content(path));
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ(list->size(), 3u);
  EXPECT_EQ(ModeOf(path), 0644u);
  const auto has = [&](Kind kind, const std::string& name, const std::string& serial) {
    return list->Has({.holder = {.domain = "x", .kind = kind, .name = name}, .serial = serial});
  };
  EXPECT_TRUE(has(Kind::kUser, "alice", "1"));
  EXPECT_TRUE(has(Kind::kNode, "gpu-7", "1"));
  EXPECT_TRUE(has(Kind::kUser, "bob", "0f"));
  EXPECT_FALSE(has(Kind::kNode, "alice", "1"));
  EXPECT_FALSE(has(Kind::kUser, "alice2", "0f0"));
}

TEST_F(AuthorityFilesTest, OfRevocationsAtOnceNoneIsLost) {
  const std::string path = folder_.path() + "/revoked";
  constexpr int kEach = 25;
  std::vector<std::thread> revoking;
  std::atomic<int> failed = 0;
  for (int who = 0; who < 4; ++who) {
    revoking.emplace_back([&, who] {
      for (int i = 0; i < kEach; ++i) {
        const std::string name = "user/u" + std::to_string(who) + "-" + std::to_string(i);
        if (!Revoke(path, name).ok()) ++failed;
      }
    });
  }
  for (std::thread& one : revoking) one.join();

  EXPECT_EQ(failed, 0);
  EXPECT_EQ(Revocations::Parse(Content(path))->size(), 4u * kEach);
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
    EXPECT_FALSE(entry.path().filename().string().starts_with("revoked.")) << entry.path();
  }
}

// As an administrator's command does beside a coordinator with a user of its own.
TEST_F(AuthorityFilesTest, WhatIsReplacedStaysItsOwnersAndIsReadByWhoReadIt) {
  const std::string path = folder_.path() + "/revoked";
  ASSERT_TRUE(Revoke(path, "user/alice").ok());
  std::filesystem::permissions(path, std::filesystem::perms(0640));
  ASSERT_TRUE(Revoke(path, "user/bob").ok());
  EXPECT_EQ(ModeOf(path), 0640u);

  std::filesystem::permissions(path, std::filesystem::perms(0644));
  ASSERT_TRUE(ReplaceFile(path, "a key", 0600).ok());
  EXPECT_EQ(ModeOf(path), 0640u);  // what is nobody else's is not made so by the file of before

  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files to others";
  constexpr uid_t kUser = 54321;
  constexpr gid_t kGroup = 54322;
  const auto owned = [](const std::string& file) {
    struct stat found {};
    EXPECT_EQ(::stat(file.c_str(), &found), 0) << file;
    return found.st_uid == kUser && found.st_gid == kGroup;
  };
  ASSERT_EQ(::chown(path.c_str(), kUser, kGroup), 0);
  ASSERT_TRUE(ReplaceFile(path, "", 0644).ok());
  EXPECT_TRUE(owned(path));
  const std::string theirs = folder_.path() + "/theirs";
  ASSERT_TRUE(MakePrivateFolder(theirs).ok());
  ASSERT_EQ(::chown(theirs.c_str(), kUser, kGroup), 0);
  ASSERT_TRUE(Revoke(theirs + "/revoked", "user/alice").ok());
  EXPECT_TRUE(owned(theirs + "/revoked"));
  EXPECT_EQ(ModeOf(theirs + "/revoked"), 0644u);
}

TEST_F(AuthorityFilesTest, WhatWasSignedIsWorthNothingFromTheEarliestTimeOn) {
  const std::string path = folder_.path() + "/revoked";
  constexpr std::int64_t kNoon = 1'764'676'800;  // 2025-12-02T12:00:00Z
  const auto since = [&](const std::string& serial) {
    return Revocations::Parse(Content(path))
        ->Since({.holder = {.domain = "x", .kind = Kind::kCoordinator}, .serial = serial});
  };

  ASSERT_TRUE(Revoke(path, "serial 0f", kNoon).ok());
  EXPECT_EQ(Content(path), "serial 0f since 2025-12-02T12:00:00Z\n");
  EXPECT_EQ(since("0f"), kNoon);
  EXPECT_EQ(since("0e"), std::nullopt);
  ASSERT_TRUE(Revoke(path, "serial 0f", kNoon + 1).ok());
  EXPECT_EQ(Content(path), "serial 0f since 2025-12-02T12:00:00Z\n");
  ASSERT_TRUE(Revoke(path, "serial 0f", kNoon - 60).ok());
  EXPECT_EQ(since("0f"), kNoon - 60);
  ASSERT_TRUE(Revoke(path, "coordinator", kNoon - 120).ok());
  EXPECT_EQ(since("0f"), kNoon - 120);
  ASSERT_TRUE(Revoke(path, "serial 0f").ok());
  EXPECT_EQ(since("0f"), 0);
  EXPECT_EQ(since("0e"), kNoon - 120);
}

TEST(RevocationsTest, ATimeThatIsNoneIsNamed) {
  for (const char* line : {"user/a since", "user/a since ", "user/a since yesterday",
                           "user/a since infinite-future", "user/a since 1969-01-01T00:00:00Z",
                           "since 2026-12-02T10:00:00Z", "user/a 2026-12-02T10:00:00Z"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Revocations::Parse(line).status())) << line;
  }
  EXPECT_TRUE(Revocations::Parse("user/a  since  2026-12-02T10:00:00+01:00 # late\n").ok());
}

TEST(RevocationsTest, OfTwoListsTheEarlierTimeCounts) {
  Revocations list = *Revocations::Parse("user/a since 2026-12-02T10:00:00Z\nnode/n\n");
  list.Include(*Revocations::Parse("user/a since 2026-12-02T09:00:00Z\nnode/m\n"));

  const auto since = [&](Kind kind, const std::string& name) {
    return list.Since({.holder = {.domain = "x", .kind = kind, .name = name}, .serial = "1"});
  };
  EXPECT_EQ(list.size(), 3u);
  EXPECT_EQ(since(Kind::kUser, "a"), ParseMoment("2026-12-02T09:00:00Z"));
  EXPECT_EQ(since(Kind::kNode, "n"), 0);
  EXPECT_EQ(since(Kind::kNode, "m"), 0);
}

TEST(RevocationsTest, ALineThatIsNoneIsNamed) {
  EXPECT_TRUE(std::string(Revocations::Parse("user/a\n\nwho/b\n").status().message())
                  .starts_with("line 3: allowed are "));
  EXPECT_EQ(Revocations::Parse("")->size(), 0u);
}

TEST(ExposureTest, WhatOthersReachIsPlainOnlyWhereItIsSaidAloud) {
  for (const char* address : {"127.0.0.1:1", "localhost:1", "[::1]:0", "127.9.9.9:7070"}) {
    EXPECT_TRUE(CheckExposure("listen", address, {}).ok()) << address;
  }
  for (const char* address : {"0.0.0.0:1", "[::]:1", "10.0.0.1:1", "host:1", "127.0.0.1.org:1",
                              "[::ffff:10.0.0.1]:1", "localhost.example:1"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(CheckExposure("listen", address, {}))) << address;
    EXPECT_TRUE(CheckExposure("listen", address, {.insecure = true}).ok()) << address;
    EXPECT_TRUE(CheckExposure("listen", address, {.tls_dir = "d"}).ok()) << address;
  }
  EXPECT_FALSE(CheckExposure("listen", "127.0.0.1:1", {.tls_dir = "d", .insecure = true}).ok());
}

}  // namespace
}  // namespace tactus::identity
