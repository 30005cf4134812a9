#include "coordinator/store/job_columns.h"

#include <algorithm>
#include <cstdint>

namespace tactus::store {
namespace {

constexpr std::size_t kLengthBytes = 4;
constexpr std::string_view kBlobPrefix = "sha256:";

void AppendSized(std::string& packed, std::string_view text) {
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    packed += static_cast<char>((text.size() >> (8 * i)) & 0xff);
  }
  packed += text;
}

// Takes the next sized string off the front; nothing when there is no whole one.
std::optional<std::string_view> TakeSized(std::string_view& packed) {
  if (packed.size() < kLengthBytes) return std::nullopt;
  std::size_t size = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    size |= std::size_t{static_cast<unsigned char>(packed[i])} << (8 * i);
  }
  packed.remove_prefix(kLengthBytes);
  if (size > packed.size()) return std::nullopt;
  const std::string_view text = packed.substr(0, size);
  packed.remove_prefix(size);
  return text;
}

bool IsHash(std::string_view text) {
  return text.size() == kHashDigits && text.find_first_not_of("0123456789abcdef") == text.npos;
}

void AddHash(std::vector<std::string>& hashes, std::string_view hash) {
  if (IsHash(hash)) hashes.emplace_back(hash);
}

}  // namespace

std::string PackLabels(const std::map<std::string, std::string>& labels) {
  std::string packed;
  for (const auto& [key, value] : labels) {
    AppendSized(packed, key);
    AppendSized(packed, value);
  }
  return packed;
}

std::optional<std::string_view> FindLabel(std::string_view packed, std::string_view key) {
  while (true) {
    const std::optional<std::string_view> found = TakeSized(packed);
    const std::optional<std::string_view> value = TakeSized(packed);
    if (!found || !value) return std::nullopt;
    if (*found == key) return value;
  }
}

std::vector<std::string> BlobsOf(const job::JobRecord& record) {
  std::vector<std::string> hashes;
  if (record.checkpoint) AddHash(hashes, record.checkpoint->sha256);
  for (const job::CheckpointRecord& former : record.former_checkpoints) {
    AddHash(hashes, former.sha256);
  }
  for (const job::ArtifactRecord& snapshot : record.snapshots) AddHash(hashes, snapshot.sha256);
  for (const job::ArtifactRecord& artifact : record.ending.artifacts) {
    AddHash(hashes, artifact.sha256);
  }
  if (record.result) {
    for (const job::ArtifactRecord& artifact : record.result->artifacts) {
      AddHash(hashes, artifact.sha256);
    }
  }
  // The spec is searched as bytes, in which a message's strings stand whole: no field that names a
  // blob can be forgotten here. One hash too many keeps a blob longer; one too few would delete it.
  const std::string_view spec = record.spec;
  for (std::size_t at = spec.find(kBlobPrefix); at != spec.npos; at = spec.find(kBlobPrefix, at)) {
    at += kBlobPrefix.size();
    AddHash(hashes, spec.substr(at, kHashDigits));
  }
  std::sort(hashes.begin(), hashes.end());
  hashes.erase(std::unique(hashes.begin(), hashes.end()), hashes.end());
  return hashes;
}

job::WallTime EndTimeOf(const job::JobRecord& record) {
  if (!job::IsFinal(record.state)) return 0;
  return record.end_time != 0 ? record.end_time : record.update_time;
}

}  // namespace tactus::store
