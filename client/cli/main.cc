// The program `tactus`.

#include <grpc/support/log.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "client/cli/answer.h"
#include "client/local/surroundings.h"
#include "client/render/screen.h"

namespace tactus::client {
namespace {

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

Surroundings FindSurroundings() {
  std::error_code ignored;
  return {.settings = {.server = Variable("TACTUS_SERVER"),
                       .context = Variable("TACTUS_CONTEXT"),
                       .request_timeout = Variable("TACTUS_REQUEST_TIMEOUT"),
                       .output = Variable("TACTUS_OUTPUT"),
                       .tls_dir = Variable("TACTUS_TLS_DIR"),
                       .insecure = Variable("TACTUS_INSECURE")},
          .bucket_keys = {.id = Variable("AWS_ACCESS_KEY_ID"),
                          .secret = Variable("AWS_SECRET_ACCESS_KEY"),
                          .token = Variable("AWS_SESSION_TOKEN")},
          .no_color = !Variable("NO_COLOR").empty(),
          .dumb_terminal = Variable("TERM") == "dumb",
          .folders = runtime::FoldersFromEnvironment(),
          .binary_folder =
              std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path().string()};
}

ExitCode Main(const std::vector<std::string>& words) {
  // What is wrong with a connection comes back with the call, in our words.
  gpr_set_log_function([](gpr_log_func_args*) {});
  const Surroundings surroundings = FindSurroundings();
  const Screen screen({.no_color = surroundings.no_color, .dumb = surroundings.dumb_terminal});
  return screen.AfterAll(Answer(words, surroundings, screen));
}

}  // namespace
}  // namespace tactus::client

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  return static_cast<int>(tactus::client::Main(words));
}
