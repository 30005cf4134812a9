#include "crypto/mac.h"

#include <cstdio>
#include <span>
#include <string>
#include <string_view>

#include "gtest/gtest.h"

namespace tactus::crypto {
namespace {

std::string Hex(const Mac& mac) {
  std::string text;
  for (const std::byte byte : mac) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned>(byte));
    text += digits;
  }
  return text;
}

Mac Of(std::string_view key, std::string_view message) {
  return MacOf(key, std::as_bytes(std::span(message)));
}

// Source: RFC 4231, test cases 1, 2 and 6.
TEST(MacTest, AgreesWithTheVectorsOfRfc4231) {
  EXPECT_EQ(Hex(Of(std::string(20, '\x0b'), "Hi There")),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(Hex(Of("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(
      Hex(Of(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First")),
      "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(MacTest, AnEmptyKeyIsNoFormerKey) {
  const Mac empty = Of("", "message");
  EXPECT_FALSE(SameMac(Of("key", "message"), empty));
  EXPECT_TRUE(SameMac(Of("", "message"), empty));
}

TEST(MacTest, OneBitMakesAnother) {
  Mac mac = Of("key", "message");
  const Mac same = mac;
  EXPECT_TRUE(SameMac(mac, same));
  mac.back() ^= std::byte{1};
  EXPECT_FALSE(SameMac(mac, same));
}

}  // namespace
}  // namespace tactus::crypto
