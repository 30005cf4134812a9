#include "policies/memory.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/policies/mended_memory.h"

namespace tactus::policies {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Part {
  double value = 0;

  friend bool operator==(const Part&, const Part&) = default;
  friend void Fields(auto& archive, Of<Part> auto& part) { archive("value", part.value); }
  friend bool Sound(const Part& part) { return part.value < 1000; }
};

// One field of each kind.
struct Sample {
  bool yes = false;
  std::int64_t low = 0;
  std::uint64_t high = 0;
  std::int32_t count = 0;
  std::vector<double> numbers{};
  std::string text{};
  std::optional<double> there{};
  std::optional<Part> missing = Part{};
  std::deque<Part> parts{};
  std::array<Part, 2> pair{};
  std::map<std::uint64_t, Part> map{};
  std::vector<bool> flags{};

  friend bool operator==(const Sample&, const Sample&) = default;
};
void Fields(auto& archive, Of<Sample> auto& sample) {
  archive("yes", sample.yes);
  archive("low", sample.low);
  archive("high", sample.high);
  archive("count", sample.count);
  archive("numbers", sample.numbers);
  archive("text", sample.text);
  archive("there", sample.there);
  archive("missing", sample.missing);
  archive("parts", sample.parts);
  archive("pair", sample.pair);
  archive("map", sample.map);
  archive("flags", sample.flags);
}

Sample Full() {
  return {.yes = true,
          .low = std::numeric_limits<std::int64_t>::min(),
          .high = std::numeric_limits<std::uint64_t>::max(),
          .count = -300,
          .numbers = {0.1, -0.0, 1e-310, kInfinity, -kInfinity},
          .text = std::string("a\0b", 3),
          .there = 0.25,
          .missing = std::nullopt,
          .parts = {{1}, {2}, {3}},
          .pair = {{{4}, {5}}},
          .map = {{7, {8}}, {9, {10}}},
          .flags = {true, false, true}};
}

template <typename T>
std::string Written(const T& value) {
  MemoryWriter writer;
  writer.Write(value);
  return writer.Finish();
}

template <typename T>
std::optional<T> ReadBack(const std::string& bytes) {
  T value;
  MemoryReader reader(bytes);
  reader.Read(value);
  return reader.Finish() ? std::optional(std::move(value)) : std::nullopt;
}

TEST(MemoryTest, WhatIsReadIsWhatWasWritten) {
  const std::optional<Sample> back = ReadBack<Sample>(Written(Full()));

  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(*back, Full());
  EXPECT_EQ(Written(*back), Written(Full()));  // bit for bit: -0 is equal to 0
}

TEST(MemoryTest, ANumberThatIsNoneKeepsItsBits) {
  const double odd = std::bit_cast<double>(std::bit_cast<std::uint64_t>(kNan) | 5);

  const std::optional<Part> none = ReadBack<Part>(Written(Part{.value = odd}));

  EXPECT_FALSE(none.has_value()) << "a number that is none is below nothing, so it is not sound";
  const auto back = ReadBack<std::vector<double>>(Written(std::vector<double>{odd}));
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(std::bit_cast<std::uint64_t>(back->front()), std::bit_cast<std::uint64_t>(odd));
}

TEST(MemoryTest, WhatDoesNotHoldIsRefusedHoweverDeepItStands) {
  Sample sample = Full();
  sample.map[9].value = 1000;

  EXPECT_FALSE(ReadBack<Sample>(Written(sample)).has_value());
}

TEST(MemoryTest, EachPrefixAndEachFlippedBitIsRefused) {
  const std::string bytes = Written(Full());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(ReadBack<Sample>(bytes.substr(0, size)).has_value()) << size;
  }
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = bytes;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
      EXPECT_FALSE(ReadBack<Sample>(flipped).has_value()) << at << " " << bit;
    }
  }
  EXPECT_FALSE(ReadBack<Sample>(bytes + " ").has_value());
}

TEST(MemoryTest, BytesWithARightSumThatSayAnythingAreReadOrRefused) {
  const std::string bytes = Written(Full());
  for (std::size_t at = 0; at + 8 < bytes.size(); ++at) {
    for (const char byte : {'\0', '\1', '\x7f', '\x80', '\xff'}) {
      std::string other = bytes;
      other[at] = byte;
      ReadBack<Sample>(Mended(other));  // it comes back
      ReadBack<Sample>(Mended(other.substr(0, at + 9)));
    }
  }
}

struct Renamed {
  double value = 0;
};
void Fields(auto& archive, Of<Renamed> auto& part) { archive("worth", part.value); }

TEST(MemoryTest, FieldsOfOtherNamesAreRefused) {
  EXPECT_TRUE(ReadBack<Part>(Written(Part{.value = 1})).has_value());
  EXPECT_FALSE(ReadBack<Renamed>(Written(Part{.value = 1})).has_value());
}

TEST(MemoryTest, AListThatClaimsMoreThanThereIsTakesNoRoom) {
  std::string bytes = Written(std::vector<double>{1});
  bytes[0] = '\x7f';  // its length

  EXPECT_FALSE(ReadBack<std::vector<double>>(Mended(bytes)).has_value());
}

}  // namespace
}  // namespace tactus::policies
