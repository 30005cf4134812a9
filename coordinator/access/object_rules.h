// What somebody may do to which thing, where the method alone does not say: the one function.

#pragma once

#include <string>
#include <variant>

#include "absl/status/status.h"
#include "coordinator/access/principal.h"

namespace tactus::access {

// A change of a job: its owner's, or an admin's.
struct ChangeOfJob {
  std::string job{};    // its name, for the message
  std::string owner{};  // as its record has it; empty: nobody in particular
};

// Speaking as a node: that node's alone.
struct SpeakingAs {
  std::string node{};
};

// Bringing a file of a job: the node's whose worker made it, and that worker is rank 0.
struct FileOfJob {
  std::string job{};
  std::string maker_node{};  // where that worker runs; empty: nobody is it
};

// Reading a file by its hash: a node reads those of jobs that it has workers of.
struct ReadingBlob {
  std::string sha256{};
  bool of_its_jobs = false;
};

using Deed = std::variant<ChangeOfJob, SpeakingAs, FileOfJob, ReadingBlob>;

// Errors: PermissionDenied with the reason NOT_YOURS. Who was not asked for an identity may all.
absl::Status Allow(const Principal& who, const Deed& deed);

}  // namespace tactus::access
