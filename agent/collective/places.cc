#include "agent/collective/places.h"

#include "base/check.h"

namespace tactus::collective {

Place PlaceOf(int rank, const MeshShape& shape) {
  TACTUS_CHECK(rank >= 0 && shape.rows >= 1 && shape.columns >= 1);
  const int within = rank % shape.devices();
  return {.replica = rank / shape.devices(),
          .row = within / shape.columns,
          .column = within % shape.columns};
}

int RankOf(const Place& place, const MeshShape& shape) {
  return place.replica * shape.devices() + place.row * shape.columns + place.column;
}

std::vector<int> RowOf(int rank, const MeshShape& shape) {
  Place place = PlaceOf(rank, shape);
  std::vector<int> ranks;
  for (place.column = 0; place.column < shape.columns; ++place.column) {
    ranks.push_back(RankOf(place, shape));
  }
  return ranks;
}

std::vector<int> ColumnOf(int rank, const MeshShape& shape) {
  Place place = PlaceOf(rank, shape);
  std::vector<int> ranks;
  for (place.row = 0; place.row < shape.rows; ++place.row) {
    ranks.push_back(RankOf(place, shape));
  }
  return ranks;
}

std::vector<int> EqualPlacesOf(int rank, const MeshShape& shape, int size) {
  TACTUS_CHECK(rank < size && size % shape.devices() == 0);
  Place place = PlaceOf(rank, shape);
  std::vector<int> ranks;
  for (place.replica = 0; place.replica < size / shape.devices(); ++place.replica) {
    ranks.push_back(RankOf(place, shape));
  }
  return ranks;
}

}  // namespace tactus::collective
