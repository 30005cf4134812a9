#include "coordinator/access/audit_log.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "tests/support/temporary_folder.h"

namespace tactus::access {
namespace {

std::string Content(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

class AuditLogTest : public testing::Test {
 protected:
  void Open(AuditOptions options = {}) {
    options.folder = folder();
    auto log = AuditLog::Open(options);
    ASSERT_TRUE(log.ok()) << log.status();
    log_ = *std::move(log);
  }
  void Write(const std::string& about) {
    auto slot = log_->Reserve();
    ASSERT_NE(slot, nullptr);
    log_->Write(std::move(slot), {.who = "user/alice",
                                  .peer = "ipv4:127.0.0.1:1",
                                  .method = "Jobs/CancelJob",
                                  .about = about,
                                  .code = "OK"});
  }
  std::string folder() const { return folder_.path() + "/audit"; }
  std::string First() const { return folder() + "/" + AuditFiles(folder()).front(); }

  TemporaryFolder folder_;
  std::unique_ptr<AuditLog> log_;
};

TEST_F(AuditLogTest, LinesAreChainedOverRestartsAndPrivate) {
  Open();
  Write("jobs/a-1");
  log_->WriteRefusal({.who = "node/x", .method = "Admin/Backup", .code = "PERMISSION_DENIED"});
  log_.reset();
  Open();
  Write("jobs/a-2 \"\n\xff");
  log_.reset();

  const auto report = VerifyAudit(folder());

  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->lines, 3u);
  EXPECT_EQ(report->first, 1u);
  EXPECT_EQ(report->end.number, 3u);
  struct stat found {};
  ASSERT_EQ(::stat(First().c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777, 0600u);
  ASSERT_EQ(::stat(folder().c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777, 0700u);
  EXPECT_NE(Content(First()).find(R"("about":"jobs/a-1")"), std::string::npos);
}

TEST_F(AuditLogTest, AnyByteThatIsChangedIsFound) {
  Open();
  for (const char* about : {"jobs/a-1", "jobs/a-2", "jobs/a-3"}) Write(about);
  log_.reset();
  const std::string content = Content(First());
  const std::string path = First();

  for (std::size_t i = 0; i < content.size(); ++i) {
    std::string changed = content;
    changed[i] = changed[i] == 'x' ? 'y' : 'x';
    std::ofstream(path, std::ios::binary | std::ios::trunc) << changed;
    EXPECT_TRUE(absl::IsDataLoss(VerifyAudit(folder()).status())) << i;
  }
}

TEST_F(AuditLogTest, ALineThatIsTakenOutOrDoubledOrMovedIsFound) {
  Open();
  for (const char* about : {"jobs/a-1", "jobs/a-2", "jobs/a-3"}) Write(about);
  log_.reset();
  std::istringstream in(Content(First()));
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line + "\n");
  ASSERT_EQ(lines.size(), 3u);
  const std::string path = First();
  const auto verify = [&](const std::string& content) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
    return VerifyAudit(folder());
  };

  EXPECT_TRUE(verify(lines[0] + lines[1] + lines[2]).ok());
  EXPECT_TRUE(absl::IsDataLoss(verify(lines[0] + lines[2]).status()));
  EXPECT_TRUE(absl::IsDataLoss(verify(lines[0] + lines[1] + lines[1] + lines[2]).status()));
  EXPECT_TRUE(absl::IsDataLoss(verify(lines[1] + lines[0] + lines[2]).status()));
  // Of the beginning a line has to say that it was removed; who noted the last hash sees that of
  // the end something is gone.
  EXPECT_TRUE(absl::IsDataLoss(verify(lines[1] + lines[2]).status()));
  EXPECT_EQ(verify(lines[0] + lines[1])->end.number, 2u);
}

TEST_F(AuditLogTest, ALineThatACrashCutIsTakenOffAndTheChainGoesOn) {
  Open();
  Write("jobs/a-1");
  Write("jobs/a-2");
  log_.reset();
  const std::string path = First();
  const std::string whole = Content(path);
  const std::size_t second = whole.find('\n') + 1;

  for (std::size_t cut = second + 1; cut < whole.size(); cut += 37) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << whole.substr(0, cut);
    ASSERT_TRUE(absl::IsDataLoss(VerifyAudit(folder()).status()));
    Open();
    EXPECT_EQ(log_->cut_bytes(), cut - second);
    Write("jobs/a-3");
    log_.reset();
    const auto report = VerifyAudit(folder());
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(report->lines, 2u);
  }
}

TEST_F(AuditLogTest, AWrongLastLineStaysAndANewChainIsSeenToBegin) {
  Open();
  Write("jobs/a-1");
  log_.reset();
  std::ofstream(First(), std::ios::binary | std::ios::app) << "{}\n";

  Open();
  Write("jobs/a-2");
  log_.reset();

  EXPECT_EQ(AuditFiles(folder()).size(), 2u);
  EXPECT_TRUE(absl::IsDataLoss(VerifyAudit(folder()).status()));
}

TEST_F(AuditLogTest, FilesAreBounded) {
  Open({.bytes_max = 1000});
  for (int i = 0; i < 20; ++i) {
    Write("jobs/a-" + std::to_string(i));
    while (VerifyAudit(folder()).value_or(AuditReport{}).lines <= static_cast<unsigned>(i)) {
      std::this_thread::yield();  // one at a time, so that each comes behind the bound before it
    }
  }
  log_.reset();

  EXPECT_GE(AuditFiles(folder()).size(), 4u);
  EXPECT_EQ(VerifyAudit(folder())->lines, 20u);
  std::filesystem::remove(First());
  EXPECT_TRUE(absl::IsDataLoss(VerifyAudit(folder()).status()));
}

class KeptAuditLogTest : public AuditLogTest {
 protected:
  static constexpr std::uint64_t kKept = 8000;

  // Some 20 files of lines, with restarts in between.
  void SetUp() override {
    for (int i = 0; i < 120; ++i) {
      if (i % 40 == 0) Open({.bytes_max = 1000, .kept_bytes_max = kKept});
      Write("jobs/a-" + std::to_string(i));
      while (!Written(i)) std::this_thread::yield();
    }
    log_.reset();
  }
  bool Written(int i) const {
    const std::string newest = Content(folder() + "/" + AuditFiles(folder()).back());
    return newest.find("\"jobs/a-" + std::to_string(i) + "\"") != std::string::npos;
  }
  std::uint64_t Bytes() const {
    std::uint64_t bytes = 0;
    for (const std::string& file : AuditFiles(folder())) {
      bytes += std::filesystem::file_size(folder() + "/" + file);
    }
    return bytes;
  }
};

TEST_F(KeptAuditLogTest, TheOldestFilesGoAndALineSaysWhereTheRestBegins) {
  const auto report = VerifyAudit(folder());

  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_LE(Bytes(), kKept + 1000);
  EXPECT_GT(Bytes(), kKept / 2);
  EXPECT_GT(report->first, 1u);
  EXPECT_GT(report->removal_line, report->first);
  EXPECT_GT(report->end.number, 120u);  // with the lines about removals
  EXPECT_EQ(report->lines, report->end.number - report->first + 1);
}

TEST_F(KeptAuditLogTest, WhoTakesAwayMoreOfTheBeginningIsFoundOut) {
  std::filesystem::remove(First());

  const absl::Status status = VerifyAudit(folder()).status();

  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_NE(status.message().find("no line says"), std::string::npos) << status;
}

// As where a crash came between the line and the removal.
TEST_F(KeptAuditLogTest, ALineAboutARemovalThatWasNotMadeIsNoBreak) {
  TemporaryFolder other;
  const std::string copy = other.path() + "/audit";
  std::filesystem::copy(folder(), copy);
  const std::string newest = AuditFiles(folder()).back();
  Open({.bytes_max = 1000, .kept_bytes_max = kKept});
  for (int i = 200; AuditFiles(folder()).back() == newest; ++i) {
    Write("jobs/a-" + std::to_string(i));
    while (!Written(i)) std::this_thread::yield();
  }
  log_.reset();
  const std::vector<std::string> left = AuditFiles(folder());
  ASSERT_GT(left.front(), AuditFiles(copy).front());
  for (const std::string& file : AuditFiles(copy)) {
    std::filesystem::copy_file(copy + "/" + file, folder() + "/" + file,
                               std::filesystem::copy_options::skip_existing);
  }

  EXPECT_TRUE(VerifyAudit(folder()).ok()) << VerifyAudit(folder()).status();
}

// 5,000 a second or more would be 2 MB a second.
TEST_F(AuditLogTest, ManyRefusalsAreANumberAndTakeNobodysPlace) {
  Open({.refusals_max = 10, .refusals_per_second = 0});
  for (int i = 0; i < 5000; ++i) log_->WriteRefusal({.method = "Admin/Backup", .code = "X"});
  Write("jobs/a-1");
  log_.reset();

  const std::string text = Content(First());
  EXPECT_LE(VerifyAudit(folder())->lines, 10u + 1 + 3);
  EXPECT_NE(text.find("audit/refusals_left_out"), std::string::npos);
  EXPECT_NE(text.find("jobs/a-1"), std::string::npos);
}

TEST_F(AuditLogTest, WhatIsPromisedIsBoundedAndGivenBack) {
  Open({.lines_max = 2});
  auto first = log_->Reserve();
  auto second = log_->Reserve();
  EXPECT_NE(first, nullptr);
  EXPECT_EQ(log_->Reserve(), nullptr);
  second.reset();
  EXPECT_NE(log_->Reserve(), nullptr);
}

// A disk that takes no more: the file may not grow, as RLIMIT_FSIZE has it.
TEST_F(AuditLogTest, WhileTheDiskIsFullChangesFindNoRoomAndNoLineIsLost) {
  Open({.lines_max = 3, .refusals_max = 2});
  Write("jobs/a-0");
  // Until its place is given back, too.
  std::vector<std::unique_ptr<AuditLog::Slot>> slots;
  while (slots.size() < 3) {
    if (auto one = log_->Reserve()) slots.push_back(std::move(one));
  }
  slots.clear();
  const auto ignored = ::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit full = before;
  full.rlim_cur = std::filesystem::file_size(First()) + 10;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &full), 0);

  for (int i = 1; i <= 3; ++i) Write("jobs/a-" + std::to_string(i));
  EXPECT_EQ(log_->Reserve(), nullptr);
  for (int i = 0; i < 9; ++i) log_->WriteRefusal({.method = "Admin/Backup", .code = "X"});
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ::signal(SIGXFSZ, ignored);
  std::unique_ptr<AuditLog::Slot> slot;
  while ((slot = log_->Reserve()) == nullptr) std::this_thread::yield();
  slot.reset();
  log_.reset();

  const auto report = VerifyAudit(folder());
  ASSERT_TRUE(report.ok()) << report.status();
  const std::string content = Content(First());
  for (int i = 0; i <= 3; ++i) {
    EXPECT_NE(content.find("jobs/a-" + std::to_string(i)), std::string::npos) << i;
  }
  EXPECT_NE(content.find("refusals_left_out"), std::string::npos);
}

}  // namespace
}  // namespace tactus::access
