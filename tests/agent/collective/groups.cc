#include "tests/agent/collective/groups.h"

#include <array>
#include <cstring>
#include <thread>

#include "agent/collective/in_process.h"
#include "base/check.h"
#include "base/rng.h"
#include "tests/agent/collective/endpoint_board.h"

namespace tactus::collective {
std::string NameOf(const GroupShape& shape) {
  const std::array<const char*, 3> names = {"InProcess", "Tcp", "Tls"};
  return names[static_cast<std::size_t>(shape.kind)] + std::to_string(shape.size);
}

void PrintTo(const GroupShape& shape, std::ostream* out) { *out << NameOf(shape); }

std::vector<GroupShape> ShapesFrom(int size_min, int size_max) {
  std::vector<GroupShape> shapes;
  for (int size = size_min; size <= size_max; ++size) {
    shapes.push_back({.kind = Kind::kInProcess, .size = size});
    shapes.push_back({.kind = Kind::kTcp, .size = size});
    shapes.push_back({.kind = Kind::kTls, .size = size});
  }
  return shapes;
}

std::vector<TcpMeeting> MeetInMemory(int size, bool encrypted) {
  const auto board = std::make_shared<EndpointBoard>(size);
  std::vector<TcpMeeting> meetings;
  for (int rank = 0; rank < size; ++rank) {
    TcpMeeting meeting;
    meeting.rank = rank;
    meeting.size = size;
    meeting.address = "127.0.0.1";
    meeting.exchange = [board, rank](const std::string& own) { return board->Exchange(rank, own); };
    meeting.now = [] { return kTestNow; };
    meeting.generation = 7;
    meeting.secret = "a secret of this generation alone";
    meeting.encrypted = encrypted;
    meetings.push_back(meeting);
  }
  return meetings;
}

std::vector<std::unique_ptr<Transport>> MakeGroup(const GroupShape& shape) {
  if (shape.kind == Kind::kInProcess) {
    return MakeInProcessGroup(shape.size, [] { return kTestNow; });
  }
  const std::vector<TcpMeeting> meetings = MeetInMemory(shape.size, shape.kind == Kind::kTls);
  std::vector<std::unique_ptr<Transport>> members(meetings.size());
  OnEveryRank(shape.size, [&](int rank) {
    const auto index = static_cast<std::size_t>(rank);
    ConnectedTransport connected = ConnectTcp(meetings[index]);
    TACTUS_CHECK(connected.transport != nullptr);
    members[index] = std::move(connected.transport);
  });
  return members;
}

void OnEveryRank(int size, const std::function<void(int rank)>& body) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) threads.emplace_back(body, rank);
  for (std::thread& thread : threads) thread.join();
}

std::vector<float> RandomValues(std::size_t length, std::uint64_t seed) {
  Rng rng = Rng(seed).Fork("values");
  std::vector<float> values(length);
  for (float& value : values) {
    const auto magnitude = static_cast<float>(1 << rng.Below(12));
    value = magnitude * static_cast<float>(rng.Uniform() - 0.5);
  }
  return values;
}

std::vector<float> ExpectedSum(int size, std::size_t length, std::uint64_t seed) {
  std::vector<float> sum = RandomValues(length, seed);
  for (int rank = 1; rank < size; ++rank) {
    const std::vector<float> values = RandomValues(length, seed + static_cast<std::uint64_t>(rank));
    for (std::size_t i = 0; i < length; ++i) sum[i] += values[i];
  }
  return sum;
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return false;
  return a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace tactus::collective
