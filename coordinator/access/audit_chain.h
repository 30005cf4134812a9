// The audit log's lines, each of which vouches for those before it.
//
// A line is a JSON object. Its `hash` is the SHA-256 of what stands before it in the line, and that
// holds `prev`, the hash of the line before: who changes, takes out or adds a line somewhere breaks
// every line behind it. Taking off the end is seen only by who has noted its hash.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace tactus::access {

// What was asked, by whom, and what came of it.
struct AuditEntry {
  std::int64_t time = 0;      // [ns since 1970]
  std::string who{};          // "user/alice"; empty: nobody known
  std::string peer{};         // from where, as gRPC writes it; empty: not known
  std::string certificate{};  // its serial number; empty: there was none
  std::string method{};       // "Jobs/CancelJob"
  std::string about{};        // "jobs/shakespeare-1"; empty: nothing in particular
  std::string code{};         // "OK", "PERMISSION_DENIED"
};

// Where a chain stands.
struct ChainEnd {
  std::uint64_t number = 0;  // of its last line; 0: there is none
  std::string hash{};        // of that; 64 zeros where there is none
};

// Before the first line.
ChainEnd EmptyChain();

// The next line, its end of line included, and moves `end` to it. Texts that are longer than 256
// bytes are cut.
std::string ChainLine(const AuditEntry& entry, ChainEnd& end);

// The line that says that those up to `gone` were removed for room: what comes first from then on
// follows it, so that whoever takes away more of the beginning is found out.
AuditEntry RemovalEntry(const ChainEnd& gone);

// Of a whole line, without its end. Errors: DataLoss, it is none, or its hash is not that of its
// content.
struct ReadLine {
  ChainEnd end{};
  std::string prev{};
  std::string removal{};  // `about` of a RemovalEntry; empty: it is none
};
absl::StatusOr<ReadLine> ReadChainLine(std::string_view line);

// The names of a log's files in `folder`, in order.
std::vector<std::string> AuditFiles(const std::string& folder);
// Of the file that begins with this line.
std::string AuditFileName(std::uint64_t first);
// Requires: one of AuditFiles.
std::uint64_t FirstLineOf(const std::string& name);

// Reads all files in `folder`, in order. Lines before the first one may be gone, where a later line
// says so. Errors: NotFound, there is no log; DataLoss, with the file and line from which on it is
// not intact, or that the beginning is gone and no line says so.
struct AuditReport {
  std::uint64_t first = 0;         // above 1: those before it were removed for room
  std::uint64_t removal_line = 0;  // which says so; 0: none were removed
  std::uint64_t lines = 0;
  ChainEnd end{};
};
absl::StatusOr<AuditReport> VerifyAudit(const std::string& folder);

}  // namespace tactus::access
