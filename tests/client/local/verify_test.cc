#include "client/local/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "coordinator/access/envelope.h"
#include "coordinator/access/provenance.h"
#include "identity/authority.h"
#include "runtime/sha256.h"
#include "tests/support/temporary_folder.h"

namespace tactus::client {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::int64_t kThen = 1'700'000'000;

// A result that was downloaded: two files, the plans and the record.
class VerifyTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder_.path() + "/r/snapshots");
    Write("model.pt", "weights");
    Write("snapshots/1.pt", "older weights");
    Write(access::kPlansFile, "{}\n");
    const identity::TlsTexts own = Issue(authority_, identity::Kind::kCoordinator, "");
    serial_ = identity::ReadCertificate(own.certificate)->serial;
    Sign(own, "spiffe://tactus/coordinator");
    order_ = {.folder = folder_.path() + "/r",
              .authority = authority_.certificate,
              .domain = "tactus",
              .now = kThen};
  }

  static identity::TlsTexts Issue(const identity::AuthorityTexts& authority, identity::Kind kind,
                                  const std::string& name) {
    return *identity::IssueCertificate(authority,
                                       {.kind = kind, .name = name, .now = kThen, .seconds = 1000});
  }

  void Write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_.path() + "/r/" + name, std::ios::binary | std::ios::trunc) << content;
  }

  access::Provenance Record(const std::string& builder) const {
    return {.files = {{.name = "model.pt", .sha256 = runtime::Sha256Of("weights")},
                      {.name = "snapshots/1.pt", .sha256 = runtime::Sha256Of("older weights")}},
            .job = "jobs/small-1",
            .owner = "user/alice",
            .spec = "{}",
            .plans = {.name = access::kPlansFile, .sha256 = runtime::Sha256Of("{}\n")},
            .builder = builder,
            .ended = kThen,
            .signed_at = kThen + 10};
  }

  void Sign(const identity::TlsTexts& by, const std::string& builder) const {
    access::Envelope envelope = {.payload_type = access::kStatementPayload,
                                 .payload = access::StatementOf(Record(builder))};
    ASSERT_TRUE(access::AddSignature(by.certificate, by.key, envelope).ok());
    Write(access::kProvenanceFile, access::TextOf(envelope));
  }

  // What is wrong, a line each.
  std::string Wrong() const {
    const auto findings = VerifyResult(order_);
    if (!findings.ok()) return findings.status().ToString();
    std::string text;
    for (const VerifyFinding& finding : *findings) text += finding.right ? "" : finding.text + "\n";
    return text;
  }
  std::string All() const {
    const auto findings = VerifyResult(order_);
    std::string text;
    for (const VerifyFinding& finding : *findings) text += finding.text + "\n";
    return text;
  }

  TemporaryFolder folder_;
  const identity::AuthorityTexts authority_ = *identity::MakeAuthority("tactus", kThen, 10);
  std::string serial_;  // of the certificate that signed
  VerifyOrder order_;
};

TEST_F(VerifyTest, AResultAsItCameIsRight) {
  EXPECT_EQ(Wrong(), "");
  EXPECT_THAT(All(), HasSubstr("made by job small-1, submitted by user/alice"));
  EXPECT_THAT(All(), HasSubstr("signature: by spiffe://tactus/coordinator, certificate "));
}

TEST_F(VerifyTest, WhatWasChangedTakenAwayOrAddedIsNamed) {
  Write("model.pt", "weightz");
  std::filesystem::remove(folder_.path() + "/r/snapshots/1.pt");
  Write("snapshots/2.pt", "others");

  const std::string wrong = Wrong();

  EXPECT_THAT(wrong, HasSubstr("model.pt: is another one: found sha256 "));
  EXPECT_THAT(wrong, HasSubstr("snapshots/1.pt: is not there\n"));
  EXPECT_THAT(wrong, HasSubstr("snapshots/2.pt: is not in the record\n"));
}

TEST_F(VerifyTest, ALinkIsNoFileOfTheResult) {
  std::ofstream(folder_.path() + "/elsewhere") << "weights";
  std::filesystem::remove(folder_.path() + "/r/model.pt");
  std::filesystem::create_symlink(folder_.path() + "/elsewhere", folder_.path() + "/r/model.pt");
  EXPECT_THAT(Wrong(), HasSubstr("model.pt: is no file"));
}

TEST_F(VerifyTest, ARecordThatWasChangedIsNotSigned) {
  const std::string path = folder_.path() + "/r/" + access::kProvenanceFile;
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  access::Envelope envelope = *access::ReadEnvelope(text.str());
  access::Provenance record = Record("spiffe://tactus/coordinator");
  record.files[0].sha256 = runtime::Sha256Of("weightz");
  envelope.payload = access::StatementOf(record);
  Write(access::kProvenanceFile, access::TextOf(envelope));
  Write("model.pt", "weightz");

  EXPECT_EQ(Wrong(), "signature: is not that of the certificate's key over what was signed\n");
}

TEST_F(VerifyTest, OnlyACoordinatorOfTheAuthorityVouches) {
  Sign(Issue(authority_, identity::Kind::kNode, "a"), "spiffe://tactus/coordinator");
  EXPECT_EQ(Wrong(), "signature: is by spiffe://tactus/node/a, allowed is a coordinator\n");
  const identity::AuthorityTexts other = *identity::MakeAuthority("tactus", kThen, 10);
  Sign(Issue(other, identity::Kind::kCoordinator, ""), "spiffe://tactus/coordinator");
  EXPECT_THAT(Wrong(), HasSubstr("signature: the authority has not signed the certificate"));
  Sign(Issue(authority_, identity::Kind::kCoordinator, ""), "spiffe://another/coordinator");
  EXPECT_THAT(Wrong(), HasSubstr("and the record says spiffe://another/coordinator"));
  order_.domain = "another";
  EXPECT_THAT(Wrong(), HasSubstr("allowed is spiffe://another/coordinator"));
}

TEST_F(VerifyTest, ACertificateThatHasExpiredSinceWasValidThen) {
  order_.now = kThen + 100'000;
  EXPECT_EQ(Wrong(), "");
  EXPECT_THAT(All(), HasSubstr("has expired since, at 2023-11-14T22:30:00Z, and was valid when"));
}

TEST_F(VerifyTest, WhatARevokedCertificateSignedCountsFromBeforeAlone) {
  EXPECT_THAT(All(), HasSubstr("; whether that was revoked is not asked without --revoked"));
  const auto revoke = [&](const std::string& line) {
    const auto revoked = identity::Revocations::Parse(line);
    ASSERT_TRUE(revoked.ok()) << revoked.status();
    order_.revoked = *revoked;
  };

  revoke("user/alice\nserial 0f\n");
  EXPECT_EQ(Wrong(), "");
  EXPECT_THAT(All(), Not(HasSubstr("revoked")));

  // It was signed at 22:13:30.
  revoke("coordinator since 2023-11-14T22:13:31Z");
  EXPECT_EQ(Wrong(), "");
  EXPECT_THAT(All(),
              HasSubstr("; the certificate is revoked since 2023-11-14T22:13:31Z, and by the "
                        "record's own word signed before"));
  revoke("coordinator since 2023-11-14T22:13:30Z");
  EXPECT_THAT(Wrong(),
              HasSubstr("spiffe://tactus/coordinator, at 2023-11-14T22:13:30Z, and that is "
                        "revoked since 2023-11-14T22:13:30Z\n"));
  revoke("coordinator");
  EXPECT_THAT(Wrong(), HasSubstr("of spiffe://tactus/coordinator, which is revoked\n"));
  revoke("serial " + serial_);
  EXPECT_THAT(Wrong(), HasSubstr("is by certificate " + serial_));
}

TEST_F(VerifyTest, WithoutASignatureAnAuthorityThatIsAskedForIsMissed) {
  const access::Envelope envelope = {.payload_type = access::kStatementPayload,
                                     .payload = access::StatementOf(Record(access::kUnidentified))};
  Write(access::kProvenanceFile, access::TextOf(envelope));
  EXPECT_THAT(Wrong(), HasSubstr("signature: there is none"));

  order_.authority = order_.domain = "";

  EXPECT_EQ(Wrong(), "");
  EXPECT_THAT(All(), HasSubstr("whoever may write the files may write the record"));
}

TEST_F(VerifyTest, AFileOutsideOfTheFolderIsNotRead) {
  access::Provenance record = Record("spiffe://tactus/coordinator");
  record.files[0].name = "../elsewhere";
  access::Envelope envelope = {.payload_type = access::kStatementPayload,
                               .payload = access::StatementOf(record)};
  Write(access::kProvenanceFile, access::TextOf(envelope));
  EXPECT_THAT(Wrong(), HasSubstr("../elsewhere: leaves the folder"));
}

TEST_F(VerifyTest, NoRecordIsSaidToBeNone) {
  Write(access::kProvenanceFile, "{}");
  EXPECT_TRUE(absl::IsInvalidArgument(VerifyResult(order_).status()));
  std::filesystem::remove(folder_.path() + "/r/" + access::kProvenanceFile);
  EXPECT_TRUE(absl::IsNotFound(VerifyResult(order_).status()));
}

}  // namespace
}  // namespace tactus::client
