#include "coordinator/files/disk_floor.h"

#include <sys/statvfs.h>

#include <algorithm>

#include "coordinator/access/bounds.h"

namespace tactus::service {
namespace {

constexpr std::uint64_t kFloorBytes = std::uint64_t{1} << 30;
constexpr std::uint64_t kSmallDiskShare = 20;

struct Room {
  std::uint64_t free = 0;
  std::uint64_t size = 0;
};

std::optional<Room> RoomOf(const std::string& folder) {
  struct statvfs system {};
  if (::statvfs(folder.c_str(), &system) != 0 || system.f_blocks == 0) return std::nullopt;
  return Room{.free = system.f_bavail * system.f_frsize, .size = system.f_blocks * system.f_frsize};
}

std::uint64_t FloorOf(const Room& room, const std::optional<std::uint64_t>& bytes) {
  return bytes.value_or(std::min(kFloorBytes, room.size / kSmallDiskShare));
}

std::string Mebibytes(std::uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

}  // namespace

std::uint64_t DiskFloor::floor_bytes() const {
  const std::optional<Room> room = RoomOf(folder_);
  return room ? FloorOf(*room, bytes_) : 0;
}

absl::Status DiskFloor::Admit(const std::string& what, std::uint64_t bytes) const {
  const std::optional<Room> room = RoomOf(folder_);
  if (!room) return absl::OkStatus();
  const std::uint64_t floor = FloorOf(*room, bytes_);
  if (room->free >= floor && room->free - floor >= bytes) return absl::OkStatus();
  return access::Beyond(
      access::Bound::kDisk,
      what + ": the coordinator's disk has " + Mebibytes(room->free) + " left, and " +
          (bytes > 0 ? Mebibytes(bytes) + " more are wanted beside the " : std::string("the ")) +
          Mebibytes(floor) + (bytes > 0 ? " that are" : " below which nothing is accepted are") +
          " kept for checkpoints and results (--disk-floor); make room, or delete jobs");
}

}  // namespace tactus::service
