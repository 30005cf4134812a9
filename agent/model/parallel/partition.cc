#include "agent/model/parallel/partition.h"

#include <algorithm>
#include <cmath>

#include "agent/data/field_error.h"
#include "agent/model/builtins.h"
#include "base/check.h"

namespace tactus::model {
namespace {

constexpr const char* kDevices = "model.options.mesh.devices";

absl::Status Wrong(const std::string& field, const std::string& what) {
  return data::AtField(field, absl::InvalidArgumentError(what));
}

std::int64_t LengthOf(const std::vector<std::int64_t>& shape) {
  std::int64_t length = 1;
  for (const std::int64_t size : shape) length *= size;
  return length;
}

std::int64_t RowsOf(const Part& part) { return part.dense.front(); }
std::int64_t ColumnsOf(const Part& part) { return part.dense.size() == 2 ? part.dense[1] : 1; }

std::int64_t Longest(std::int64_t length, std::int64_t parts) {
  return (length + parts - 1) / parts;
}

// What of a dimension there is in a part.
struct Range {
  std::int64_t begin = 0;
  std::int64_t length = 0;
};

Range RangeOf(std::int64_t length, const Cut& cut) {
  const std::int64_t each = Longest(length, cut.parts);
  const std::int64_t begin = std::min(length, each * cut.index);
  return {.begin = begin, .length = std::min(length - begin, each)};
}

// Calls `visit(offset in the dense tensor, offset in the block, length)` for every run of elements.
template <typename Visit>
void ForEachRun(const Part& part, const Visit& visit) {
  const std::int64_t group_rows = RowsOf(part) / part.groups;
  const Range rows = RangeOf(group_rows, part.rows);
  const Range columns = RangeOf(ColumnsOf(part), part.columns);
  const std::int64_t block_rows = Longest(group_rows, part.rows.parts);
  const std::int64_t block_columns = Longest(ColumnsOf(part), part.columns.parts);
  for (std::int64_t group = 0; group < part.groups; ++group) {
    for (std::int64_t row = 0; row < rows.length; ++row) {
      const std::int64_t dense_row = group * group_rows + rows.begin + row;
      visit(static_cast<std::size_t>(dense_row * ColumnsOf(part) + columns.begin),
            static_cast<std::size_t>((group * block_rows + row) * block_columns),
            static_cast<std::size_t>(columns.length));
    }
  }
}

void CheckSizes(const Part& part, std::size_t dense, std::size_t block) {
  TACTUS_CHECK(dense == static_cast<std::size_t>(LengthOf(part.dense)));
  TACTUS_CHECK(block == static_cast<std::size_t>(LengthOf(part.Shape())));
}

// "4", "1 or 4", "4 or 9".
std::string NearestSquares(std::uint32_t devices) {
  auto side = static_cast<std::uint32_t>(std::sqrt(static_cast<double>(devices)));
  while (side * side > devices) --side;
  const std::uint32_t below = side * side;
  const std::uint32_t above = (side + 1) * (side + 1);
  return below == 0 ? std::to_string(above)
                    : std::to_string(below) + " or " + std::to_string(above);
}

// The numbers of devices nearest to `devices` that the heads can be split over: with `square`, into
// the root of it.
std::string NearestFor(std::int64_t heads, std::int64_t parts, bool square) {
  std::int64_t below = parts;
  while (below > 1 && heads % below != 0) --below;
  std::int64_t above = parts;
  while (above < heads && heads % above != 0) ++above;
  const auto devices = [square](std::int64_t side) {
    return std::to_string(square ? side * side : side);
  };
  if (heads % above != 0) return devices(below);
  return devices(below) + " or " + devices(above);
}

std::string NearestMultiples(std::int64_t value, std::int64_t of) {
  const std::int64_t below = value / of * of;
  const std::string above = std::to_string(below + of);
  return below == 0 ? above : std::to_string(below) + " or " + above;
}

absl::StatusOr<collective::MeshShape> ShapeOf(const MeshOptions& mesh) {
  if (mesh.kind == MeshKind::kNone) {
    if (mesh.devices > 1) {
      return Wrong(kDevices, "found " + std::to_string(mesh.devices) +
                                 ", but model.options.mesh.kind is none; allowed: 1, or the kind "
                                 "1d or 2d");
    }
    return collective::MeshShape{};
  }
  if (mesh.devices < 1 || mesh.devices > kMeshDevicesMax) {
    return Wrong(kDevices, "found " + std::to_string(mesh.devices) + "; allowed: 1 to " +
                               std::to_string(kMeshDevicesMax));
  }
  if (mesh.kind == MeshKind::k1d) {
    return collective::MeshShape{.rows = 1, .columns = static_cast<int>(mesh.devices)};
  }
  const auto side = static_cast<int>(std::lround(std::sqrt(static_cast<double>(mesh.devices))));
  if (static_cast<std::uint32_t>(side * side) != mesh.devices) {
    return Wrong(kDevices, "found " + std::to_string(mesh.devices) +
                               ", but a 2d mesh has as many rows as columns; nearest: " +
                               NearestSquares(mesh.devices) + ", or the kind 1d");
  }
  return collective::MeshShape{.rows = side, .columns = side};
}

// The layer that a tensor is of: "qkv" of "blocks.3.qkv.weight".
std::string LayerOf(const std::string& name) {
  const std::size_t end = name.rfind('.');
  TACTUS_CHECK(end != std::string::npos);
  const std::size_t begin = name.rfind('.', end - 1);
  return begin == std::string::npos ? name.substr(0, end) : name.substr(begin + 1, end - begin - 1);
}

bool IsNorm(const std::string& layer) { return layer.starts_with("norm"); }

Part GridPart(const std::string& layer, Part part, const Cut& i, const Cut& j) {
  if (layer == "token") {
    part.rows = i;
    part.columns = j;
  } else if (layer == "position") {
    part.columns = j;
    part.shared_by_column = true;
  } else if (part.dense.size() == 2) {
    part.rows = j;
    part.columns = i;
  } else {
    part.rows = j;
    part.shared_by_column = true;
  }
  return part;
}

Part LinePart(const std::string& layer, Part part, const Cut& j) {
  if (layer == "out" || layer == "down") {
    if (part.dense.size() == 2) part.columns = j;
  } else if (layer != "position" && !IsNorm(layer)) {
    part.rows = j;
  }
  return part;
}

}  // namespace

std::vector<std::int64_t> Part::Shape() const {
  const std::int64_t own_rows = groups * Longest(RowsOf(*this) / groups, rows.parts);
  if (dense.size() == 1) return {own_rows};
  return {own_rows, Longest(ColumnsOf(*this), columns.parts)};
}

std::uint64_t Part::CountReal() const {
  std::uint64_t count = 0;
  ForEachRun(*this, [&count](std::size_t, std::size_t, std::size_t length) { count += length; });
  return count;
}

void CopyPart(const Part& part, std::span<const float> dense, std::span<float> block) {
  CheckSizes(part, dense.size(), block.size());
  std::ranges::fill(block, 0.0F);
  ForEachRun(part, [&](std::size_t from, std::size_t to, std::size_t length) {
    std::ranges::copy(dense.subspan(from, length), block.subspan(to, length).begin());
  });
}

void PlacePart(const Part& part, std::span<const float> block, std::span<float> dense) {
  CheckSizes(part, dense.size(), block.size());
  ForEachRun(part, [&](std::size_t to, std::size_t from, std::size_t length) {
    std::ranges::copy(block.subspan(from, length), dense.subspan(to, length).begin());
  });
}

absl::StatusOr<collective::MeshShape> MeshShapeOf(const ModelOptions& options) {
  const absl::StatusOr<collective::MeshShape> shape = ShapeOf(options.mesh);
  if (!shape.ok() || options.mesh.kind == MeshKind::kNone) return shape;
  if (options.builtin != "bytes-lm") {
    return Wrong("model.options.mesh.kind",
                 "only bytes-lm can be split over devices; allowed: none");
  }
  const absl::StatusOr<BytesLmSizes> sizes = ReadBytesLmSizes(options);
  if (!sizes.ok()) return sizes.status();
  const std::int64_t heads = sizes->heads;
  const std::int64_t parts = shape->columns;
  if (heads % parts != 0) {
    return Wrong("model.options.heads",
                 "found " + std::to_string(heads) + ", which cannot be split in " +
                     std::to_string(parts) + "; nearest: " + NearestMultiples(heads, parts) +
                     ", or model.options.mesh.devices " +
                     NearestFor(heads, parts, options.mesh.kind == MeshKind::k2d));
  }
  return shape;
}

Part PartOf(const std::string& name, const std::vector<std::int64_t>& dense, MeshKind kind,
            const collective::MeshShape& shape, const collective::Place& place) {
  TACTUS_CHECK(dense.size() == 1 || dense.size() == 2);
  const std::string layer = LayerOf(name);
  const Part whole{.dense = dense, .groups = layer == "qkv" ? 3 : 1};
  const Cut j{.parts = shape.columns, .index = place.column};
  if (kind != MeshKind::k2d) return LinePart(layer, whole, j);
  return GridPart(layer, whole, {.parts = shape.rows, .index = place.row}, j);
}

}  // namespace tactus::model
