#include "coordinator/files/log_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/rng.h"
#include "coordinator/files/log_position.h"
#include "coordinator/files/log_sink.h"
#include "runtime/status.h"

namespace tactus::service {
namespace {

using testing::ElementsAre;

class LogStoreTest : public testing::Test {
 protected:
  ~LogStoreTest() override { std::filesystem::remove_all(folder_); }

  static std::string MakeFolder() {
    std::string pattern = testing::TempDir() + "tactus-XXXXXX";
    return ::mkdtemp(pattern.data());
  }

  absl::Status Append(LogStore& store, std::uint64_t worker, std::uint64_t offset,
                      const std::string& text, std::uint32_t rank = 0) {
    return store.Append({.job = "a-1", .worker = WorkerId{worker}, .rank = rank},
                        {.offset = offset, .text = text});
  }

  static std::string Text(const std::vector<LogPiece>& pieces) {
    std::string text;
    for (const LogPiece& piece : pieces) text += piece.text;
    return text;
  }

  std::uint64_t BytesOnDisk() const {
    std::uint64_t bytes = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ + "/a-1/logs")) {
      if (entry.path().filename() != "ranks") bytes += entry.file_size();
    }
    return bytes;
  }

  const std::string folder_ = MakeFolder();
  LogStore store_{folder_};
};

TEST_F(LogStoreTest, WhatIsAppendedIsReadFromWhereAReaderCameTo) {
  ASSERT_TRUE(Append(store_, 5, 0, "one\n").ok());
  ASSERT_TRUE(Append(store_, 5, 4, "two\n").ok());
  ASSERT_TRUE(Append(store_, 6, 0, "other\n", 1).ok());

  const std::vector<LogPiece> all = store_.Read("a-1", WorkerId{5}, 0);
  ASSERT_EQ(all.size(), 1u);  // neighbours are joined
  EXPECT_EQ(all[0].text, "one\ntwo\n");
  EXPECT_EQ(store_.Read("a-1", WorkerId{5}, 6)[0].offset, 6u);
  EXPECT_EQ(Text(store_.Read("a-1", WorkerId{5}, 6)), "o\n");
  EXPECT_TRUE(store_.Read("a-1", WorkerId{5}, 8).empty());
  EXPECT_TRUE(store_.Read("a-1", WorkerId{7}, 0).empty());
  EXPECT_TRUE(store_.Read("b-2", WorkerId{5}, 0).empty());
}

TEST_F(LogStoreTest, WhatComesTwiceIsKeptOnceAndGapsStay) {
  ASSERT_TRUE(Append(store_, 5, 0, "one\n").ok());
  ASSERT_TRUE(Append(store_, 5, 0, "one\n").ok());
  ASSERT_TRUE(Append(store_, 5, 2, "e\ntwo\n").ok());
  ASSERT_TRUE(Append(store_, 5, 100, "late\n").ok());

  const std::vector<LogPiece> pieces = store_.Read("a-1", WorkerId{5}, 0);

  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_EQ(pieces[0].text, "one\ntwo\n");
  EXPECT_EQ(pieces[1].offset, 100u);
  EXPECT_EQ(pieces[1].text, "late\n");
}

TEST_F(LogStoreTest, ANewStoreKnowsWorkersRanksAndEnds) {
  ASSERT_TRUE(Append(store_, 5, 0, "one\n", 1).ok());
  ASSERT_TRUE(Append(store_, 6, 0, "two\n", 0).ok());
  ASSERT_TRUE(Append(store_, 5, 4, "three\n", 2).ok());  // of another rank since
  LogStore fresh(folder_);

  const std::vector<LoggedWorker> workers = fresh.Workers("a-1");

  ASSERT_EQ(workers.size(), 2u);
  EXPECT_EQ(workers[0].worker, WorkerId{5});
  EXPECT_EQ(workers[0].rank, 2u);
  EXPECT_EQ(workers[0].end, 10u);
  EXPECT_EQ(workers[1].rank, 0u);
  ASSERT_TRUE(Append(fresh, 5, 4, "three\nfour\n", 2).ok());
  EXPECT_EQ(Text(fresh.Read("a-1", WorkerId{5}, 0)), "one\nthree\nfour\n");
}

TEST_F(LogStoreTest, WhatACrashCutIsLeftOut) {
  ASSERT_TRUE(Append(store_, 5, 0, "one\n").ok());
  const std::string path = folder_ + "/a-1/logs/worker-5.log";
  for (const char* torn : {"#4 100\nhalf", "#4 1", "#", "rubbish\n", "#x 1\ny"}) {
    std::ofstream(path, std::ios::app) << torn;
    LogStore fresh(folder_);

    EXPECT_EQ(fresh.Workers("a-1")[0].end, 4u) << torn;
    EXPECT_EQ(Text(fresh.Read("a-1", WorkerId{5}, 0)), "one\n") << torn;
    EXPECT_EQ(std::filesystem::file_size(path), 9u) << torn;
  }
}

// A crash between a file's being put aside and the next one's first piece.
TEST_F(LogStoreTest, AWorkerOfWhomOnlyTheOldFileIsThereIsKnown) {
  ASSERT_TRUE(Append(store_, 5, 0, "one\n", 3).ok());
  const std::string path = folder_ + "/a-1/logs/worker-5.log";
  std::filesystem::rename(path, path + ".1");
  std::ofstream(path + ".1", std::ios::app) << "#4 100\ntorn";
  LogStore fresh(folder_, {.file_bytes = 100, .job_bytes = 50});

  const std::vector<LoggedWorker> workers = fresh.Workers("a-1");

  ASSERT_EQ(workers.size(), 1u);
  EXPECT_EQ(workers[0].worker, WorkerId{5});
  EXPECT_EQ(workers[0].rank, 3u);
  EXPECT_EQ(workers[0].end, 4u);
  ASSERT_TRUE(Append(fresh, 5, 0, "one\ntwo\n", 3).ok());  // of which the first half is there
  EXPECT_EQ(Text(fresh.Read("a-1", WorkerId{5}, 0)), "one\ntwo\n");
  // Its bytes count.
  ASSERT_TRUE(Append(fresh, 5, 8, "three, which is one too many\n", 3).ok());
  EXPECT_LE(BytesOnDisk(), 50u);
  EXPECT_FALSE(fresh.Read("a-1", WorkerId{5}, 4).empty());
  EXPECT_FALSE(std::filesystem::exists(path + ".1"));
}

TEST_F(LogStoreTest, AFullFileIsPutAsideAndTheOldestIsGone) {
  LogStore store(folder_, {.file_bytes = 100});
  std::uint64_t offset = 0;
  for (int i = 100; i < 150; ++i) {
    const std::string line = "line " + std::to_string(i) + "\n";
    ASSERT_TRUE(Append(store, 5, offset, line).ok());
    offset += line.size();
  }

  const std::vector<LogPiece> pieces = store.Read("a-1", WorkerId{5}, 0);

  EXPECT_LE(BytesOnDisk(), 200u);
  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_GT(pieces[0].offset, 0u);
  EXPECT_EQ(pieces[0].offset + pieces[0].text.size(), offset);
  EXPECT_TRUE(pieces[0].text.ends_with("line 148\nline 149\n"));
}

TEST_F(LogStoreTest, APieceThatIsTooLongIsRefused) {
  const std::string text(LogStore::kPieceBytesMax + 1, 'x');

  EXPECT_TRUE(absl::IsInvalidArgument(Append(store_, 5, 0, text)));
  EXPECT_TRUE(Append(store_, 5, 0, text.substr(1)).ok());
  EXPECT_TRUE(Append(store_, 5, ~std::uint64_t{0} - 1, "wraps around").ok());
  EXPECT_EQ(store_.Workers("a-1")[0].end, LogStore::kPieceBytesMax);
}

TEST_F(LogStoreTest, AJobKeepsToItsBoundAndTheLoudestPays) {
  LogStore store(folder_, {.file_bytes = 20'000, .job_bytes = 60'000});
  ASSERT_TRUE(Append(store, 1, 0, "quiet\n").ok());
  for (std::uint64_t i = 0; i < 100; ++i) {
    for (std::uint64_t worker = 2; worker < 8; ++worker) {
      ASSERT_TRUE(Append(store, worker, i * 1000, std::string(999, 'x') + "\n").ok());
      ASSERT_LE(BytesOnDisk(), 60'000u);
    }
  }

  EXPECT_EQ(Text(store.Read("a-1", WorkerId{1}, 0)), "quiet\n");
  for (std::uint64_t worker = 2; worker < 8; ++worker) {
    EXPECT_EQ(store.Workers("a-1")[worker - 1].end, 100'000u);
  }
}

TEST_F(LogStoreTest, OfTooManyWorkersTheOldestGoes) {
  LogStore store(folder_, {.workers = 3});
  for (std::uint64_t worker = 1; worker <= 5; ++worker) {
    ASSERT_TRUE(Append(store, worker, 0, "x\n").ok());
  }

  EXPECT_EQ(store.Workers("a-1").size(), 3u);
  EXPECT_TRUE(store.Read("a-1", WorkerId{2}, 0).empty());
  EXPECT_FALSE(store.Read("a-1", WorkerId{3}, 0).empty());
}

TEST_F(LogStoreTest, AForgottenJobHasNoLogs) {
  ASSERT_TRUE(Append(store_, 5, 0, "one\n").ok());

  store_.Forget("a-1");

  EXPECT_TRUE(store_.Workers("a-1").empty());
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/a-1/logs"));
}

TEST_F(LogStoreTest, ListenersHearOfTheirJobAlone) {
  int heard = 0;
  ASSERT_TRUE(store_.Listen("a-1", this, [&] { ++heard; }));
  ASSERT_TRUE(Append(store_, 5, 0, "one\n").ok());
  ASSERT_TRUE(
      store_.Append({.job = "b-2", .worker = WorkerId{9}}, {.offset = 0, .text = "x\n"}).ok());
  EXPECT_EQ(heard, 1);

  store_.Unlisten(this);
  ASSERT_TRUE(Append(store_, 5, 4, "two\n").ok());

  EXPECT_EQ(heard, 1);
}

// Pieces in order, repeated, with gaps, over restarts of the store: what is read is what came, as
// far as it is kept, from any position on.
TEST_F(LogStoreTest, AReaderNeverGetsAnythingButTheOutput) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Rng rng(seed);
    std::filesystem::remove_all(folder_ + "/a-1");
    const LogStore::Limits limits = {.file_bytes = 500 + rng.Below(3000)};
    auto store = std::make_unique<LogStore>(folder_, limits);
    std::string output;
    std::uint64_t reader = 0;
    for (int i = 0; i < 100; ++i) {
      const std::uint64_t begin = output.size();
      for (std::uint64_t n = 1 + rng.Below(100); n > 0; --n) {
        output += static_cast<char>('a' + rng.Below(26));
      }
      if (rng.Below(5) == 0) continue;  // lost on its way
      const std::uint64_t again = rng.Below(4) == 0 ? std::min<std::uint64_t>(begin, 30) : 0;
      ASSERT_TRUE(Append(*store, 5, begin - again, output.substr(begin - again)).ok());
      if (rng.Below(10) == 0) store = std::make_unique<LogStore>(folder_, limits);
      if (rng.Below(3) != 0) continue;
      for (const LogPiece& piece : store->Read("a-1", WorkerId{5}, reader)) {
        ASSERT_GE(piece.offset, reader) << "seed " << seed;
        ASSERT_EQ(piece.text, output.substr(piece.offset, piece.text.size())) << "seed " << seed;
        reader = piece.offset + piece.text.size();
      }
      ASSERT_EQ(reader, output.size()) << "seed " << seed;
    }
  }
}

TEST(LogPositionTest, ATokenComesBackAsThePosition) {
  for (const LogPosition& position :
       {LogPosition{}, LogPosition{{WorkerId{0}, 0}}, LogPosition{{WorkerId{7}, 255}},
        LogPosition{{WorkerId{1}, 1}, {WorkerId{2}, 2}, {WorkerId{1u << 30}, ~std::uint64_t{0}}},
        LogPosition{{WorkerId{0}, 3}, {WorkerId{~std::uint64_t{0}}, 4}}}) {
    const std::string token = ToToken("a-1", position);

    const absl::StatusOr<LogPosition> back = FromToken("a-1", token);

    ASSERT_TRUE(back.ok()) << token << ": " << back.status();
    EXPECT_EQ(*back, position) << token;
  }
}

TEST(LogPositionTest, OtherTokensAreRefusedWithAReason) {
  std::string long_token = "a-1/1-1";
  for (int i = 0; i < 5000; ++i) long_token += ",1-1";
  for (const std::string& token :
       {std::string("b-2/5-4"), std::string("a-1"), std::string("a-1/5"), std::string("a-1/5-"),
        std::string("a-1/5-4,"), std::string("a-1/5-4,0-1"), std::string("a-1/x-4"),
        std::string("a-1/5-4 "), std::string("a-1/-5-4"), std::string("a-1/11111111111111111-1"),
        std::string("a-1/ffffffffffffffff-1,1-1"), std::string("rubbish"), long_token}) {
    const absl::Status status = FromToken("a-1", token).status();

    EXPECT_TRUE(absl::IsInvalidArgument(status)) << token.substr(0, 50);
    EXPECT_EQ(runtime::ReasonOf(status).reason, "INVALID_RESUME_TOKEN");
  }
}

class LogSinkTest : public LogStoreTest {
 protected:
  ~LogSinkTest() override { files_.Stop(); }

  void Take(const std::string& node, const std::string& job, std::uint64_t worker,
            const std::string& text) {
    agent::v1::LogLines lines;
    lines.set_job_id(job);
    lines.set_worker_id(worker);
    lines.set_text(text);
    sink_.Take(node, lines);
    files_.RunAndWait([] {});
  }

  job::JobRecord record_{
      .name = "a-1",
      .revision = 1,
      .members = {{.worker = WorkerId{5}, .node = "n"}, {.worker = WorkerId{6}, .node = "m"}}};
  bool over_ = false;
  runtime::ControlThread files_;
  LogSink sink_{
      {.find = [this](const std::string& id) { return !over_ && id == "a-1" ? &record_ : nullptr; },
       .files = files_,
       .logs = store_}};
};

TEST_F(LogSinkTest, OnlyTheJobsWorkersOnTheirNodesAreWrittenDown) {
  Take("m", "a-1", 6, "right\n");
  Take("n", "a-1", 6, "another's\n");
  Take("n", "a-1", 7, "no worker\n");
  Take("n", "b-2", 5, "no job\n");
  Take("n", "../../etc", 5, "no name\n");
  Take("n", "a-1", 5, "");
  Take("n", "a-1", 5, std::string(LogStore::kPieceBytesMax + 1, 'x'));

  EXPECT_EQ(Text(store_.Read("a-1", WorkerId{6}, 0)), "right\n");
  const std::vector<LoggedWorker> workers = store_.Workers("a-1");
  ASSERT_EQ(workers.size(), 1u);
  EXPECT_EQ(workers[0].rank, 1u);
  std::vector<std::string> folders;
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    folders.push_back(entry.path().filename().string());
  }
  EXPECT_THAT(folders, ElementsAre("a-1"));
}

TEST_F(LogSinkTest, LastLinesMayComeAfterTheJobsEndAndAfterAnotherGroupsBeginning) {
  Take("n", "a-1", 5, "first\n");
  record_.revision = 2;
  record_.generation = 2;
  record_.members = {{.worker = WorkerId{8}, .node = "m"}};
  Take("m", "a-1", 8, "second\n");
  Take("m", "a-1", 6, "late\n");
  over_ = true;
  agent::v1::LogLines last;
  last.set_job_id("a-1");
  last.set_worker_id(8);
  last.set_offset(7);
  last.set_text("last\n");
  sink_.Take("m", last);
  files_.RunAndWait([] {});

  EXPECT_EQ(Text(store_.Read("a-1", WorkerId{8}, 0)), "second\nlast\n");
  EXPECT_EQ(Text(store_.Read("a-1", WorkerId{6}, 0)), "late\n");
}

}  // namespace
}  // namespace tactus::service
