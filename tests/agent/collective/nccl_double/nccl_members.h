// Groups of NCCL transports on the doubles of NCCL and of the CUDA runtime.

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "agent/collective/nccl_transport.h"
#include "agent/collective/transport.h"
#include "base/time.h"
#include "gtest/gtest.h"
#include "tests/agent/collective/groups.h"

namespace tactus::collective {

// Floats in the memory of the double's device, which the host cannot touch. They are freed when the
// test ends.
class DeviceFloats {
 public:
  explicit DeviceFloats(const std::vector<float>& values);
  DeviceFloats(const DeviceFloats&) = delete;
  DeviceFloats& operator=(const DeviceFloats&) = delete;
  ~DeviceFloats();

  std::span<float> span() const { return {data_, length_}; }
  std::span<std::byte> bytes() const { return std::as_writable_bytes(span()); }
  std::vector<float> values() const;

 private:
  float* data_ = nullptr;
  const std::size_t length_;
};

// A clock that the test moves. Any thread.
class HandClock {
 public:
  Instant Now() const { return Instant(Duration(nanoseconds_)); }
  void Advance(Duration duration) { nanoseconds_ += duration.count(); }

 private:
  std::atomic<std::int64_t> nanoseconds_ = 0;
};

// The sum of RandomValues(length, seed + rank) by the in-process transport.
std::vector<float> SumInProcess(int size, std::size_t length, std::uint64_t seed);

// A machine of nine devices, and the members of a group, one a device. At the end of a test nothing
// may be left of them, and NCCL must not have been misused.
class NcclMembers : public ::testing::Test {
 protected:
  static constexpr int kSizeMax = 9;
  using Adjust = std::function<void(NcclMeeting& meeting)>;

  NcclMembers();
  ~NcclMembers() override;

  // Meetings whose members exchange their endpoints in memory and signal in the process.
  std::vector<NcclMeeting> Meetings(int size);

  // Connects the members, each on a thread of its own; `adjust` may change the meetings.
  void Connect(int size, const Adjust& adjust = nullptr);

  int size() const { return static_cast<int>(members_.size()); }
  Transport& member(int rank) { return *members_[static_cast<std::size_t>(rank)].transport; }
  const std::string& reason(int rank) { return members_[static_cast<std::size_t>(rank)].reason; }
  void Leave(int rank) { members_[static_cast<std::size_t>(rank)].transport = nullptr; }
  void LeaveAll();

  // All members reduce; says whether each of them got the in-process transport's bits.
  bool EveryoneGetsTheSum(std::size_t length, std::uint64_t seed);

  // OnEveryRank while the clock goes on, up to a minute of its time, so that grace passes and no
  // limit does.
  void OnEveryRankInTime(const std::function<void(int rank)>& body) {
    OnEveryRankInTime(size(), body);
  }
  void OnEveryRankInTime(int size, const std::function<void(int rank)>& body);

  // Waits until `condition` holds, at most a minute of real time.
  static bool Eventually(const std::function<bool()>& condition);

  // Whether the collective is still running after the members' threads have gone on for a while.
  // Requires: a group that is not over.
  static bool StaysRunning(Collective& collective);

  // The test expects complaints and has looked at them.
  void ForgiveComplaints() { complaints_forgiven_ = true; }

  HandClock clock_;
  std::uint64_t generation_ = 1;

 private:
  std::vector<ConnectedTransport> members_;
  bool complaints_forgiven_ = false;
};

}  // namespace tactus::collective
