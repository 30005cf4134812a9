#include "runtime/beneath.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>

#include "tests/support/temporary_folder.h"

namespace tactus::runtime {
namespace {

using absl::StatusCode;

// As systemd's RestrictSUIDSGID= does.
bool TakeOpenat2Away() {
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{.len = std::size(rules), .filter = rules};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

class OpenBeneathTest : public testing::TestWithParam<bool> {
 protected:
  OpenBeneathTest() {
    std::filesystem::create_directories(folder_.File("root/deep/er"));
    std::ofstream(folder_.File("root/deep/file")) << "text";
    std::ofstream(folder_.File("secret")) << "secret";
    std::filesystem::create_symlink("../secret", folder_.File("root/out"));
    std::filesystem::create_directory_symlink("..", folder_.File("root/up"));
    std::filesystem::create_symlink("deep/file", folder_.File("root/within"));
    std::filesystem::create_directory_symlink("deep", folder_.File("root/same"));
  }

  // Opens in a process that has the call or not. Returns the status's code, -1 where the process
  // did not come to it.
  int CodeOf(const std::string& path, int flags) const {
    const pid_t child = ::fork();
    if (child == 0) {
      if (!GetParam() && !TakeOpenat2Away()) ::_exit(100);
      const Descriptor root(::open(folder_.File("root").c_str(), O_PATH | O_DIRECTORY));
      ::_exit(static_cast<int>(OpenBeneath(root.get(), path, flags).status().code()));
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) != 100 ? WEXITSTATUS(status) : -1;
  }

  const TemporaryFolder folder_;
};

TEST_P(OpenBeneathTest, OpensWhatIsBelowAndNoLink) {
  constexpr int kFolder = O_RDONLY | O_DIRECTORY;
  const struct {
    const char* path;
    int flags;
    StatusCode code;
  } cases[] = {
      {"deep/file", O_RDONLY, StatusCode::kOk},
      {"deep/file", O_PATH, StatusCode::kOk},
      {"deep", kFolder, StatusCode::kOk},
      {"deep/er", O_PATH | O_DIRECTORY, StatusCode::kOk},
      {".", kFolder, StatusCode::kOk},
      {"./deep/./file", O_RDONLY, StatusCode::kOk},
      {"deep/", kFolder, StatusCode::kOk},
      {"none", O_RDONLY, StatusCode::kNotFound},
      {"none/file", O_RDONLY, StatusCode::kNotFound},
      {"out", O_RDONLY, StatusCode::kPermissionDenied},
      {"out", O_PATH, StatusCode::kPermissionDenied},
      {"within", O_RDONLY, StatusCode::kPermissionDenied},
      {"same/file", O_RDONLY, StatusCode::kPermissionDenied},
      {"same", kFolder, StatusCode::kPermissionDenied},
      {"same", O_PATH | O_DIRECTORY, StatusCode::kPermissionDenied},
      {"up/secret", O_RDONLY, StatusCode::kPermissionDenied},
      {"../secret", O_RDONLY, StatusCode::kPermissionDenied},
      {"deep/../../secret", O_RDONLY, StatusCode::kPermissionDenied},
      {"/etc/passwd", O_RDONLY, StatusCode::kPermissionDenied},
  };
  for (const auto& one : cases) {
    EXPECT_EQ(CodeOf(one.path, one.flags), static_cast<int>(one.code))
        << one.path << ", flags " << one.flags;
  }
  EXPECT_GT(CodeOf("deep/file/more", O_RDONLY), 0);
  EXPECT_GT(CodeOf("deep/file", kFolder), 0);
  EXPECT_GT(CodeOf("", O_RDONLY), 0);
}

INSTANTIATE_TEST_SUITE_P(Openat2, OpenBeneathTest, testing::Bool(),
                         [](const auto& chosen) { return chosen.param ? "There" : "TakenAway"; });

}  // namespace
}  // namespace tactus::runtime
