#include "cuda/nccl_endpoint.h"

#include <cstddef>
#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tactus::cuda::nccl {
namespace {

using ::testing::HasSubstr;

constexpr Expected kOfTwelve{.generation = 12, .rank = 0, .nccl_version = 22809};

UniqueId SomeId() {
  UniqueId id;
  for (std::size_t i = 0; i < id.bytes.size(); ++i)
    id.bytes[i] = static_cast<std::byte>(7 * i + 250);
  return id;
}

Endpoint OfTwelve() { return {.generation = 12, .rank = 0, .nccl_version = 22809, .id = SomeId()}; }

TEST(NcclEndpointTest, TheTextGivesBackWhatWasWritten) {
  Endpoint endpoint = OfTwelve();
  endpoint.generation = std::numeric_limits<std::uint64_t>::max();

  const std::string text = ToText(endpoint);
  const ParsedEndpoint parsed =
      EndpointFromText(text, {.generation = endpoint.generation, .rank = 0, .nccl_version = 22809});

  ASSERT_TRUE(parsed.endpoint) << parsed.reason;
  EXPECT_EQ(parsed.endpoint->generation, endpoint.generation);
  EXPECT_EQ(parsed.endpoint->id, endpoint.id);
  EXPECT_LT(text.size(), 400u);
  EXPECT_EQ(text.find_first_of(" \n\t"), text.npos);
}

TEST(NcclEndpointTest, OtherRanksHaveNoId) {
  const std::string text = ToText({.generation = 12, .rank = 3, .nccl_version = 22809});

  const ParsedEndpoint parsed =
      EndpointFromText(text, {.generation = 12, .rank = 3, .nccl_version = 22809});

  ASSERT_TRUE(parsed.endpoint) << parsed.reason;
  EXPECT_FALSE(parsed.endpoint->id);
}

TEST(NcclEndpointTest, AStaleGenerationIsRefusedWithBothNumbers) {
  Endpoint endpoint = OfTwelve();
  endpoint.generation = 11;

  const ParsedEndpoint parsed = EndpointFromText(ToText(endpoint), kOfTwelve);

  EXPECT_FALSE(parsed.endpoint);
  EXPECT_EQ(parsed.reason, "endpoint of rank 0: generation 11, expected 12");
}

TEST(NcclEndpointTest, AnotherRankAnotherVersionAndAMissingIdAreRefused) {
  const std::string text = ToText(OfTwelve());
  Endpoint without_id = OfTwelve();
  without_id.id.reset();

  EXPECT_THAT(EndpointFromText(text, {.generation = 12, .rank = 1, .nccl_version = 22809}).reason,
              HasSubstr("rank 1: it is that of rank 0"));
  EXPECT_THAT(EndpointFromText(text, {.generation = 12, .rank = 0, .nccl_version = 22703}).reason,
              HasSubstr("NCCL 22809, expected 22703"));
  EXPECT_THAT(EndpointFromText(ToText(without_id), kOfTwelve).reason, HasSubstr("no unique id"));
}

TEST(NcclEndpointTest, WhatIsNoEndpointIsRefused) {
  const std::string text = ToText(OfTwelve());
  ASSERT_TRUE(EndpointFromText(text, kOfTwelve).endpoint);
  std::string upper = text;
  upper.back() = 'G';
  const std::string texts[] = {"",
                               "alone",
                               text + "0",
                               text + ":",
                               text.substr(0, text.size() - 1),
                               upper,
                               "nccl2" + text.substr(5),
                               "nccl1:-1:0:22809:-",
                               "nccl1:12:0x0:22809:-",
                               "nccl1:12:0::-",
                               "nccl1:99999999999999999999:0:22809:-",
                               std::string(100'000, ':')};

  for (const std::string& wrong : texts) {
    const ParsedEndpoint parsed = EndpointFromText(wrong, kOfTwelve);
    EXPECT_FALSE(parsed.endpoint) << wrong;
    EXPECT_EQ(parsed.reason, "endpoint of rank 0: not an NCCL endpoint") << wrong;
  }
}

}  // namespace
}  // namespace tactus::cuda::nccl
