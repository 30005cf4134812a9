// Where a result comes from, as a statement that others read: in-toto's, with SLSA's provenance.

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tactus::access {

// What the record is called beside the files of a result, and what it names the plans' history.
inline constexpr const char* kProvenanceFile = "provenance.intoto.jsonl";
inline constexpr const char* kPlansFile = "plans.jsonl";

struct Provenance {
  struct File {
    std::string name{};
    std::string sha256{};  // 64 hexadecimal digits; empty: not known
  };
  // What a job read: a field of its file, and what that names.
  struct Input {
    std::string field{};   // "model.torchscript"
    std::string file{};    // "sha256:...", or a path on the nodes
    std::string sha256{};  // empty: a path, whose content the coordinator does not know
  };
  struct Node {
    std::string name{};
    std::string id{};  // as its certificate has it; empty: nobody was asked
    std::vector<std::string> devices{};
  };
  std::vector<File> files{};  // of the result
  std::string job{};          // "jobs/shakespeare-1"
  std::string uid{};
  std::string owner{};  // "user/alice"; empty: nobody was asked
  std::string from{};   // "jobs/shakespeare-0", from which it began; empty: from none
  std::string spec{};   // as JSON
  std::map<std::string, std::string> labels{};
  std::vector<Input> inputs{};
  std::vector<Node> nodes{};  // that took part, as far as the job's record has them
  std::uint32_t attempts = 0;
  std::string stop_reason{};
  File plans{};              // the history of plans: each decision, a line of JSON
  std::string builder{};     // the coordinator: its SPIFFE id, or kUnidentified
  std::string version{};     // of Tactus
  std::int64_t created = 0;  // [s since 1970], as the next three
  std::int64_t started = 0;  // 0: it never did
  std::int64_t ended = 0;
  std::int64_t signed_at = 0;  // this was made
};

// The builder where the coordinator has no certificate.
inline constexpr const char* kUnidentified = "urn:tactus:coordinator-without-identity";

// Always the same text of the same record.
std::string StatementOf(const Provenance& provenance);

// What is in it that `tactus verify` asks for: files, job, owner, plans, builder, nodes' names and
// ids, and times. Errors: InvalidArgument, it is no such statement.
absl::StatusOr<Provenance> ReadStatement(const std::string& text);

}  // namespace tactus::access
