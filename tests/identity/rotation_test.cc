// Requests, folders that keep their keys, and one authority in the place of another.

#include "identity/rotation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "identity/certificate.h"
#include "identity/keeper.h"
#include "identity/request.h"
#include "identity/secret_file.h"
#include "identity/tls_folder.h"
#include "runtime/now.h"
#include "tests/support/temporary_folder.h"

namespace tactus::identity {
namespace {

constexpr std::int64_t kMade = 1'900'000'000;
constexpr std::int64_t kWeek = 7 * kDaySeconds;

std::string TextIn(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class RotationTest : public testing::Test {
 protected:
  RotationTest() { EXPECT_TRUE(InitAuthority(ca_, "tactus", kMade, 1000).ok()); }

  TlsTexts Issued(std::int64_t now, Kind kind = Kind::kNode) const {
    const auto authority = ReadAuthority(ca_, now);
    EXPECT_TRUE(authority.ok()) << authority.status();
    const auto issued = IssueCertificate(
        *authority, {.kind = kind, .name = kind == Kind::kNode ? "a" : "", .now = now});
    EXPECT_TRUE(issued.ok()) << issued.status();
    return *issued;
  }
  // Whether who has `theirs` takes `one` for good at `now`.
  static std::string Judged(const TlsTexts& theirs, const TlsTexts& one, std::int64_t now) {
    return std::string(
        CheckTlsTexts(
            {.authority = theirs.authority, .certificate = one.certificate, .key = one.key}, now)
            .status()
            .message());
  }

  TemporaryFolder folder_;
  const std::string ca_ = folder_.path() + "/ca";
};

// Whoever has a certificate that is valid knows all authorities that have signed valid ones.
TEST_F(RotationTest, AtEveryMomentAllWhoAreValidKnowEachOther) {
  const std::int64_t begin = kMade + 10;
  const TlsTexts before = Issued(begin - 1);
  const auto rotated = RotateAuthority(ca_, {.now = begin, .over = kWeek});
  ASSERT_TRUE(rotated.ok()) << rotated.status();
  EXPECT_EQ(rotated->signs, begin + kWeek);
  EXPECT_EQ(rotated->closed, begin + 2 * kWeek);

  // A certificate of each half day, of three weeks; each lives a week.
  std::vector<std::pair<std::int64_t, TlsTexts>> all = {{begin - 1, before}};
  for (std::int64_t at = begin; at < begin + 3 * kWeek; at += kDaySeconds / 2) {
    all.emplace_back(at, Issued(at));
  }
  for (const auto& [mine, me] : all) {
    for (const auto& [yours, you] : all) {
      const std::int64_t now = std::max(mine, yours);
      if (now >= std::min(mine, yours) + kWeek) continue;  // one of the two is not valid any more
      EXPECT_EQ(Judged(me, you, now), "") << mine - begin << " meets " << yours - begin;
    }
  }

  // The old one has signed nothing that outlives it, and is not trusted by who comes later.
  EXPECT_EQ(ReadCertificate(all[28].second.certificate)->end, all[28].first + kWeek);
  EXPECT_NE(Judged(all.back().second, before, begin), "");
}

TEST_F(RotationTest, TheKeyThatSignsIsTheOneThatBeganLast) {
  const std::string first = ReadAuthority(ca_, kMade)->key;
  ASSERT_TRUE(RotateAuthority(ca_, {.now = kMade, .over = 100}).ok());

  EXPECT_EQ(ReadAuthority(ca_, kMade + 99)->key, first);
  EXPECT_NE(ReadAuthority(ca_, kMade + 100)->key, first);
  EXPECT_NE(ReadAuthority(ca_, kMade + 250)->key, first);
  EXPECT_EQ(RotateAuthority(ca_, {.now = kMade + 50, .over = 100}).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(RotateAuthority(ca_, {.now = kMade + 50, .over = 0}).status().code(),
            absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(RotateAuthority(ca_, {.now = kMade + 500, .over = 100}).ok());
  EXPECT_EQ(TextIn(ca_ + "/ca-key.pem").find(first), std::string::npos);
}

TEST_F(RotationTest, ATokensPinOutlivesTheFirstHalfOfARotation) {
  const auto pin = [&](std::int64_t now) {
    return *KeyHashOfCertificate(ReadAuthority(ca_, now)->certificate);
  };
  const std::string before = pin(kMade);
  ASSERT_TRUE(RotateAuthority(ca_, {.now = kMade, .over = 1000}).ok());

  EXPECT_EQ(pin(kMade + 999), before);
  EXPECT_TRUE(IsPinnedCoordinator(Issued(kMade + 999, Kind::kCoordinator).certificate, before,
                                  kMade + 999));
}

TEST_F(RotationTest, OnlyThePinnedAuthoritysCoordinatorIsTakenForIt) {
  const std::string pin = *KeyHashOfCertificate(ReadAuthority(ca_, kMade)->certificate);
  const TlsTexts own = Issued(kMade, Kind::kCoordinator);
  const AuthorityTexts other = *MakeAuthority("tactus", kMade, 100);
  const TlsTexts others = *IssueCertificate(other, {.kind = Kind::kCoordinator, .now = kMade});
  const TlsTexts node = Issued(kMade);

  EXPECT_TRUE(IsPinnedCoordinator(own.certificate, pin, kMade));
  EXPECT_FALSE(IsPinnedCoordinator(own.certificate, std::string(64, '0'), kMade));
  EXPECT_FALSE(IsPinnedCoordinator(own.certificate, pin, kMade + 8 * kDaySeconds));
  EXPECT_FALSE(IsPinnedCoordinator(others.certificate, pin, kMade));
  // Another's certificate beside the pinned authority's, which everybody can have.
  EXPECT_FALSE(IsPinnedCoordinator(others.certificate + own.authority, pin, kMade));
  EXPECT_FALSE(IsPinnedCoordinator(node.certificate + own.authority, pin, kMade));
  EXPECT_FALSE(IsPinnedCoordinator(own.authority, pin, kMade));
  EXPECT_FALSE(IsPinnedCoordinator("", pin, kMade));
}

TEST_F(RotationTest, ARequestIsOfItsKeyAndOfAStrongOne) {
  const std::string key = *MakeKey();
  const std::string request = *MakeRequest(key);
  const auto authority = *ReadAuthority(ca_, kMade);

  const auto issued = IssueCertificate(
      authority, {.kind = Kind::kNode, .name = "a", .now = kMade, .request = request});

  ASSERT_TRUE(issued.ok()) << issued.status();
  EXPECT_EQ(issued->key, "");
  EXPECT_EQ(*KeyHashOfRequest(request), *KeyHashOfCertificate(issued->certificate));
  EXPECT_TRUE(CheckTlsTexts({issued->authority, issued->certificate, key}, kMade).ok());
  std::string changed = request;
  changed[request.size() / 2] = changed[request.size() / 2] == 'A' ? 'B' : 'A';
  for (const std::string& wrong : {std::string("x"), changed, std::string(20'000, ' ') + request,
                                   authority.certificate, key}) {
    EXPECT_EQ(KeyHashOfRequest(wrong).status().code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_FALSE(MakeRequest("x").ok());
}

class TlsFolderTest : public RotationTest {
 protected:
  // As who has enrolled: a key of its own, and what came back.
  void Enrol(std::int64_t now, std::int64_t seconds) {
    const auto request = RequestFor(tls_);
    ASSERT_TRUE(request.ok()) << request.status();
    const auto issued =
        IssueCertificate(*ReadAuthority(ca_, now), {.kind = Kind::kNode,
                                                    .name = "a",
                                                    .dns = {"a.lab"},
                                                    .addresses = {"10.0.0.1", "::1"},
                                                    .now = now,
                                                    .seconds = seconds,
                                                    .request = *request});
    ASSERT_TRUE(issued.ok()) << issued.status();
    const auto kept =
        KeepInFolder(tls_, {.authority = issued->authority, .certificate = issued->certificate});
    ASSERT_TRUE(kept.ok()) << kept.status();
  }

  const std::string tls_ = folder_.path() + "/tls";
};

TEST_F(TlsFolderTest, TheKeyStaysAndIsPrivate) {
  EXPECT_TRUE(NeedsCertificate(tls_, kMade));
  Enrol(kMade, 900);
  const std::string key = TextIn(tls_ + "/key.pem");

  EXPECT_FALSE(NeedsCertificate(tls_, kMade + 899));
  EXPECT_TRUE(NeedsCertificate(tls_, kMade + 900));
  EXPECT_EQ(RenewalTime(*CertificateOfFolder(tls_)), kMade + 600);
  Enrol(kMade + 600, 900);
  EXPECT_EQ(TextIn(tls_ + "/key.pem"), key);
  EXPECT_EQ(static_cast<unsigned>(std::filesystem::status(tls_ + "/key.pem").permissions()), 0600u);
  EXPECT_FALSE(std::filesystem::exists(tls_ + "/cert.pem.new"));
}

TEST_F(TlsFolderTest, WhatIsNotOfItsKeyIsNotKept) {
  Enrol(kMade, 900);
  const std::string before = TextIn(tls_ + "/cert.pem");
  const TlsTexts others = Issued(kMade);

  EXPECT_FALSE(
      KeepInFolder(tls_, {.authority = others.authority, .certificate = others.certificate}).ok());
  EXPECT_EQ(TextIn(tls_ + "/cert.pem"), before);
}

TEST_F(TlsFolderTest, ARenewedCertificateHasTheNamesOfBefore) {
  Enrol(kMade, 900);

  const auto renewed = RenewIn(ca_, tls_, {.now = kMade + 600});

  ASSERT_TRUE(renewed.ok()) << renewed.status();
  EXPECT_EQ(renewed->dns, std::vector<std::string>{"a.lab"});
  EXPECT_EQ(renewed->addresses, (std::vector<std::string>{"10.0.0.1", "::1"}));
  EXPECT_EQ(renewed->end, kMade + 600 + kWeek);
}

TEST_F(TlsFolderTest, TheKeeperRenewsWhatIsDueAndTellsOfEveryChange) {
  const std::int64_t today = runtime::WallSeconds();
  ASSERT_TRUE(InitAuthority(folder_.File("now"), "tactus", today - 1000, 10).ok());
  ASSERT_TRUE(IssueInto(folder_.File("now"), tls_,
                        {.kind = Kind::kNode, .name = "a", .now = today - 800, .seconds = 900})
                  .ok());
  std::promise<void> changed;
  int renewals = 0;
  int changes = 0;
  {
    Keeper keeper({.folder = tls_, .look = Seconds(0.005)},
                  {.renew =
                       [&] {
                         ++renewals;
                         return RenewIn(folder_.File("now"), tls_, {.now = today});
                       },
                   .changed =
                       [&] {
                         // Its own renewal, then somebody else's.
                         if (++changes == 1) {
                           EXPECT_TRUE(RenewIn(folder_.File("now"), tls_, {.now = today}).ok());
                         } else if (changes == 2) {
                           changed.set_value();
                         }
                       }});
    EXPECT_EQ(changed.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
  }
  EXPECT_EQ(renewals, 1);
  EXPECT_EQ(changes, 2);
}

}  // namespace
}  // namespace tactus::identity
