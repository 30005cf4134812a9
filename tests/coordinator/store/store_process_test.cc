// What happens to the file when processes come, go and are killed.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "coordinator/store/store.h"
#include "tests/coordinator/store/sample_records.h"
#include "tests/coordinator/store/temporary_folder.h"

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
  absl::StatusOr<std::unique_ptr<Store>> store = Store::Open(path);
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

    const absl::StatusOr<std::unique_ptr<Store>> store = Store::Open(folder.File("db"));
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

TEST(StoreProcessTest, AFullDiskIsResourceExhaustedAndLeavesWhatWasThere) {
  const TemporaryFolder folder;
  const std::string path = folder.File("db");

  const int code = ExitCodeOf([&] {
    absl::StatusOr<std::unique_ptr<Store>> store = Store::Open(path);
    if (!store.ok() || !(*store)->Write({.jobs = {SmallJob(1)}, .rounds = {}}).ok()) return -1;
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{.rlim_cur = 1 << 20, .rlim_max = 1 << 20};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return -1;
    job::JobRecord big = SmallJob(2);
    big.spec.assign(2 << 20, 'x');
    const absl::Status status = (*store)->Write({.jobs = {big}, .rounds = {}});
    if (!(*store)->Write({.jobs = {SmallJob(3)}, .rounds = {}}).ok()) return -1;
    return static_cast<int>(status.code());
  });

  EXPECT_EQ(code, static_cast<int>(absl::StatusCode::kResourceExhausted));
  const absl::StatusOr<std::unique_ptr<Store>> store = Store::Open(path);
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_TRUE((*store)->FindJob("job-1").ok());
  EXPECT_FALSE((*store)->FindJob("job-2").ok());
  EXPECT_TRUE((*store)->FindJob("job-3").ok());
}

}  // namespace
}  // namespace tactus::store
