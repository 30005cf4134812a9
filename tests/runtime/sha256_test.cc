#include "runtime/sha256.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "runtime/process.h"

namespace tactus::runtime {
namespace {

std::string HashOf(const std::string& text) {
  Sha256 hash;
  hash.Update(text);
  return hash.Finish();
}

// FIPS 180-4's examples.
TEST(Sha256Test, KnownAnswers) {
  EXPECT_EQ(HashOf(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(HashOf("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(HashOf(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256Test, PiecesMakeTheSameHashAsTheWhole) {
  const std::string text(1000, 'x');
  for (const std::size_t piece : {1u, 7u, 64u, 999u}) {
    Sha256 hash;
    for (std::size_t i = 0; i < text.size(); i += piece) hash.Update(text.substr(i, piece));
    EXPECT_EQ(hash.Finish(), HashOf(text)) << piece;
  }
}

TEST(Sha256Test, AFileIsHashedAndAnAbsentOneIsNotFound) {
  const std::string path = testing::TempDir() + "sha256-" + std::to_string(::getpid());
  ASSERT_TRUE(WriteFileWhole(path, "abc").ok());

  EXPECT_EQ(*HashFile(path), HashOf("abc"));
  std::remove(path.c_str());
  EXPECT_TRUE(absl::IsNotFound(HashFile(path).status()));
}

TEST(Sha256Test, HashingAFileCanBeGivenUp) {
  const std::string path = testing::TempDir() + "sha256-" + std::to_string(::getpid());
  ASSERT_TRUE(WriteFileWhole(path, "abc").ok());
  std::stop_source stop;
  stop.request_stop();

  EXPECT_TRUE(absl::IsCancelled(HashFile(path, stop.get_token()).status()));
  std::remove(path.c_str());
}

TEST(Sha256Test, OnlySixtyFourLowerHexDigitsAreAHash) {
  EXPECT_TRUE(IsSha256(HashOf("abc")));
  EXPECT_FALSE(IsSha256(""));
  EXPECT_FALSE(IsSha256(std::string(63, 'a')));
  EXPECT_FALSE(IsSha256(std::string(65, 'a')));
  EXPECT_FALSE(IsSha256(std::string(63, 'a') + "A"));
  EXPECT_FALSE(IsSha256(std::string(63, 'a') + "/"));
  EXPECT_FALSE(IsSha256(std::string(61, 'a') + "../"));
}

TEST(Sha256Test, WhatIsAtHandWholeIsHashedAtOnce) {
  EXPECT_EQ(Sha256Of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace tactus::runtime
