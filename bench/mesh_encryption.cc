// What encryption costs the workers' mesh: all-reduces of members over TCP on this host's loopback,
// one thread each, plain and encrypted, alternating; and how long a group takes to meet. Prints a
// row for each size of the vector.
//
// usage: bench_mesh [MEMBERS [ROUNDS]]

#include <algorithm>
#include <array>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "agent/collective/tcp_transport.h"
#include "base/check.h"

namespace tactus {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kWarmUpRounds = 2;
constexpr std::array<std::size_t, 4> kKibibytes = {4, 256, 4 << 10, 64 << 10};

Instant Now() { return Instant(Clock::now().time_since_epoch()); }

// [s]
struct Pair {
  double plain = 0;
  double encrypted = 0;
};

// What the members share.
struct Meeting {
  Meeting(std::size_t members_count, std::size_t rounds_count)
      : members(members_count),
        rounds(rounds_count),
        endpoints(members_count),
        all(static_cast<std::ptrdiff_t>(members_count)),
        meets(rounds_count),
        sums(kKibibytes.size(), std::vector<Pair>(rounds_count)) {}

  const std::size_t members;
  const std::size_t rounds;
  std::vector<std::string> endpoints;
  std::barrier<> all;
  std::vector<Pair> meets;
  std::vector<std::vector<Pair>> sums;  // by size
};

class Member {
 public:
  Member(std::size_t rank, Meeting& meeting) : rank_(rank), meeting_(meeting) {}

  void Run() {
    std::unique_ptr<collective::Transport> plain, encrypted;
    for (Pair& pair : meeting_.meets) {
      Note(pair.plain, Timed([&] { plain = Connect(false); }));
      Note(pair.encrypted, Timed([&] { encrypted = Connect(true); }));
    }
    for (std::size_t size = 0; size < kKibibytes.size(); ++size) {
      std::vector<float> vector((kKibibytes[size] << 10) / sizeof(float), 1.0f);
      const auto reduce = [&](collective::Transport& transport) {
        TACTUS_CHECK(transport.StartAllReduceSum(vector)->Wait().progress ==
                     collective::Progress::kDone);
      };
      for (std::size_t round = 0; round < kWarmUpRounds + meeting_.rounds; ++round) {
        const double one = Timed([&] { reduce(*plain); });
        const double other = Timed([&] { reduce(*encrypted); });
        if (round < kWarmUpRounds) continue;
        Pair& pair = meeting_.sums[size][round - kWarmUpRounds];
        Note(pair.plain, one);
        Note(pair.encrypted, other);
      }
    }
  }

 private:
  void Note(double& place, double seconds) const {
    if (rank_ == 0) place = seconds;
  }

  std::unique_ptr<collective::Transport> Connect(bool encrypted) {
    const auto exchange = [this](const std::string& own) {
      meeting_.endpoints[rank_] = own;
      meeting_.all.arrive_and_wait();
      std::vector<std::string> all = meeting_.endpoints;
      meeting_.all.arrive_and_wait();
      return all;
    };
    collective::ConnectedTransport connected =
        collective::ConnectTcp({.rank = static_cast<int>(rank_),
                                .size = static_cast<int>(meeting_.members),
                                .address = "127.0.0.1",
                                .exchange = exchange,
                                .now = Now,
                                .generation = 1,
                                .secret = "of this benchmark",
                                .encrypted = encrypted});
    if (connected.transport == nullptr) {
      std::fprintf(stderr, "bench_mesh: %s\n", connected.reason.c_str());
      std::exit(1);
    }
    return std::move(connected.transport);
  }

  // From when all have come until all are done. [s]
  template <typename Work>
  double Timed(Work work) {
    meeting_.all.arrive_and_wait();
    const Clock::time_point begun = Clock::now();
    work();
    meeting_.all.arrive_and_wait();
    return std::chrono::duration<double>(Clock::now() - begun).count();
  }

  const std::size_t rank_;
  Meeting& meeting_;
};

// Smallest, middle and largest.
std::array<double, 3> SpreadOf(std::vector<double> values) {
  std::ranges::sort(values);
  return {values.front(), values[values.size() / 2], values.back()};
}

// `bytes`: of one turn; 0: the figures are milliseconds.
void PrintRow(const std::string& what, const std::vector<Pair>& pairs, double bytes) {
  std::vector<double> plain, encrypted, ratios;
  for (const Pair& pair : pairs) {
    plain.push_back(bytes > 0 ? bytes / pair.plain * 1e-6 : 1e3 * pair.plain);
    encrypted.push_back(bytes > 0 ? bytes / pair.encrypted * 1e-6 : 1e3 * pair.encrypted);
    ratios.push_back(encrypted.back() / plain.back());
  }
  const std::array<double, 3> ratio = SpreadOf(ratios);
  std::printf("%-22s %10.1f %10.1f   %6.2f %6.2f %6.2f\n", what.c_str(), SpreadOf(plain)[1],
              SpreadOf(encrypted)[1], ratio[1], ratio[0], ratio[2]);
}

void Run(std::size_t members, std::size_t rounds) {
  Meeting meeting(members, rounds);
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < members; ++rank) {
    threads.emplace_back([&meeting, rank] { Member(rank, meeting).Run(); });
  }
  for (std::thread& thread : threads) thread.join();
  std::printf("%zu members over loopback, %zu turns of each, alternating\n", members, rounds);
  std::printf("%-22s %10s %10s   %6s %6s %6s\n", "", "plain", "encrypted", "ratio", "min", "max");
  PrintRow("meet, ms", meeting.meets, 0);
  for (std::size_t size = 0; size < kKibibytes.size(); ++size) {
    PrintRow(std::to_string(kKibibytes[size]) + " KiB, MB/s", meeting.sums[size],
             static_cast<double>(kKibibytes[size] << 10));
  }
}

}  // namespace
}  // namespace tactus

int main(int argc, char** argv) {
  const long members = argc > 1 ? std::strtol(argv[1], nullptr, 10) : 2;
  const long rounds = argc > 2 ? std::strtol(argv[2], nullptr, 10) : 25;
  if (argc > 3 || members < 2 || members > 256 || rounds < 1) {
    std::fprintf(stderr, "usage: bench_mesh [MEMBERS [ROUNDS]]; MEMBERS is 2 to 256\n");
    return 64;
  }
  tactus::Run(static_cast<std::size_t>(members), static_cast<std::size_t>(rounds));
  return 0;
}
