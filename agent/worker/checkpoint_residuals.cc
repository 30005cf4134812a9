#include "agent/worker/checkpoint_residuals.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

namespace tactus::worker {
namespace {

constexpr std::string_view kPrefix = "residuals.";

std::string NameOf(std::size_t rank, const std::string& kind) {
  return std::string(kPrefix) + std::to_string(rank) + "." + kind;
}

tensors::NamedTensor Floats(std::string name, std::vector<std::int64_t> shape,
                            std::span<const float> values) {
  return {.name = std::move(name),
          .type = "F32",
          .shape = std::move(shape),
          .bytes = std::as_bytes(values)};
}

struct ParsedName {
  std::size_t rank = 0;
  std::string kind{};
  bool of_segment = false;
};

std::optional<ParsedName> Parse(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  ParsedName parsed;
  const auto number = std::from_chars(name.data(), name.data() + name.size(), parsed.rank);
  if (number.ec != std::errc()) return std::nullopt;
  name.remove_prefix(static_cast<std::size_t>(number.ptr - name.data()));
  if (!name.starts_with('.')) return std::nullopt;
  name.remove_prefix(1);
  const std::size_t end = name.find('.');
  parsed.of_segment = end != std::string_view::npos;
  parsed.kind = name.substr(0, end);
  return parsed;
}

void Read(const tensors::SafetensorsFile& file, const std::string& name, std::span<float> to) {
  std::memcpy(to.data(), file.tensors.at(name).bytes.data(), to.size_bytes());
}

}  // namespace

std::vector<tensors::NamedTensor> ResidualTensors(const std::vector<engine::Residuals>& by_rank,
                                                  const cuda::SegmentTable& segments) {
  std::vector<tensors::NamedTensor> tensors;
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    for (const auto& [kind, values] : by_rank[rank]) {
      const std::string name = NameOf(rank, kind);
      if (!engine::OfVector(values)) {
        tensors.push_back(Floats(name, {static_cast<std::int64_t>(values.size())}, values));
        continue;
      }
      for (const cuda::Segment& segment : segments) {
        tensors.push_back(Floats(name + "." + segment.name, segment.shape,
                                 std::span(values).subspan(segment.offset, segment.length)));
      }
    }
  }
  return tensors;
}

ResidualLayout ResidualsIn(const tensors::SafetensorsFile& file) {
  ResidualLayout layout;
  for (const auto& [name, tensor] : file.tensors) {
    const std::optional<ParsedName> parsed = Parse(name);
    // No more members than tensors, whatever a name says.
    if (!parsed || parsed->rank >= file.tensors.size()) continue;
    layout.members = std::max(layout.members, parsed->rank + 1);
    const std::size_t length = tensor.bytes.size() / sizeof(float);
    layout.kinds.emplace(parsed->kind, parsed->of_segment ? 0 : length);
  }
  return layout;
}

std::vector<tensors::WantedTensor> Wanted(const ResidualLayout& layout,
                                          const cuda::SegmentTable& segments) {
  std::vector<tensors::WantedTensor> wanted;
  for (std::size_t rank = 0; rank < layout.members; ++rank) {
    for (const auto& [kind, length] : layout.kinds) {
      const std::string name = NameOf(rank, kind);
      if (length > 0) {
        wanted.push_back(
            {.name = name, .type = "F32", .shape = {static_cast<std::int64_t>(length)}});
        continue;
      }
      for (const cuda::Segment& segment : segments) {
        wanted.push_back(
            {.name = name + "." + segment.name, .type = "F32", .shape = segment.shape});
      }
    }
  }
  return wanted;
}

CheckpointedResiduals::CheckpointedResiduals(tensors::SafetensorsFile file,
                                             const cuda::SegmentTable& segments)
    : file_(std::move(file)), segments_(segments), layout_(ResidualsIn(file_)) {}

absl::StatusOr<CheckpointedResiduals> CheckpointedResiduals::Open(
    const std::string& path, const cuda::SegmentTable& segments) {
  absl::StatusOr<tensors::SafetensorsFile> file = tensors::ReadSafetensors(path);
  if (!file.ok()) return file.status();
  return CheckpointedResiduals(*std::move(file), segments);
}

engine::ResidualParts CheckpointedResiduals::parts() const {
  return {.members = layout_.members, .of = [this](std::size_t rank) { return Of(rank); }};
}

engine::Residuals CheckpointedResiduals::Of(std::size_t rank) const {
  engine::Residuals residuals;
  for (const auto& [kind, length] : layout_.kinds) {
    const std::string name = NameOf(rank, kind);
    std::vector<float>& values = residuals[kind];
    values.resize(length > 0 ? length : cuda::FlatLength(segments_));
    if (length > 0) {
      Read(file_, name, values);
      continue;
    }
    for (const cuda::Segment& segment : segments_) {
      Read(file_, name + "." + segment.name,
           std::span(values).subspan(segment.offset, segment.length));
    }
  }
  return residuals;
}

}  // namespace tactus::worker
