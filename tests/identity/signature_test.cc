#include "identity/signature.h"

#include <gtest/gtest.h>

#include "identity/authority.h"

namespace tactus::identity {
namespace {

constexpr std::int64_t kThen = 1'700'000'000;

class SignatureTest : public testing::Test {
 protected:
  TlsTexts Issue(const AuthorityTexts& authority, Kind kind, const std::string& name = "") const {
    const auto texts =
        IssueCertificate(authority, {.kind = kind, .name = name, .now = kThen, .seconds = 1000});
    EXPECT_TRUE(texts.ok()) << texts.status();
    return *texts;
  }

  const AuthorityTexts authority_ = *MakeAuthority("tactus", kThen, 10);
  const TlsTexts own_ = Issue(authority_, Kind::kCoordinator);
};

TEST_F(SignatureTest, IsOfThatKeyAndThoseBytesAlone) {
  const auto signature = Sign(own_.key, "what was said");
  ASSERT_TRUE(signature.ok()) << signature.status();
  const TlsTexts other = Issue(authority_, Kind::kCoordinator);

  EXPECT_TRUE(CheckSignature(own_.certificate, "what was said", *signature).ok());
  EXPECT_TRUE(absl::IsDataLoss(CheckSignature(own_.certificate, "what was sait", *signature)));
  EXPECT_TRUE(absl::IsDataLoss(CheckSignature(other.certificate, "what was said", *signature)));
  for (std::size_t i = 0; i < signature->size(); ++i) {
    std::string changed = *signature;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_FALSE(CheckSignature(own_.certificate, "what was said", changed).ok()) << i;
  }
  EXPECT_FALSE(CheckSignature(own_.certificate, "what was said", "").ok());
  EXPECT_TRUE(absl::IsInvalidArgument(CheckSignature("none", "", "")));
  EXPECT_TRUE(absl::IsInvalidArgument(Sign("none", "").status()));
}

TEST_F(SignatureTest, WhatWasValidThenIsWhateverTheTimeIsNow) {
  const auto then = CheckIssued(own_.certificate, authority_.certificate, kThen + 999);
  ASSERT_TRUE(then.ok()) << then.status();
  EXPECT_EQ(SpiffeIdOf(then->holder), "spiffe://tactus/coordinator");

  for (const std::int64_t time : {kThen + 1000, kThen - 1000}) {
    const auto refused = CheckIssued(own_.certificate, authority_.certificate, time);
    EXPECT_TRUE(absl::IsFailedPrecondition(refused.status())) << refused.status();
  }
}

TEST_F(SignatureTest, AnotherAuthorityOfTheSameNameIsAnother) {
  const AuthorityTexts other = *MakeAuthority("tactus", kThen, 10);
  const TlsTexts theirs = Issue(other, Kind::kCoordinator);

  EXPECT_TRUE(absl::IsInvalidArgument(
      CheckIssued(theirs.certificate, authority_.certificate, kThen).status()));
  EXPECT_TRUE(
      CheckIssued(theirs.certificate, authority_.certificate + other.certificate, kThen).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(CheckIssued(own_.certificate, "none", kThen).status()));
}

}  // namespace
}  // namespace tactus::identity
