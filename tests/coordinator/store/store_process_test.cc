// What happens to the file when processes come, go and are killed.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>

#include "coordinator/store/store.h"
#include "tests/coordinator/store/any_store.h"
#include "tests/coordinator/store/sample_records.h"
#include "tests/coordinator/store/whole_store.h"
#include "tests/support/temporary_folder.h"

namespace tactus::store {
namespace {

// Runs `body` in a forked process and returns its exit code.
int ExitCodeOf(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int OpenCode(const std::string& path) {
  return static_cast<int>(Store::Open(path).status().code());
}

// Writes jobs and rounds for ever and says each id on `out` once it is acknowledged.
[[noreturn]] void WriteForEver(const std::string& path, int out) {
  absl::StatusOr<std::unique_ptr<Store>> store = OpenAny(path);
  if (!store.ok()) _exit(1);
  const absl::StatusOr<std::uint64_t> last = (*store)->LastJobId();
  if (!last.ok()) _exit(2);
  for (std::uint64_t id = *last + 1;; ++id) {
    if (!(*store)->Write({.jobs = {SmallJob(id)}, .rounds = {Round(id, 1), Round(id, 2)}}).ok()) {
      _exit(3);
    }
    if (write(out, &id, sizeof(id)) != sizeof(id)) _exit(4);
  }
}

// The last id that a killed writer acknowledged; it is killed after `acknowledged_min` of them.
std::uint64_t WriteAndKill(const std::string& path, int acknowledged_min) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) WriteForEver(path, ends[1]);
  close(ends[1]);
  std::uint64_t last = 0;
  for (int count = 1; read(ends[0], &last, sizeof(last)) == sizeof(last); ++count) {
    if (count == acknowledged_min) kill(child, SIGKILL);
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status));
  return last;
}

TEST(StoreProcessTest, EveryAcknowledgedWriteSurvivesAKilledWriter) {
  const TemporaryFolder folder;
  std::uint64_t acknowledged = 0;
  for (const int acknowledged_min : {1, 7, 20, 50}) {
    acknowledged = WriteAndKill(folder.File("db"), acknowledged_min);

    const absl::StatusOr<std::unique_ptr<Store>> store = OpenAny(folder.File("db"));
    ASSERT_TRUE(store.ok()) << store.status();
    const std::uint64_t last = *(*store)->LastJobId();
    EXPECT_GE(last, acknowledged);
    for (std::uint64_t id = 1; id <= last; ++id) {
      const absl::StatusOr<job::JobRecord> found = (*store)->FindJob("job-" + std::to_string(id));
      ASSERT_TRUE(found.ok()) << found.status();
      ExpectEqual(*found, SmallJob(id));
      EXPECT_EQ((*store)->ListRounds(JobId{id}, 10, "")->items.size(), 2u) << id;
    }
  }
  EXPECT_GE(acknowledged, 78u);
}

TEST(StoreProcessTest, ASecondProcessIsUnavailableUntilTheFirstIsGone) {
  if (OnPostgres()) GTEST_SKIP() << "SharedStoreTest has its own";
  const TemporaryFolder folder;
  const std::string path = folder.File("db");
  absl::StatusOr<std::unique_ptr<Store>> store = Store::Open(path);
  ASSERT_TRUE(store.ok()) << store.status();

  EXPECT_EQ(ExitCodeOf([&] { return OpenCode(path); }),
            static_cast<int>(absl::StatusCode::kUnavailable));
  store->reset();
  EXPECT_EQ(ExitCodeOf([&] { return OpenCode(path); }), static_cast<int>(absl::StatusCode::kOk));
}

TEST(StoreProcessTest, AFolderOrFileThatIsNotWritableIsPermissionDenied) {
  if (OnPostgres()) GTEST_SKIP() << "the file is not ours";
  const TemporaryFolder folder;
  ASSERT_EQ(OpenCode(folder.File("db")), static_cast<int>(absl::StatusCode::kOk));
  ASSERT_EQ(chmod(folder.File("db").c_str(), 0444), 0);
  ASSERT_EQ(chmod(folder.path().c_str(), 0555), 0);
  // Root may write anywhere: become nobody first.
  const auto open_as_nobody = [&](const std::string& name) {
    return ExitCodeOf([&] {
      if (geteuid() == 0 && setuid(65534) != 0) return -1;
      return OpenCode(folder.File(name));
    });
  };

  EXPECT_EQ(open_as_nobody("new"), static_cast<int>(absl::StatusCode::kPermissionDenied));
  EXPECT_EQ(open_as_nobody("db"), static_cast<int>(absl::StatusCode::kPermissionDenied));

  ASSERT_EQ(chmod(folder.path().c_str(), 0755), 0);
}

// Runs `body` on a store with job 1 in a process whose files may not grow above `bytes`; the code
// is that of the status that `body` returns, -1 when the store cannot be written afterwards.
int CodeOnAFullDisk(const std::string& path, rlim_t bytes,
                    const std::function<absl::Status(Store&)>& body) {
  return ExitCodeOf([&] {
    absl::StatusOr<std::unique_ptr<Store>> store = Store::Open(path);
    if (!store.ok() || !(*store)->Write({.jobs = {SmallJob(1)}}).ok()) return -1;
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{.rlim_cur = bytes, .rlim_max = RLIM_INFINITY};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return -1;
    const absl::Status status = body(**store);
    if (!(*store)->Write({.jobs = {SmallJob(3)}}).ok()) return -1;
    return static_cast<int>(status.code());
  });
}

TEST(StoreProcessTest, AFullDiskIsResourceExhaustedAndLeavesWhatWasThere) {
  if (OnPostgres()) GTEST_SKIP() << "the file is not ours";
  struct Case {
    const char* what = nullptr;
    std::function<absl::Status(Store&)> body{};
  };
  job::JobRecord big = SmallJob(2);
  big.spec.assign(2 << 20, 'x');
  job::WriteBatch many{.jobs = {SmallJob(2)}};
  for (std::uint64_t i = 0; i < 10000; ++i) {
    many.rounds.push_back(Round(2, i));
    many.nodes.push_back({.name = std::string(100, 'n') + std::to_string(i), .cordoned = true});
    many.decisions.push_back(DecisionOf(2, i, policies::Axis::kBatch));
  }
  const job::WriteBatch nodes{.jobs = {SmallJob(2)}, .nodes = many.nodes};
  const job::WriteBatch decisions{.jobs = {SmallJob(2)}, .decisions = many.decisions};
  const Case cases[] = {
      {"a big job", [&](Store& store) { return store.Write({.jobs = {big}}); }},
      {"rounds", [&](Store& store) { return store.Write(many); }},
      {"nodes", [&](Store& store) { return store.Write(nodes); }},
      {"decisions", [&](Store& store) { return store.Write(decisions); }},
  };
  for (const Case& one : cases) {
    const TemporaryFolder folder;
    const std::string path = folder.File("db");

    EXPECT_EQ(CodeOnAFullDisk(path, 1 << 20, one.body),
              static_cast<int>(absl::StatusCode::kResourceExhausted))
        << one.what;

    const absl::StatusOr<std::unique_ptr<Store>> store = Store::Open(path);
    ASSERT_TRUE(store.ok()) << store.status();
    EXPECT_TRUE((*store)->FindJob("job-1").ok());
    EXPECT_FALSE((*store)->FindJob("job-2").ok());
    EXPECT_TRUE((*store)->FindJob("job-3").ok());
    EXPECT_EQ((*store)->Nodes()->size(), 0u);
    EXPECT_EQ(*(*store)->CheckIntegrity(), std::vector<std::string>{});
  }
}

TEST(StoreProcessTest, ABackupThatDoesNotFitLeavesNoFile) {
  if (OnPostgres()) GTEST_SKIP() << "the file is not ours";
  const TemporaryFolder folder;
  const TemporaryFolder copies;
  {
    const absl::StatusOr<std::unique_ptr<Store>> store = Store::Open(folder.File("db"));
    job::JobRecord big = SmallJob(2);
    big.spec.assign(2 << 20, 'x');
    ASSERT_TRUE((*store)->Write({.jobs = {big}}).ok());
  }

  const int code = CodeOnAFullDisk(folder.File("db"), 1 << 20, [&](Store& store) {
    return CopyWhole(store, copies.File("copy"));
  });

  EXPECT_EQ(code, static_cast<int>(absl::StatusCode::kResourceExhausted));
  EXPECT_TRUE(std::filesystem::is_empty(copies.path()));
}

TEST(StoreProcessTest, PruningOnAFullDiskIsAllOrNothing) {
  if (OnPostgres()) GTEST_SKIP() << "the file is not ours";
  const TemporaryFolder folder;
  job::JobRecord over = SmallJob(2);
  over.state = job::JobState::kSucceeded;
  over.end_time = 1;
  over.spec.assign(2 << 20, 'x');
  {
    const absl::StatusOr<std::unique_ptr<Store>> store = Store::Open(folder.File("db"));
    job::WriteBatch batch{.jobs = {over}};
    for (std::uint64_t i = 0; i < 20000; ++i) batch.rounds.push_back(Round(2, i));
    ASSERT_TRUE((*store)->Write(batch).ok());
  }

  // Room for the two small jobs in the log, and not for a piece of pruning between them.
  const int code = CodeOnAFullDisk(folder.File("db"), 80 << 10, [&](Store& store) {
    std::vector<GoneJob> gone;
    const absl::StatusOr<bool> more = store.Prune({.age = Duration(1)}, 1000, gone);
    return gone.empty() ? more.status() : absl::OkStatus();
  });

  EXPECT_EQ(code, static_cast<int>(absl::StatusCode::kResourceExhausted));
  const absl::StatusOr<std::unique_ptr<Store>> store = Store::Open(folder.File("db"));
  EXPECT_TRUE((*store)->FindJob("job-2").ok());
  EXPECT_EQ(*(*store)->CheckIntegrity(), std::vector<std::string>{});
  std::vector<GoneJob> gone;
  while (*(*store)->Prune({.age = Duration(1)}, 1000, gone)) {
  }
  ASSERT_EQ(gone.size(), 1u);
  EXPECT_EQ(gone[0].name, "job-2");
}

}  // namespace
}  // namespace tactus::store
