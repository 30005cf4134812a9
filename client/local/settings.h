// What the user has set once for all commands, and where each value came from: flags, environment,
// the file config.yaml, defaults.
//
//   server: HOST:PORT            # without a context
//   tls_dir: DIR                 # likewise
//   insecure: true               # likewise: plain, though the address is not loopback
//   request_timeout: 10s
//   output: table                # of tactus get
//   context: NAME                # the one in use
//   contexts:
//     NAME: {server: HOST:PORT, tls_dir: DIR}

#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/time.h"
#include "client/render/tables.h"

namespace tactus::client {

// Values as they were given; empty: not given.
struct GivenSettings {
  std::string server{};
  std::string context{};
  std::string request_timeout{};
  std::string output{};
  std::string tls_dir{};
  std::string insecure{};  // kYes, or another value of a variable, which is an error
};

// What a setting is that is on.
inline constexpr const char* kYes = "true";

struct SettingSources {
  GivenSettings flags{};
  GivenSettings environment{};  // TACTUS_SERVER, TACTUS_CONTEXT and so on
  std::string config_path{};    // the file may be missing
};

struct Setting {
  std::string value{};
  std::string source{};  // "flag --server", "environment TACTUS_SERVER", "default"
};

struct Context {
  std::string name{};
  std::string server{};
  std::string tls_dir{};
  bool insecure = false;
};

struct Settings {
  Setting server{};
  Setting context{};   // value empty: none is in use
  Setting tls_dir{};   // value empty: plain
  Setting insecure{};  // value kYes or empty
  Setting request_timeout{};
  Setting output{};
  Setting colour{};  // "auto" or "never"; set by main
  std::vector<Context> contexts{};
  std::string config_path{};
};

// The strongest of each value. For the server: --server, --context, TACTUS_SERVER, TACTUS_CONTEXT,
// the file's context, the file's server, the default. How to go there: flag, environment, then what
// stands beside the server, if that is the file's. Errors: InvalidArgument, naming the source:
// an address is not host:port, a context is not in the file, a duration or a format is none, the
// file is not YAML or has another key.
absl::StatusOr<Settings> ResolveSettings(const SettingSources& sources);

// Makes `name` the file's context; the rest of the file stays as it is, comments too. Errors:
// InvalidArgument as above; NotFound, the file has no such context; of the file system.
absl::Status UseContext(const std::string& config_path, const std::string& name);

// Adds the context to the file, which is made if it is not there; the rest stays as it is. Nothing
// where it has the same. Errors: as UseContext; AlreadyExists, it has one of that name for
// elsewhere; FailedPrecondition, no line can be added to the file as it is written.
absl::Status AddContext(const std::string& config_path, const Context& context);

std::string RenderSettings(const Settings& settings, OutputFormat format);
std::string RenderContexts(const Settings& settings, OutputFormat format);

}  // namespace tactus::client
