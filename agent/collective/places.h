// A member's place in replicas that are meshes of devices, and whom it shares a row, a column or a
// place with.
//
// Ranks fill one mesh after the other, each row by row. Two different members share at most one of
// row, column and place: so one more connection between each two is enough for all three groups.
//
// Source: [optimus], rank = mesh * p + i * q + j; primary-algorithms.md 5.b.

#pragma once

#include <cstdint>
#include <vector>

namespace tactus::collective {

// Grows whenever workers of before and after a change would not train one model together: what
// their collectives are, and in which order, how samples are shared within a replica.
inline constexpr std::uint32_t kMeshVersion = 2;

// How a replica's devices are laid out. 1 x 1: a device that holds the whole model; 1 x n: one that
// is split in one dimension.
struct MeshShape {
  int rows = 1;     // >= 1
  int columns = 1;  // >= 1

  int devices() const { return rows * columns; }
  bool operator==(const MeshShape&) const = default;
};

struct Place {
  int replica = 0;
  int row = 0;     // its rank within the column's group
  int column = 0;  // its rank within the row's group

  bool operator==(const Place&) const = default;
};

// rank: >= 0.
Place PlaceOf(int rank, const MeshShape& shape);
int RankOf(const Place& place, const MeshShape& shape);

// The ranks that `rank` forms a group with, itself included, in the order of their ranks there.
std::vector<int> RowOf(int rank, const MeshShape& shape);
std::vector<int> ColumnOf(int rank, const MeshShape& shape);
// Of `size` members, a multiple of shape.devices(): those at the same place of all replicas.
std::vector<int> EqualPlacesOf(int rank, const MeshShape& shape, int size);

}  // namespace tactus::collective
