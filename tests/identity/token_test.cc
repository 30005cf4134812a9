#include "identity/token.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace tactus::identity {
namespace {

const std::string kPin(64, 'a');

TEST(TokenTest, WhatIsWrittenIsReadBack) {
  const Token token = *MakeToken(kPin);

  const std::optional<Token> read = ParseToken(" " + TokenText(token) + "\n");

  ASSERT_TRUE(read);
  EXPECT_EQ(read->authority, kPin);
  EXPECT_EQ(read->secret, token.secret);
  EXPECT_EQ(token.secret.size(), 32u);
}

TEST(TokenTest, NoTwoAreTheSame) {
  std::set<std::string> secrets;
  for (int i = 0; i < 100; ++i) secrets.insert(MakeToken(kPin)->secret);
  EXPECT_EQ(secrets.size(), 100u);
}

TEST(TokenTest, AnythingElseIsNone) {
  const std::string good = TokenText(*MakeToken(kPin));
  for (const std::string& text :
       {std::string(), std::string(" "), good.substr(1), good + "0", good + " 0",
        "T" + good.substr(1), good.substr(0, good.size() - 1),
        good.substr(0, good.size() - 1) + "A", good.substr(0, good.size() - 1) + "g",
        std::string(good).replace(72, 1, "_"),
        std::string(good).replace(10, 1, std::string(1, '\0')),
        std::string(good).replace(6, 1, "2")}) {
    EXPECT_FALSE(ParseToken(text)) << text;
  }
  ASSERT_TRUE(ParseToken(good));
}

TEST(TokenTest, SecretsAreComparedWhole) {
  EXPECT_TRUE(SameSecret("abc", "abc"));
  EXPECT_FALSE(SameSecret("abc", "abd"));
  EXPECT_FALSE(SameSecret("abc", "abcd"));
  EXPECT_TRUE(SameSecret("", ""));
}

}  // namespace
}  // namespace tactus::identity
