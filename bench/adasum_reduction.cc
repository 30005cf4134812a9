// How long Adasum takes against a plain all-reduce: four members over TCP on this host's loopback,
// one thread each, alternating. Prints a row for each size of the vector.

#include <algorithm>
#include <array>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "agent/collective/adasum.h"
#include "agent/collective/tcp_transport.h"
#include "base/check.h"
#include "base/rng.h"
#include "cuda/device.h"
#include "cuda/ops/segments.h"

namespace tactus {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMembers = 4;
constexpr std::size_t kSegments = 64;  // as many tensors as a small convolutional network has
constexpr std::size_t kRounds = 25;
constexpr std::size_t kWarmUpRounds = 3;
constexpr std::array<std::size_t, 3> kMebibytes = {1, 4, 16};

// The times of one round. [s]
struct Round {
  double plain_seconds = 0;
  double adasum_seconds = 0;
};

// What the members share.
struct Meeting {
  std::vector<std::string> endpoints = std::vector<std::string>(kMembers);
  std::barrier<> all = std::barrier<>(kMembers);
  std::vector<Round> rounds = std::vector<Round>(kRounds);
};

Instant Now() { return Instant(Clock::now().time_since_epoch()); }

cuda::SegmentTable EqualSegments(std::size_t length) {
  cuda::SegmentTable segments;
  for (std::size_t i = 0; i < kSegments; ++i) {
    segments.push_back({.offset = i * length / kSegments, .length = length / kSegments});
  }
  return segments;
}

class Member {
 public:
  Member(int rank, std::size_t length, Meeting& meeting)
      : meeting_(meeting),
        source_(length),
        vector_(length),
        device_(cuda::MakeHostDevice("cpu:0")),
        transport_(Connect(rank)),
        adasum_(*transport_, *device_, EqualSegments(length), {}) {
    Rng rng(static_cast<std::uint64_t>(rank));
    for (float& value : source_) value = static_cast<float>(rng.Normal());
  }

  void Run() {
    for (std::size_t round = 0; round < kWarmUpRounds + kRounds; ++round) {
      const double plain = Timed([&] { return transport_->StartAllReduceSum(vector_)->Wait(); });
      const double adasum = Timed([&] {
        adasum_.Start(vector_, {});
        return adasum_.Wait();
      });
      if (transport_->rank() == 0 && round >= kWarmUpRounds) {
        meeting_.rounds[round - kWarmUpRounds] = {.plain_seconds = plain, .adasum_seconds = adasum};
      }
    }
  }

 private:
  std::unique_ptr<collective::Transport> Connect(int rank) {
    const auto exchange = [this, rank](const std::string& own) {
      meeting_.endpoints[static_cast<std::size_t>(rank)] = own;
      meeting_.all.arrive_and_wait();
      return meeting_.endpoints;
    };
    collective::ConnectedTransport connected =
        collective::ConnectTcp({.rank = rank,
                                .size = static_cast<int>(kMembers),
                                .address = "127.0.0.1",
                                .exchange = exchange,
                                .now = Now});
    TACTUS_CHECK(connected.transport != nullptr);
    return std::move(connected.transport);
  }

  // From when all have come until all are done. [s]
  template <typename Reduction>
  double Timed(Reduction reduction) {
    std::ranges::copy(source_, vector_.begin());
    meeting_.all.arrive_and_wait();
    const Clock::time_point begun = Clock::now();
    TACTUS_CHECK(reduction().progress == collective::Progress::kDone);
    meeting_.all.arrive_and_wait();
    return std::chrono::duration<double>(Clock::now() - begun).count();
  }

  Meeting& meeting_;
  std::vector<float> source_;
  std::vector<float> vector_;
  const std::unique_ptr<cuda::Device> device_;
  const std::unique_ptr<collective::Transport> transport_;
  collective::AdasumReduction adasum_;
};

// Smallest, middle and largest.
std::array<double, 3> SpreadOf(std::vector<double> values) {
  std::ranges::sort(values);
  return {values.front(), values[values.size() / 2], values.back()};
}

void PrintRow(std::size_t mebibytes) {
  Meeting meeting;
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < kMembers; ++rank) {
    threads.emplace_back([&meeting, rank, mebibytes] {
      const std::size_t length = (mebibytes << 20) / sizeof(float);
      Member(static_cast<int>(rank), length, meeting).Run();
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<double> plain, adasum, ratios;
  for (const Round& round : meeting.rounds) {
    plain.push_back(1e3 * round.plain_seconds);
    adasum.push_back(1e3 * round.adasum_seconds);
    ratios.push_back(round.adasum_seconds / round.plain_seconds);
  }
  const std::array<double, 3> ratio = SpreadOf(ratios);
  std::printf("%4zu  %13.2f  %9.2f  %5.2f  %5.2f  %5.2f\n", mebibytes, SpreadOf(plain)[1],
              SpreadOf(adasum)[1], ratio[0], ratio[1], ratio[2]);
}

}  // namespace
}  // namespace tactus

int main() {
  std::printf("%zu members over loopback, %zu rounds\n", tactus::kMembers, tactus::kRounds);
  std::printf(" MiB  all-reduce ms  Adasum ms  ratio: min  median  max\n");
  for (const std::size_t mebibytes : tactus::kMebibytes) tactus::PrintRow(mebibytes);
  return 0;
}
