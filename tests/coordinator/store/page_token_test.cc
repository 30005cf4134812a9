#include "coordinator/store/page_token.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/rng.h"

namespace tactus::store {
namespace {

constexpr Listing kListing{.server = "one", .query = "jobs"};

TEST(PageTokenTest, APositionComesBack) {
  const PagePosition position{.number = std::numeric_limits<std::int64_t>::min(),
                              .second = std::numeric_limits<std::int64_t>::max(),
                              .text = std::string("a\0\xff", 3)};

  const auto found = DecodePageToken(kListing, EncodePageToken(kListing, position));

  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->number, position.number);
  EXPECT_EQ(found->second, position.second);
  EXPECT_EQ(found->text, position.text);
}

TEST(PageTokenTest, ItIsOfUseOnlyWithItsListing) {
  const std::string token = EncodePageToken(kListing, {.number = 7});

  for (const Listing& other :
       {Listing{.server = "two", .query = "jobs"}, Listing{.server = "one", .query = "rounds"}}) {
    EXPECT_EQ(DecodePageToken(other, token).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(PageTokenPropertyTest, AChangedDigitIsSeen) {
  const std::string token = EncodePageToken(kListing, {.number = 7, .second = 8, .text = "name"});
  Rng rng(3);
  for (int i = 0; i < 1000; ++i) {
    std::string changed = token;
    char& digit = changed[rng.Below(changed.size())];
    const char former = digit;
    digit = static_cast<char>(rng.Below(256));
    if (digit == former) continue;
    EXPECT_FALSE(DecodePageToken(kListing, changed).ok()) << changed;
  }
}

}  // namespace
}  // namespace tactus::store
