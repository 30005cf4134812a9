// `tactus doctor`: what of this machine and of a coordinator's nodes will be in the way, and what
// to do about it. Looking (LookAtHost, calls) is apart from judging (the other functions, which are
// pure).

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/local/settings.h"
#include "client/local/surroundings.h"
#include "identity/certificate.h"
#include "tactus/v1/nodes.pb.h"

namespace tactus::client {

enum class Grade {
  kOk,
  kLook,  // works, perhaps not as wished
  kBad,   // something that is asked for will not work
};

struct Finding {
  Grade grade = Grade::kOk;
  std::string subject{};  // "disk", "node gpu-3"
  std::string found{};    // one line
  std::string advice{};   // what to do; empty where there is nothing to be done
};

struct HostFacts {
  std::vector<std::string> missing_programs{};  // of those that `tactus run` starts
  std::uint64_t cores = 0;
  std::uint64_t memory_bytes = 0;     // that a new process can have; 0: not known
  std::string state_folder{};         // or what of its path is there
  bool state_writable = false;        // by this user
  std::uint64_t disk_free_bytes = 0;  // below it, for this user
  std::uint64_t files_max = 0;        // open ones, as far as a process may raise it itself
  int gpu_devices = 0;                // /dev/nvidia0 and so on
  bool gpu_readable = true;           // by this user; true where there is none
  bool gpu_driver = false;            // the kernel's part is loaded
  bool unified_cgroups = false;       // version 2, where kills for want of memory are counted
  int landlock = 0;                   // the kernel's version of it; 0: none
  bool system_call_filters = false;   // seccomp
};
HostFacts LookAtHost(const Surroundings& surroundings);

std::vector<Finding> JudgeHost(const HostFacts& facts);

// How the coordinator is gone to.
struct TlsFacts {
  Setting folder{};      // value empty: plain
  bool exposed = false;  // the server's address is not loopback
  // Of the folder; whether its parts go together.
  absl::StatusOr<identity::Certificate> certificate = identity::Certificate();
  std::int64_t now = 0;  // [s since 1970]
};
TlsFacts LookAtTls(const Settings& settings);

Finding JudgeTls(const TlsFacts& facts);

struct CoordinatorFacts {
  Setting server{};
  double answer_seconds = 0;  // of the call
  double wall_seconds = 0;    // since 1970, when the answer had come
  std::string version{};      // of this program
};

// `nodes` is what ListNodes said, or its error.
std::vector<Finding> JudgeNodes(const CoordinatorFacts& facts,
                                const absl::StatusOr<v1::ListNodesResponse>& nodes);

// A line each: "look  disk  2.1 GiB free in ...: remove ...".
std::string FormatFindings(const std::vector<Finding>& findings);

}  // namespace tactus::client
