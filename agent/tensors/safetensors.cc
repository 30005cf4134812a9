#include "agent/tensors/safetensors.h"

#include <algorithm>
#include <array>
#include <memory>
#include <nlohmann/json.hpp>

#include "absl/status/statusor.h"
#include "agent/tensors/atomic_file.h"

namespace tactus::tensors {
namespace {

constexpr std::size_t kHeaderAlignment = 8;
constexpr const char* kMetadata = "__metadata__";

std::string Header(const std::vector<NamedTensor>& tensors,
                   const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header;
  header[kMetadata] = {{"format", "pt"}};
  for (const auto& [key, text] : metadata) header[kMetadata][key] = text;
  std::size_t offset = 0;
  for (const NamedTensor& tensor : tensors) {
    nlohmann::ordered_json entry;
    entry["dtype"] = tensor.type;
    entry["shape"] = tensor.shape;
    entry["data_offsets"] = {offset, offset + tensor.bytes.size()};
    header[tensor.name] = std::move(entry);
    offset += tensor.bytes.size();
  }
  std::string text = header.dump();
  text.resize((text.size() + kHeaderAlignment - 1) / kHeaderAlignment * kHeaderAlignment, ' ');
  return text;
}

std::array<char, 8> LittleEndian(std::uint64_t value) {
  std::array<char, 8> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<char>((value >> (8 * i)) & 0xff);
  }
  return bytes;
}

}  // namespace

absl::Status WriteSafetensors(const std::string& path, std::vector<NamedTensor> tensors,
                              const std::map<std::string, std::string>& metadata,
                              const std::stop_token& stop) {
  // The widest elements first, so that each tensor begins at a multiple of its element's size.
  std::ranges::sort(tensors, [](const NamedTensor& a, const NamedTensor& b) {
    if (a.element_bytes != b.element_bytes) return a.element_bytes > b.element_bytes;
    return a.name < b.name;
  });
  const absl::StatusOr<std::unique_ptr<AtomicFile>> file = AtomicFile::Open(path, stop);
  if (!file.ok()) return file.status();
  const std::string header = Header(tensors, metadata);
  const std::array<char, 8> length = LittleEndian(header.size());
  absl::Status status = (*file)->Append(length.data(), length.size());
  if (status.ok()) status = (*file)->Append(header.data(), header.size());
  for (const NamedTensor& tensor : tensors) {
    if (status.ok()) status = (*file)->Append(tensor.bytes.data(), tensor.bytes.size());
  }
  return status.ok() ? (*file)->Commit() : status;
}

}  // namespace tactus::tensors
