#include <algorithm>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "agent/tensors/safetensors.h"

namespace tactus::tensors {
namespace {

using Json = nlohmann::json;

struct Type {
  const char* name;
  std::size_t bytes;
};
constexpr Type kTypes[] = {{"BOOL", 1}, {"U8", 1},   {"I8", 1},  {"U16", 2}, {"I16", 2},
                           {"F16", 2},  {"BF16", 2}, {"U32", 4}, {"I32", 4}, {"F32", 4},
                           {"U64", 8},  {"I64", 8},  {"F64", 8}};

absl::Status Bad(const std::string& path, const std::string& what) {
  return absl::InvalidArgumentError(data::Quoted(path) + " is no safetensors file: " + what);
}

// A number of 8 bytes, little-endian.
std::uint64_t Length(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < 8; ++i) value |= static_cast<std::uint64_t>(bytes[i]) << (8 * i);
  return value;
}

// A whole number that is not negative and fits a size.
std::optional<std::uint64_t> SizeOf(const Json& value) {
  if (!value.is_number_unsigned()) return std::nullopt;
  const auto size = value.get<std::uint64_t>();
  if (size > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    return std::nullopt;
  }
  return size;
}

// Elements of a shape times the size of one; nothing where it is no shape of anything that fits in
// memory.
std::optional<std::uint64_t> BytesOf(const Json& shape, NamedTensor& tensor) {
  if (!shape.is_array()) return std::nullopt;
  constexpr std::uint64_t kMax = std::numeric_limits<std::int64_t>::max();
  std::uint64_t bytes = tensor.element_bytes;
  for (const Json& entry : shape) {
    const std::optional<std::uint64_t> size = SizeOf(entry);
    if (!size || (*size > 0 && bytes > kMax / *size)) return std::nullopt;
    bytes *= *size;
    tensor.shape.push_back(static_cast<std::int64_t>(*size));
  }
  return bytes;
}

// What the header says of one tensor; empty text: it holds.
std::string Parse(const Json& entry, std::span<const std::byte> data, NamedTensor& tensor) {
  if (!entry.is_object() || !entry.contains("dtype") || !entry.contains("shape") ||
      !entry.contains("data_offsets")) {
    return "has no dtype, shape and data_offsets";
  }
  const Json& name = entry["dtype"];
  const auto type = std::ranges::find_if(
      kTypes, [&](const Type& one) { return name.is_string() && name == one.name; });
  if (type == std::end(kTypes)) return "has a dtype that is not known";
  tensor.type = type->name;
  tensor.element_bytes = type->bytes;
  const std::optional<std::uint64_t> bytes = BytesOf(entry["shape"], tensor);
  if (!bytes) return "has a shape that is none";
  const Json& offsets = entry["data_offsets"];
  if (!offsets.is_array() || offsets.size() != 2) return "has data_offsets that are not two";
  const std::optional<std::uint64_t> begin = SizeOf(offsets[0]);
  const std::optional<std::uint64_t> end = SizeOf(offsets[1]);
  if (!begin || !end || *begin > *end || *end > data.size()) {
    return "has data_offsets beyond the file's " + std::to_string(data.size()) + " bytes of data";
  }
  if (*end - *begin != *bytes) {
    return "has " + std::to_string(*end - *begin) + " bytes, its shape needs " +
           std::to_string(*bytes);
  }
  tensor.bytes = data.subspan(*begin, *bytes);
  return {};
}

// Whether the tensors cover the data once, without gaps.
bool Covers(const std::map<std::string, NamedTensor>& tensors, std::span<const std::byte> data) {
  std::vector<std::span<const std::byte>> parts;
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.bytes.empty()) parts.push_back(tensor.bytes);
  }
  std::ranges::sort(parts, {}, [](const auto& part) { return part.data(); });
  const std::byte* at = data.data();
  for (const std::span<const std::byte> part : parts) {
    if (part.data() != at) return false;
    at += part.size();
  }
  return at == data.data() + data.size();
}

// Texts alone.
std::string ParseMetadata(const Json& entry, std::map<std::string, std::string>& metadata) {
  if (!entry.is_object()) return "__metadata__ is no object";
  for (const auto& [key, text] : entry.items()) {
    if (!text.is_string()) return "__metadata__ holds other than texts";
    metadata[key] = text.get<std::string>();
  }
  return {};
}

}  // namespace

absl::StatusOr<SafetensorsFile> ReadSafetensors(const std::string& path) {
  absl::StatusOr<data::MappedFile> file = data::MappedFile::Open(path);
  if (!file.ok()) return file.status();
  SafetensorsFile read{.file = *std::move(file)};
  const std::span<const std::byte> bytes = std::as_bytes(read.file.bytes());
  if (bytes.size() < 8) return Bad(path, "it has " + std::to_string(bytes.size()) + " bytes");
  const std::uint64_t length = Length(bytes);
  if (length > kHeaderBytesMax || length > bytes.size() - 8) {
    return Bad(path, "a header of " + std::to_string(length) + " bytes in a file of " +
                         std::to_string(bytes.size()) +
                         "; allowed: " + std::to_string(kHeaderBytesMax));
  }
  const char* text = reinterpret_cast<const char*>(bytes.data()) + 8;
  const Json header = Json::parse(text, text + length, nullptr, /*allow_exceptions=*/false);
  if (!header.is_object()) return Bad(path, "its header is no JSON object");
  const std::span<const std::byte> data = bytes.subspan(8 + length);
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      const std::string wrong = ParseMetadata(entry, read.metadata);
      if (!wrong.empty()) return Bad(path, wrong);
      continue;
    }
    NamedTensor& tensor = read.tensors[name];
    tensor.name = name;
    const std::string wrong = Parse(entry, data, tensor);
    if (!wrong.empty()) return Bad(path, "tensor " + data::Quoted(name) + " " + wrong);
  }
  if (!Covers(read.tensors, data)) return Bad(path, "its tensors do not cover its data once");
  return read;
}

std::string DifferencesFrom(const SafetensorsFile& file, const std::vector<WantedTensor>& wanted) {
  const auto text_of = [](const std::string& type, const std::vector<std::int64_t>& shape) {
    std::string text = type + "[";
    for (std::size_t i = 0; i < shape.size(); ++i) {
      text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
    }
    return text + "]";
  };
  std::string words;
  std::size_t count = 0;
  for (const WantedTensor& tensor : wanted) {
    const auto found = file.tensors.find(tensor.name);
    const bool there = found != file.tensors.end();
    if (there && found->second.type == tensor.type && found->second.shape == tensor.shape) continue;
    if (++count > kDifferencesMax) continue;
    words += words.empty() ? "" : "; ";
    words += there ? "tensor " + data::Quoted(tensor.name) + " is " +
                         text_of(found->second.type, found->second.shape)
                   : "it has no tensor " + data::Quoted(tensor.name);
    words += ", this job's is " + text_of(tensor.type, tensor.shape);
  }
  if (count > kDifferencesMax)
    words += "; and " + std::to_string(count - kDifferencesMax) + " more";
  return words;
}

}  // namespace tactus::tensors
