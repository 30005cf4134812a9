// What the store keeps of a job beside its record, so that it can be searched for: pure functions.

#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "coordinator/job/records.h"

namespace tactus::store {

// Labels as one string: each key and value after its length, 4 bytes little-endian.
std::string PackLabels(const std::map<std::string, std::string>& labels);

// The value of a label in such a string; nothing when it lacks the key or is damaged.
std::optional<std::string_view> FindLabel(std::string_view packed, std::string_view key);

// Of a SHA-256: lower-case hexadecimal.
inline constexpr std::size_t kHashDigits = 64;

// SHA-256 of every blob that the record names, kHashDigits each, sorted, each once: checkpoint,
// artifacts of the result and of the ending, sha256:HASH anywhere in the spec.
std::vector<std::string> BlobsOf(const job::JobRecord& record);

// When the job ended: 0 while it goes on. The last update where the record does not say.
job::WallTime EndTimeOf(const job::JobRecord& record);

}  // namespace tactus::store
