#include "coordinator/bucket/answers.h"

#include <gtest/gtest.h>

namespace tactus::bucket {
namespace {

Answer Refusal(int status, const std::string& code) {
  return {.status = status,
          .body = "<?xml version=\"1.0\"?><Error><Code>" + code +
                  "</Code><Message>some\nwords</Message></Error>",
          .time = 1'000'000};
}

const Asked kAsked = {.what = "PUT blobs/x", .name = "s3://b at https://h", .now = 1'001'200};

TEST(AnswersTest, ElementsAreFoundInTheirOrderAndWithoutTheirEscapes) {
  const std::string xml =
      "<L><C><Key>a&amp;b</Key></C><C><Key>&quot;c&quot;</Key></C><Key></Key><C><Key>cut";

  EXPECT_EQ(ElementsOf(xml, "C"),
            (std::vector<std::string>{"<Key>a&amp;b</Key>", "<Key>&quot;c&quot;</Key>"}));
  EXPECT_EQ(TextOf(xml, "Key"), "a&b");
  EXPECT_EQ(TextOf(xml, "None"), "");
  EXPECT_EQ(Unescaped("&lt;&gt;&apos;&amp;lt;&nbsp;&"), "<>'&lt;&nbsp;&");
  EXPECT_EQ(Unescaped(Escaped("<a b=\"c\">'&amp;'")), "<a b=\"c\">'&amp;'");
}

TEST(AnswersTest, AQuerysValueIsEncodedAsItIsSigned) {
  EXPECT_EQ(PercentEncoded("aZ9-_.~"), "aZ9-_.~");
  EXPECT_EQ(PercentEncoded("a/b+c=\xff "), "a%2Fb%2Bc%3D%FF%20");
}

TEST(AnswersTest, WhatMayPassIsTriedAgainAndAllElseIsNot) {
  for (const int status : {429, 500, 502, 503, 504}) EXPECT_TRUE(MayPass({.status = status}));
  for (const int status : {200, 204, 301, 400, 403, 404, 416, 501}) {
    EXPECT_FALSE(MayPass({.status = status})) << status;
  }
  EXPECT_TRUE(MayPass(Refusal(400, "RequestTimeout")));
  EXPECT_TRUE(MayPass(Refusal(400, "XAmzContentSHA256Mismatch")));
  EXPECT_FALSE(MayPass(Refusal(403, "SignatureDoesNotMatch")));
}

TEST(AnswersTest, ARefusalSaysWhatWasAskedWhatWasAnsweredAndWhatToDo) {
  const std::pair<Answer, std::string> refusals[] = {
      {Refusal(404, "NoSuchBucket"), "404 NoSuchBucket: make the bucket, or correct --blobs"},
      {Refusal(403, "InvalidAccessKeyId"), "403 InvalidAccessKeyId: there is no such key id"},
      {Refusal(403, "SignatureDoesNotMatch"), "the secret key is wrong"},
      {Refusal(403, "RequestTimeTooSkewed"), "clock is 1200 s ahead of the server's, allowed are"},
      {Refusal(400, "ExpiredToken"), "the session token is over"},
      {Refusal(301, "PermanentRedirect"), "correct --blobs-region"},
      {Refusal(418, "Teapot"), "418 Teapot (some words)"}};
  for (const auto& [answer, text] : refusals) {
    const std::string message(Judge(answer, kAsked).message());
    EXPECT_TRUE(message.starts_with("blobs: s3://b at https://h: PUT blobs/x was answered with "))
        << message;
    EXPECT_NE(message.find(text), message.npos) << message;
    EXPECT_EQ(message.find('\n'), message.npos) << message;
  }
}

TEST(AnswersTest, CodesTellWhatIsMissingFromWhatIsNotAllowed) {
  EXPECT_TRUE(Judge({.status = 206}, kAsked).ok());
  EXPECT_TRUE(absl::IsNotFound(Judge(Refusal(404, "NoSuchKey"), kAsked)));
  EXPECT_TRUE(absl::IsNotFound(Judge({.status = 404}, kAsked)));  // of a HEAD
  EXPECT_TRUE(absl::IsFailedPrecondition(Judge(Refusal(404, "NoSuchBucket"), kAsked)));
  EXPECT_TRUE(absl::IsPermissionDenied(Judge(Refusal(403, "AccessDenied"), kAsked)));
  EXPECT_TRUE(absl::IsPermissionDenied(Judge(Refusal(400, "ExpiredToken"), kAsked)));
  EXPECT_TRUE(absl::IsFailedPrecondition(Judge(Refusal(403, "RequestTimeTooSkewed"), kAsked)));
  EXPECT_TRUE(absl::IsUnavailable(Judge(Refusal(503, "SlowDown"), kAsked)));
}

TEST(AnswersTest, WhatAServerSaysIsCutAndPrintable) {
  Answer answer = Refusal(418, "Tea\x1b[31mpot" + std::string(1000, 'x'));
  answer.body.replace(answer.body.find("some"), 4, std::string(1000, '\x07'));

  const std::string message(Judge(answer, kAsked).message());

  EXPECT_LT(message.size(), 500u);
  for (const char c : message) EXPECT_TRUE(c >= ' ' && c <= '~') << message;
}

}  // namespace
}  // namespace tactus::bucket
