#include "client/text/quantity.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/rng.h"

namespace tactus::client {
namespace {

TEST(QuantityTest, RatesAreBitsOrBytesASecond) {
  EXPECT_EQ(ParseRate("8bit"), 1);
  EXPECT_EQ(ParseRate("100mbit"), 12.5e6);
  EXPECT_EQ(ParseRate("1.5gbit"), 187.5e6);
  EXPECT_EQ(ParseRate("1tbit"), 125e9);
  EXPECT_EQ(ParseRate("10MB/s"), 1e7);
  EXPECT_EQ(ParseRate("2GiB/s"), 2147483648.0);
  EXPECT_EQ(ParseRate("0bit"), 0);
}

TEST(QuantityTest, WhatIsNoRateIsRefused) {
  for (const char* text : {"", "100", "mbit", "-5mbit", "-0mbit", "1 mbit", "1Mbit", "1mbits",
                           "nanmbit", "infmbit", "1e400mbit", "1e308gbit", "0x1mbit", "MB/s"}) {
    EXPECT_EQ(ParseRate(text), std::nullopt) << text;
  }
}

TEST(QuantityTest, SizesAreBytes) {
  EXPECT_EQ(ParseSize("0"), 0);
  EXPECT_EQ(ParseSize("512B"), 512);
  EXPECT_EQ(ParseSize("128KiB"), 131072);
  EXPECT_EQ(ParseSize("1.5MiB"), 1572864);
  EXPECT_EQ(ParseSize("1GB"), 1e9);
  for (const char* text : {"", "1", "-1KiB", "KiB", "1kib", "1KiB "}) {
    EXPECT_EQ(ParseSize(text), std::nullopt) << text;
  }
}

TEST(QuantityTest, RatesAndSizesAreWrittenInTheirLargestUnit) {
  EXPECT_EQ(FormatBitRate(12.5e6), "100mbit");
  EXPECT_EQ(FormatBitRate(1.25e9), "10gbit");
  EXPECT_EQ(FormatBitRate(0.5), "4bit");
  EXPECT_EQ(FormatSize(0), "0");
  EXPECT_EQ(FormatSize(131072), "128KiB");
  EXPECT_EQ(FormatSize(1000), "1000B");
}

TEST(QuantityTest, WhatIsWrittenReadsBackAsTheSameNumber) {
  Rng rng(1);
  for (int i = 0; i < 1000; ++i) {
    const double value = std::exp(40 * rng.Uniform() - 10);

    EXPECT_EQ(ParseRate(FormatBitRate(value)), value) << FormatBitRate(value);
    EXPECT_EQ(ParseSize(FormatSize(value)), value) << FormatSize(value);
    EXPECT_EQ(ParseNumber(FormatNumber(value)), value) << FormatNumber(value);
  }
}

TEST(QuantityTest, NumbersThatAreNotFiniteAreWrittenButNotRead) {
  EXPECT_EQ(FormatNumber(-std::numeric_limits<double>::quiet_NaN()), "nan");
  EXPECT_EQ(FormatNumber(-INFINITY), "-inf");
  for (const char* text : {"nan", "inf", "1e999", "", "1 ", " 1", "1x"}) {
    EXPECT_EQ(ParseNumber(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace tactus::client
