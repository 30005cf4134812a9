#include "coordinator/access/enrolment.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <iterator>

#include "absl/strings/match.h"
#include "identity/request.h"
#include "identity/tls_folder.h"
#include "identity/token.h"
#include "runtime/now.h"
#include "runtime/status.h"
#include "tests/support/temporary_folder.h"

namespace tactus::access {
namespace {

constexpr std::int64_t kHour = 3600;

std::string ContentOf(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class EnrolmentTest : public testing::Test {
 protected:
  EnrolmentTest() {
    EXPECT_TRUE(identity::InitAuthority(folder_.File("ca"), "lab", now_ - 2 * kHour, 100).ok());
    Open();
  }

  void Open() {
    enrolment_.reset();
    auto opened = Enrolment::Open({.authority_folder = folder_.File("ca"),
                                   .tls_dir = folder_.File("tls"),
                                   .tokens_file = folder_.File("tokens"),
                                   .life = kHour,
                                   .tokens_max = 10});
    ASSERT_TRUE(opened.ok()) << opened.status();
    enrolment_ = *std::move(opened);
  }
  std::string Token(const std::string& holder) {
    const auto token = enrolment_->CreateToken(holder, kHour, now_);
    EXPECT_TRUE(token.ok()) << token.status();
    return token->text;
  }
  static std::string NewRequest() { return *identity::MakeRequest(*identity::MakeKey()); }
  static std::string Reason(const absl::Status& status) { return runtime::ReasonOf(status).reason; }

  const std::int64_t now_ = runtime::WallSeconds();
  TemporaryFolder folder_;
  std::unique_ptr<Enrolment> enrolment_;
};

TEST_F(EnrolmentTest, ATokenMakesWhomItNamesAndNobodyElse) {
  const std::string token = Token("node/gpu-7");

  const auto issued = enrolment_->Enrol(token, NewRequest(), now_);

  ASSERT_TRUE(issued.ok()) << issued.status();
  const auto read = identity::ReadCertificate(issued->certificate);
  EXPECT_EQ(SpiffeIdOf(read->holder), "spiffe://lab/node/gpu-7");
  EXPECT_EQ(read->end, now_ + kHour);
  EXPECT_EQ(issued->authorities, ContentOf(folder_.File("ca") + "/ca.pem"));
}

TEST_F(EnrolmentTest, ATokenIsGoodOnceAndAgainOnlyForItsKey) {
  const std::string token = Token("user/alice");
  const std::string request = NewRequest();
  ASSERT_TRUE(enrolment_->Enrol(token, request, now_).ok());

  EXPECT_TRUE(enrolment_->Enrol(token, request, now_).ok());
  const absl::Status other = enrolment_->Enrol(token, NewRequest(), now_).status();
  EXPECT_EQ(Reason(other), "TOKEN_REFUSED");
  EXPECT_EQ(other.message(), "token: was used already; tactus admin token makes another");
  Open();  // as after a kill
  EXPECT_EQ(Reason(enrolment_->Enrol(token, NewRequest(), now_).status()), "TOKEN_REFUSED");
  EXPECT_TRUE(enrolment_->Enrol(token, request, now_).ok());
}

TEST_F(EnrolmentTest, OneThatIsTooOldOrWrongIsRefused) {
  const std::string token = Token("node/a");
  identity::Token guessed = *identity::ParseToken(token);
  guessed.secret[0] = guessed.secret[0] == '0' ? '1' : '0';

  EXPECT_TRUE(enrolment_->HolderOf(token, now_ + kHour - 1).ok());
  EXPECT_EQ(Reason(enrolment_->Enrol(token, NewRequest(), now_ + kHour).status()), "TOKEN_REFUSED");
  for (const std::string& wrong : {TokenText(guessed), std::string(), std::string("x")}) {
    const absl::Status refused = enrolment_->Enrol(wrong, NewRequest(), now_).status();
    EXPECT_TRUE(absl::IsUnauthenticated(refused)) << refused;
    EXPECT_EQ(Reason(refused), "TOKEN_REFUSED");
  }
}

TEST_F(EnrolmentTest, GuessingIsBoundedAndKeepsNobodyOut) {
  const std::string token = Token("node/a");
  absl::Status last;
  for (int i = 0; i < 100; ++i) {
    last =
        enrolment_->HolderOf(TokenText(*identity::MakeToken(std::string(64, '0'))), now_).status();
  }

  EXPECT_EQ(Reason(last), "TOO_MANY_WRONG_TOKENS");
  EXPECT_EQ(*enrolment_->HolderOf(token, now_), "node/a");
}

TEST_F(EnrolmentTest, TokensAreNowhereAtRest) {
  const std::string token = Token("node/a");
  ASSERT_TRUE(enrolment_->Enrol(token, NewRequest(), now_).ok());

  const std::string kept = ContentOf(folder_.File("tokens"));
  EXPECT_NE(kept.find("node/a"), std::string::npos);
  EXPECT_EQ(kept.find(identity::ParseToken(token)->secret), std::string::npos);
  struct stat found {};
  ASSERT_EQ(::stat(folder_.File("tokens").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777, 0600u);
}

TEST_F(EnrolmentTest, ARequestThatIsNoneUsesNoTokenUp) {
  const std::string token = Token("node/a");

  for (const char* wrong : {"", "x"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(enrolment_->Enrol(token, wrong, now_).status()));
    EXPECT_TRUE(absl::IsInvalidArgument(
        enrolment_->Renew({.holder = {.kind = identity::Kind::kNode, .name = "a"}}, wrong, now_)
            .status()));
  }
  EXPECT_TRUE(enrolment_->Enrol(token, NewRequest(), now_).ok());
}

TEST_F(EnrolmentTest, NoMoreTokensWaitThanMay) {
  for (int i = 0; i < 10; ++i) Token("node/a");

  EXPECT_EQ(Reason(enrolment_->CreateToken("node/a", kHour, now_).status()), "TOO_MANY_TOKENS");
  EXPECT_TRUE(enrolment_->CreateToken("node/a", kHour, now_ + kHour).ok());
}

TEST_F(EnrolmentTest, TheCoordinatorMakesItsOwnCertificateAndKeepsAYoungOne) {
  const auto own = identity::CertificateOfFolder(folder_.File("tls"));
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_EQ(ShortNameOf(own->holder), "coordinator");
  Open();
  EXPECT_EQ(identity::CertificateOfFolder(folder_.File("tls"))->serial, own->serial);

  enrolment_.reset();
  ASSERT_TRUE(identity::RenewIn(folder_.File("ca"), folder_.File("tls"),
                                {.now = now_ - kHour, .seconds = kHour})
                  .ok());
  Open();

  const std::int64_t end = identity::CertificateOfFolder(folder_.File("tls"))->end;
  EXPECT_GE(end, now_ + kHour);
  EXPECT_LE(end, runtime::WallSeconds() + kHour);
}

TEST_F(EnrolmentTest, FilesThatAreWrongAreNamed) {
  enrolment_.reset();
  ASSERT_TRUE(std::ofstream(folder_.File("tokens")) << "{\"tokens\": 7}");
  const auto opened = Enrolment::Open({.authority_folder = folder_.File("ca"),
                                       .tls_dir = folder_.File("tls"),
                                       .tokens_file = folder_.File("tokens"),
                                       .life = kHour});
  EXPECT_TRUE(absl::IsInvalidArgument(opened.status()));
  EXPECT_NE(opened.status().message().find(folder_.File("tokens")), absl::string_view::npos);
  const auto none = Enrolment::Open({.authority_folder = folder_.File("none"), .life = kHour});
  EXPECT_TRUE(absl::StartsWith(none.status().message(), "ca-dir: ")) << none.status();
}

}  // namespace
}  // namespace tactus::access
