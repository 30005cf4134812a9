#include "coordinator/files/folder_blobs.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/rng.h"
#include "runtime/now.h"
#include "runtime/sha256.h"
#include "runtime/status.h"

namespace tactus::service {
namespace {

std::string HashOf(const std::string& content) {
  runtime::Sha256 hash;
  hash.Update(content);
  return hash.Finish();
}

std::string RandomBytes(Rng& rng, std::size_t size) {
  std::string bytes;
  while (bytes.size() < size) bytes += static_cast<char>(rng.Below(256));
  return bytes;
}

absl::Status CatchUp(BlobWriter& writer) {
  while (true) {
    const absl::StatusOr<bool> done = writer.CatchUp();
    if (!done.ok() || *done) return done.status();
  }
}

class FolderBlobsTest : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove_all(folder_); }

  absl::StatusOr<BlobWriter> Write(const std::string& content, std::uint64_t offset = 0) {
    return store_.Write(
        {.sha256 = HashOf(content), .size_bytes = content.size(), .offset = offset});
  }

  void Put(const std::string& content) {
    auto writer = Write(content);
    ASSERT_TRUE(writer.ok()) << writer.status();
    ASSERT_TRUE(writer->Append(content).ok());
    ASSERT_TRUE(writer->Commit().ok());
  }

  std::string Get(const std::string& sha256, std::uint64_t offset = 0) {
    auto reader = store_.Read(sha256, offset);
    if (!reader.ok()) return reader.status().ToString();
    std::string content;
    (*reader)->Read(10u << 20, [&](const auto& bytes) { content = *bytes; });
    return content;
  }

  // All regular files below the store's folder.
  std::vector<std::string> Files() const {
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_)) {
      if (entry.is_regular_file()) files.push_back(entry.path().string());
    }
    return files;
  }

  static void MakeOld(const std::string& path) {
    const timespec times[] = {{.tv_sec = 1'000'000, .tv_nsec = 0},
                              {.tv_sec = 1'000'000, .tv_nsec = 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0) << path;
  }

  static std::string MakeFolder() {
    std::string pattern = testing::TempDir() + "tactus-XXXXXX";
    return ::mkdtemp(pattern.data());
  }

  const std::string folder_ = MakeFolder();
  FolderBlobs store_{folder_};
};

TEST_F(FolderBlobsTest, WhatIsCommittedIsThereUnderItsHash) {
  Put("hello world");
  const std::string sha256 = HashOf("hello world");

  EXPECT_EQ(Get(sha256), "hello world");
  EXPECT_EQ(Get(sha256, 6), "world");
  EXPECT_EQ(Get(sha256, 11), "");
  EXPECT_TRUE(absl::IsOutOfRange(store_.Read(sha256, 12).status()));
  EXPECT_TRUE(store_.Find(sha256)->complete);
  EXPECT_EQ(store_.Find(sha256)->received_bytes, 11u);
  EXPECT_EQ(Files(), std::vector<std::string>{folder_ + "/" + sha256.substr(0, 2) + "/" + sha256});
}

TEST_F(FolderBlobsTest, WhatIsReadBackIsWhatCameOrIsRemoved) {
  Rng rng(3);
  const std::string content = RandomBytes(rng, 3u << 20);
  const auto read_back = [](BlobWriter& writer) {
    while (true) {
      const absl::StatusOr<bool> done = writer.ReadBack();
      if (!done.ok() || *done) return done.status();
    }
  };
  auto first = Write(content);
  ASSERT_TRUE(first.ok() && first->Append(content).ok() && first->Commit().ok());
  EXPECT_TRUE(read_back(*first).ok());
  auto second = Write(content);  // it is there already
  ASSERT_TRUE(second.ok() && second->complete());
  EXPECT_TRUE(read_back(*second).ok());
  const std::string path = Files().front();
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(2u << 20);
  file.put(static_cast<char>(content[2u << 20] + 1));
  file.close();

  const absl::Status damaged = read_back(*second);

  EXPECT_TRUE(absl::IsDataLoss(damaged)) << damaged;
  EXPECT_EQ(runtime::ReasonOf(damaged).reason, "WRONG_CONTENT_HASH");
  EXPECT_FALSE(store_.Find(HashOf(content))->complete);
}

TEST_F(FolderBlobsTest, AnEmptyFileIsAFile) {
  Put("");

  EXPECT_TRUE(store_.Find(HashOf(""))->complete);
  EXPECT_EQ(Get(HashOf("")), "");
}

TEST_F(FolderBlobsTest, WhatIsNotThereIsNotFoundAndHasNothing) {
  const absl::Status status = store_.Read(HashOf("a"), 0).status();

  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_EQ(runtime::ReasonOf(status).reason, "BLOB_NOT_FOUND");
  EXPECT_FALSE(store_.Find(HashOf("a"))->complete);
  EXPECT_EQ(store_.Find(HashOf("a"))->received_bytes, 0u);
}

TEST_F(FolderBlobsTest, OnlyHashesAreNames) {
  const std::string wrong[] = {"../../etc/passwd",          "",
                               std::string(63, 'a'),        std::string(65, 'a'),
                               std::string(64, 'A'),        "/" + std::string(63, 'a'),
                               std::string(61, 'a') + "/.."};
  for (const std::string& name : wrong) {
    EXPECT_TRUE(absl::IsInvalidArgument(store_.Find(name).status())) << name;
    EXPECT_TRUE(absl::IsInvalidArgument(store_.Read(name, 0).status())) << name;
    if (name.empty()) continue;  // a writer's hash may not be known yet
    EXPECT_TRUE(absl::IsInvalidArgument(store_.Write({.sha256 = name, .size_bytes = 1}).status()))
        << name;
  }
  EXPECT_TRUE(Files().empty());
}

TEST_F(FolderBlobsTest, AWrongContentIsRefusedAndRemoved) {
  auto writer = store_.Write({.sha256 = HashOf("right"), .size_bytes = 5});
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_TRUE(writer->Append("wrong").ok());

  const absl::Status status = writer->Commit().status();

  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_EQ(runtime::ReasonOf(status).reason, "WRONG_CONTENT_HASH");
  EXPECT_TRUE(Files().empty());
  EXPECT_EQ(store_.Find(HashOf("right"))->received_bytes, 0u);
}

TEST_F(FolderBlobsTest, MoreOrLessThanWasSaidIsRefusedAndWhatCameStays) {
  const std::string sha256 = HashOf("hello");
  {
    auto writer = store_.Write({.sha256 = sha256, .size_bytes = 5});
    ASSERT_TRUE(writer->Append("hel").ok());
    EXPECT_TRUE(absl::IsInvalidArgument(writer->Commit().status()));
    EXPECT_TRUE(absl::IsInvalidArgument(writer->Append("lo!")));
  }

  EXPECT_EQ(store_.Find(sha256)->received_bytes, 3u);
  EXPECT_TRUE(absl::IsInvalidArgument(
      store_.Write({.sha256 = sha256, .size_bytes = runtime::kBlobBytesMax + 1}).status()));
  EXPECT_TRUE(absl::IsOutOfRange(Write("hello", 4).status()));
}

TEST_F(FolderBlobsTest, ASecondWriterTakesOverAndGoesOnWhereTheFirstCameTo) {
  auto first = Write("hello world");
  ASSERT_TRUE(first->Append("hello ").ok());
  auto second = Write("hello world", 2);
  ASSERT_TRUE(second.ok()) << second.status();
  ASSERT_TRUE(CatchUp(*second).ok());

  EXPECT_TRUE(absl::IsAborted(first->Append("XXXXX")));
  EXPECT_TRUE(absl::IsAborted(first->Commit().status()));
  ASSERT_TRUE(second->Append("llo world").ok());

  EXPECT_TRUE(second->Commit().ok());
  EXPECT_EQ(Get(HashOf("hello world")), "hello world");
}

TEST_F(FolderBlobsTest, ABlobThatIsThereNeedsNoWriting) {
  Put("hello");

  auto writer = Write("hello");

  ASSERT_TRUE(writer.ok());
  EXPECT_TRUE(writer->complete());
  EXPECT_TRUE(writer->Append("whatever").ok());
  EXPECT_EQ(*writer->Commit(), HashOf("hello"));
  EXPECT_EQ(Get(HashOf("hello")), "hello");
}

TEST_F(FolderBlobsTest, AFileWithoutAHashGetsItsOwn) {
  auto writer = store_.Write({.size_bytes = 5});
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_TRUE(writer->Append("hello").ok());

  EXPECT_EQ(*writer->Commit(), HashOf("hello"));
  EXPECT_EQ(Get(HashOf("hello")), "hello");
}

TEST_F(FolderBlobsTest, AFileWithoutAHashThatBreaksOffLeavesNothing) {
  {
    auto writer = store_.Write({.size_bytes = 5});
    ASSERT_TRUE(writer->Append("hel").ok());
  }

  EXPECT_TRUE(Files().empty());
}

TEST_F(FolderBlobsTest, OnlySoManyWriteAtOnce) {
  std::vector<BlobWriter> writers;
  for (std::size_t i = 0; i < BlobStore::kWritersMax; ++i) {
    auto writer = Write(std::to_string(i));
    ASSERT_TRUE(writer.ok()) << writer.status();
    writers.push_back(*std::move(writer));
  }
  EXPECT_TRUE(absl::IsResourceExhausted(Write("one more").status()));

  writers.pop_back();

  EXPECT_TRUE(Write("one more").ok());
}

TEST_F(FolderBlobsTest, WhatNobodyNamesForADayIsSwept) {
  for (const char* content : {"named", "unnamed", "young"}) Put(content);
  { ASSERT_TRUE(Write("half")->Append("ha").ok()); }
  { ASSERT_TRUE(Write("young half")->Append("yo").ok()); }
  auto running = Write("running");
  ASSERT_TRUE(running->Append("ru").ok());
  for (const char* content : {"named", "unnamed"}) {
    const std::string sha256 = HashOf(content);
    MakeOld(folder_ + "/" + sha256.substr(0, 2) + "/" + sha256);
  }
  for (const char* content : {"half", "running"}) MakeOld(folder_ + "/partial/" + HashOf(content));

  const std::size_t removed = store_.Sweep({HashOf("named")}, runtime::WallNow());

  EXPECT_EQ(removed, 2u);
  EXPECT_TRUE(store_.Find(HashOf("named"))->complete);
  EXPECT_FALSE(store_.Find(HashOf("unnamed"))->complete);
  EXPECT_TRUE(store_.Find(HashOf("young"))->complete);
  EXPECT_EQ(store_.Find(HashOf("half"))->received_bytes, 0u);
  EXPECT_EQ(store_.Find(HashOf("young half"))->received_bytes, 2u);
  EXPECT_EQ(store_.Find(HashOf("running"))->received_bytes, 2u);
}

TEST_F(FolderBlobsTest, WhatNobodyNamesAnyMoreGoesUnlessItIsUsedOrHeld) {
  for (const char* content : {"old", "young", "held", "held no more"}) Put(content);
  for (const char* content : {"old", "held", "held no more"}) {
    const std::string sha256 = HashOf(content);
    MakeOld(folder_ + "/" + sha256.substr(0, 2) + "/" + sha256);
  }
  auto holder = Write("held");
  ASSERT_TRUE(holder->complete());
  { ASSERT_TRUE(Write("held no more")->complete()); }
  const std::string held = HashOf("held");
  MakeOld(folder_ + "/" + held.substr(0, 2) + "/" + held);
  const job::WallTime since = 2'000'000'000'000'000;

  const std::set<std::string> left = store_.Remove({HashOf("old"), HashOf("young"), HashOf("held"),
                                                    HashOf("held no more"), HashOf("never there")},
                                                   since);

  EXPECT_EQ(left, (std::set<std::string>{HashOf("young"), HashOf("held"), HashOf("held no more")}));
  EXPECT_FALSE(store_.Find(HashOf("old"))->complete);
  EXPECT_EQ(Get(HashOf("young")), "young");
  EXPECT_EQ(Get(HashOf("held")), "held");
  EXPECT_EQ(Get(HashOf("held no more")), "held no more");
}

TEST_F(FolderBlobsTest, WhoBringsABlobHoldsItUntilItsNameIsDurable) {
  auto writer = Write("hello");
  ASSERT_TRUE(writer->Append("hello").ok());
  ASSERT_TRUE(writer->Commit().ok());
  const std::string sha256 = HashOf("hello");
  const std::string path = folder_ + "/" + sha256.substr(0, 2) + "/" + sha256;
  MakeOld(path);

  EXPECT_EQ(store_.Remove({sha256}, runtime::WallNow()), std::set<std::string>{sha256});
  EXPECT_EQ(store_.Sweep({}, runtime::WallNow()), 0u);
  { const BlobWriter last = *std::move(writer); }
  EXPECT_EQ(store_.Remove({sha256}, 2'000'000'000'000'000), std::set<std::string>{sha256});
  MakeOld(path);

  EXPECT_EQ(store_.Remove({sha256}, runtime::WallNow()), std::set<std::string>{});
  EXPECT_TRUE(Files().empty());
}

TEST_F(FolderBlobsTest, WhileAllIsKeptNothingGoesAndAfterwardsItDoes) {
  Put("unnamed");
  const std::string sha256 = HashOf("unnamed");
  MakeOld(folder_ + "/" + sha256.substr(0, 2) + "/" + sha256);

  store_.SetKeepAll(true);
  EXPECT_EQ(store_.Remove({sha256}, runtime::WallNow()), std::set<std::string>{sha256});
  EXPECT_EQ(store_.Sweep({}, runtime::WallNow()), 0u);
  store_.SetKeepAll(false);

  EXPECT_EQ(store_.Sweep({}, runtime::WallNow()), 1u);
}

TEST_F(FolderBlobsTest, WhoTakesAWriterOverNeedsNoPlaceOfItsOwn) {
  std::vector<BlobWriter> writers;
  for (std::size_t i = 0; i < BlobStore::kWritersMax; ++i) {
    writers.push_back(*Write(std::to_string(i)));
  }

  EXPECT_TRUE(Write("7").ok());
}

TEST_F(FolderBlobsTest, AskingForABlobKeepsItForAnotherDay) {
  Put("asked");
  const std::string sha256 = HashOf("asked");
  MakeOld(folder_ + "/" + sha256.substr(0, 2) + "/" + sha256);

  EXPECT_TRUE(store_.Find(sha256)->complete);

  EXPECT_EQ(store_.Sweep({}, runtime::WallNow()), 0u);
}

// Uploads that break off anywhere, begin anywhere up to what has come, take each other over and
// sometimes carry wrong bytes: in the end the blob is whole or not there, never wrong.
TEST_F(FolderBlobsTest, HoweverUploadsBreakABlobIsRightOrAbsent) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Rng rng(seed);
    const std::string content = RandomBytes(rng, rng.Below(5000)) + std::to_string(seed);
    const std::string sha256 = HashOf(content);
    int attempts = 0;
    while (!store_.Find(sha256)->complete) {
      ASSERT_LT(++attempts, 1000) << "seed " << seed;
      const std::uint64_t received = store_.Find(sha256)->received_bytes;
      ASSERT_LE(received, content.size()) << "seed " << seed;
      std::uint64_t at = rng.Below(received + 1);
      auto writer = Write(content, at);
      ASSERT_TRUE(writer.ok()) << "seed " << seed << ": " << writer.status();
      ASSERT_TRUE(CatchUp(*writer).ok());
      const std::uint64_t end =
          rng.Below(3) == 0 ? content.size() : at + rng.Below(content.size() - at + 1);
      absl::Status status;
      while (at < end && status.ok()) {
        const std::uint64_t bytes = std::min(end - at, 1 + rng.Below(700));
        std::string piece = content.substr(at, bytes);
        if (attempts < 10 && rng.Below(40) == 0) piece[rng.Below(bytes)] ^= 1;
        if (rng.Below(30) == 0) static_cast<void>(Write(content, 0));  // takes over and leaves
        status = writer->Append(piece);
        at += bytes;
      }
      if (status.ok() && at == content.size()) status = writer->Commit().status();
      if (!status.ok()) {
        ASSERT_TRUE(absl::IsAborted(status) || absl::IsDataLoss(status))
            << "seed " << seed << ": " << status;
      }
    }
    ASSERT_EQ(Get(sha256), content) << "seed " << seed;
  }
}

}  // namespace
}  // namespace tactus::service
