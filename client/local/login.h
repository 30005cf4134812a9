// Where a user's certificate for a coordinator is, and the context that goes there with it.

#pragma once

#include <string>

#include "absl/status/status.h"
#include "runtime/options.h"

namespace tactus::client {

struct LoginPlace {
  std::string context{};      // its name
  std::string server{};       // host:port, or several with commas between them
  std::string folder{};       // for --tls-dir; absolute
  std::string config_path{};  // config.yaml
};

// `name` is the context's, empty: the coordinator's host, of several the first's; `folder` is
// --tls-dir, empty: one of the context's name beside the configuration file.
struct LoginWords {
  std::string server{};
  std::string name{};
  std::string folder{};
};
LoginPlace PlaceOf(const LoginWords& words, const runtime::UserFolders& folders);

// Makes what is above the folder. Errors: of the file system.
absl::Status MakeRoomFor(const LoginPlace& place);

// Has the configuration file name the place, and use it from now on. Errors: of AddContext and
// UseContext.
absl::Status UseLogin(const LoginPlace& place);

}  // namespace tactus::client
