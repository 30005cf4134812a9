#include "coordinator/tape/frames.h"

#include <zlib.h>

#include "coordinator/codec/cbor_reader.h"
#include "coordinator/codec/cbor_writer.h"
#include "coordinator/job/record_fields.h"

namespace tactus {

template <>
inline constexpr int kEnumMax<tape::EndReason> = static_cast<int>(tape::EndReason::kFull);

template <>
inline constexpr const char* kKind<tape::Header> = "header";
template <>
inline constexpr const char* kKind<tape::Start> = "start";
template <>
inline constexpr const char* kKind<tape::Step> = "step";
template <>
inline constexpr const char* kKind<tape::End> = "end";

}  // namespace tactus

namespace tactus::tape {

void Fields(auto& archive, Of<Header> auto& header) {
  archive("program_version", header.program_version);
  archive("wall_offset", header.wall_offset);
}

void Fields(auto& archive, Of<Start> auto& start) {
  archive("records", start.records);
  archive("time", start.time);
  archive("actions", start.actions);
  archive("nodes", start.nodes);
  archive("memories", start.memories);
  archive("priors", start.priors);
}

void Fields(auto& archive, Of<Step> auto& step) {
  archive("event", step.event);
  archive("time", step.time);
  archive("actions", step.actions);
}

void Fields(auto& archive, Of<End> auto& end) { archive("reason", end.reason); }

namespace {

constexpr char kMagic[] = "tactus tape\n";
constexpr std::size_t kNumberBytes = 4;

void AppendNumber(std::uint32_t number, std::string& bytes) {
  for (std::size_t i = 0; i < kNumberBytes; ++i) {
    bytes.push_back(static_cast<char>(number >> (8 * i)));
  }
}

std::uint32_t ReadNumber(std::string_view bytes) {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < kNumberBytes; ++i) {
    number |= std::uint32_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  }
  return number;
}

std::uint32_t Crc(std::string_view bytes) {
  return static_cast<std::uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace

std::string Preamble() {
  std::string bytes = kMagic;
  AppendNumber(kFormatVersion, bytes);
  return bytes;
}

std::string EncodeFrame(const Frame& frame) {
  const std::string payload = codec::CborWriter::Document(frame);
  std::string bytes;
  bytes.reserve(kPrefixBytes + payload.size());
  AppendNumber(static_cast<std::uint32_t>(payload.size()), bytes);
  AppendNumber(Crc(payload), bytes);
  AppendNumber(Crc(bytes), bytes);
  bytes += payload;
  return bytes;
}

absl::StatusOr<Prefix> DecodePrefix(std::string_view bytes) {
  const Prefix prefix{.payload_bytes = ReadNumber(bytes),
                      .payload_crc = ReadNumber(bytes.substr(kNumberBytes))};
  const bool right =
      ReadNumber(bytes.substr(2 * kNumberBytes)) == Crc(bytes.substr(0, 2 * kNumberBytes));
  // Before anyone makes room for it: a damaged length could ask for 4 GiB.
  if (right && prefix.payload_bytes > 0 && prefix.payload_bytes <= kPayloadBytesMax) return prefix;
  return absl::DataLossError("its length is damaged");
}

absl::StatusOr<Frame> DecodePayload(const Prefix& prefix, std::string_view payload) {
  if (Crc(payload) != prefix.payload_crc) return absl::DataLossError("its checksum is another");
  Frame frame;
  codec::CborReader reader(payload);
  reader.Read(frame);
  const char* failure = reader.Finish();
  if (failure == nullptr) return frame;
  return absl::DataLossError(std::string("its content is damaged: ") + failure);
}

}  // namespace tactus::tape
