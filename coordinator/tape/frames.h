// What a tape holds: everything that a coordinator's core was given, with the times, and what it
// answered.
//
// The file is "tactus tape\n", the format's version as four bytes, and frames up to the end mark:
//
//   length of the payload, 4 bytes
//   CRC-32 of the payload, 4 bytes
//   CRC-32 of the eight bytes before, 4 bytes, so that no damaged length is taken for a cut
//   payload: a CBOR map, told by its key "kind"
//
// Numbers are little-endian. The first frame is the header, the second the start; steps follow; the
// last is the end. A process that was killed leaves a tape without its end: it is cut.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "base/time.h"
#include "coordinator/job/actions.h"
#include "coordinator/job/records.h"

namespace tactus::tape {

struct Header {
  std::string program_version{};
  job::WallTime wall_offset = 0;  // what job::Cluster was made with
};

// The jobs that a core takes up when it begins, and all that it answered.
struct Start {
  std::vector<job::JobRecord> records{};  // in the order of their Restore
  Instant time{};
  job::Actions actions{};
  std::vector<job::NodeRecord> nodes{};       // taken up before the records
  std::vector<job::MemoryRecord> memories{};  // likewise
  std::vector<job::PriorRecord> priors{};     // likewise
};

// One event.
struct Step {
  job::Event event{};
  Instant time{};
  job::Actions actions{};
};

enum class EndReason {
  kClean,  // the process that wrote it ended
  kFull,   // a bound was reached; the process went on
};
struct End {
  EndReason reason = EndReason::kClean;
};

using Frame = std::variant<Header, Start, Step, End>;

// What every tape begins with.
std::string Preamble();
inline constexpr std::size_t kPreambleBytes = 16;
inline constexpr std::uint32_t kFormatVersion = 5;  // grows when an older program would misread it

// Bytes before a payload, and the most that a payload has.
inline constexpr std::size_t kPrefixBytes = 12;
inline constexpr std::size_t kPayloadBytesMax = std::size_t{64} << 20;

// Prefix and payload.
std::string EncodeFrame(const Frame& frame);

// What the twelve bytes before a payload say.
struct Prefix {
  std::uint32_t payload_bytes = 0;  // 1 to kPayloadBytesMax
  std::uint32_t payload_crc = 0;
};
// Errors: DataLoss, damaged.
absl::StatusOr<Prefix> DecodePrefix(std::string_view bytes);
absl::StatusOr<Frame> DecodePayload(const Prefix& prefix, std::string_view payload);

}  // namespace tactus::tape
