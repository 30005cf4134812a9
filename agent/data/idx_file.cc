#include "agent/data/idx_file.h"

#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "agent/data/gzip.h"

namespace tactus::data {
namespace {

constexpr std::size_t kIdxDimensionsMax = 8;
constexpr std::size_t kMagicBytes = 4;

// "0x08", "0x89504e47"
std::string Hex(std::span<const std::uint8_t> bytes) {
  return "0x" + absl::BytesToHexString({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

std::optional<StoredType> TypeFromCode(std::uint8_t code) {
  if (code == 0x08) return StoredType::kUint8;
  if (code == 0x0d) return StoredType::kFloat32BigEndian;
  return std::nullopt;
}

std::int64_t BigEndian32(std::span<const std::uint8_t, 4> bytes) {
  return (std::int64_t{bytes[0]} << 24) | (std::int64_t{bytes[1]} << 16) |
         (std::int64_t{bytes[2]} << 8) | std::int64_t{bytes[3]};
}

absl::StatusOr<MappedFile> OpenPlainOrGzip(const std::string& path) {
  absl::StatusOr<MappedFile> file = MappedFile::Open(path);
  if (!file.ok() || !IsGzip(file->bytes())) return file;
  absl::StatusOr<std::vector<std::uint8_t>> content = Inflate(file->bytes(), kInflatedBytesMax);
  if (!content.ok()) {
    return absl::InvalidArgumentError(Quoted(path) + " " + std::string(content.status().message()));
  }
  return MappedFile::FromMemory(path, *std::move(content));
}

absl::Status CutShort(const MappedFile& file, std::size_t header_bytes) {
  return absl::InvalidArgumentError(Quoted(file.path()) + " is cut short: its header takes " +
                                    std::to_string(header_bytes) + " bytes, " +
                                    std::to_string(file.bytes().size()) + " are there");
}

// Checks the first four bytes.
absl::Status CheckMagic(const MappedFile& file) {
  const std::span<const std::uint8_t> bytes = file.bytes();
  const std::string subject = Quoted(file.path());
  if (bytes.empty()) return absl::InvalidArgumentError(subject + " is empty");
  if (bytes.size() < kMagicBytes) return CutShort(file, kMagicBytes);
  const std::span<const std::uint8_t> magic = bytes.first(kMagicBytes);
  if (magic[0] != 0 || magic[1] != 0) {
    return absl::InvalidArgumentError(subject + " is not an IDX file: it begins with " +
                                      Hex(magic) + ", not 0x000008 or 0x00000d");
  }
  if (!TypeFromCode(magic[2])) {
    return absl::InvalidArgumentError(subject + " has elements of type " +
                                      Hex(magic.subspan(2, 1)) +
                                      "; 0x08 (unsigned byte) and 0x0d (float32) are read");
  }
  if (magic[3] < 1 || magic[3] > kIdxDimensionsMax) {
    return absl::InvalidArgumentError(subject + " has " + std::to_string(magic[3]) +
                                      " dimensions; 1 to " + std::to_string(kIdxDimensionsMax) +
                                      " are read");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<StoredArray> ReadIdx(const std::string& path) {
  absl::StatusOr<MappedFile> file = OpenPlainOrGzip(path);
  if (!file.ok()) return file.status();
  if (absl::Status magic = CheckMagic(*file); !magic.ok()) return magic;
  const std::span<const std::uint8_t> bytes = file->bytes();
  const std::size_t header_bytes = kMagicBytes + 4 * std::size_t{bytes[3]};
  if (bytes.size() < header_bytes) return CutShort(*file, header_bytes);

  std::vector<std::int64_t> shape;
  for (std::size_t at = kMagicBytes; at < header_bytes; at += 4) {
    shape.push_back(BigEndian32(bytes.subspan(at).first<4>()));
  }
  StoredArray array = {.file = *std::move(file),
                       .type = *TypeFromCode(bytes[2]),
                       .shape = std::move(shape),
                       .offset = header_bytes};
  if (absl::Status checked = CheckShape(array); !checked.ok()) return checked;
  return array;
}

}  // namespace tactus::data
