// How an agent that has nothing but a token becomes a node.

#pragma once

#include <string>

#include "absl/status/status.h"

namespace tactus::agent {

struct JoinFlags {
  std::string token{};       // --join; empty: not given
  std::string token_file{};  // --join-file, likewise: its first line is the token
};

// Comes by a certificate for `tls_dir` where it has none that is valid; nothing where it has, or
// nothing was given. Waits a minute for the coordinator. Errors: InvalidArgument, the flags do not
// go together; of identity::EnrolInto; of the file system.
absl::Status Join(const JoinFlags& flags, const std::string& tls_dir,
                  const std::string& coordinator);

}  // namespace tactus::agent
