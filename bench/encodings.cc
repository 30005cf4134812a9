// What encodings cost and what they save: a sum of 25 M values between four members, all of whose
// work one core does. Prints, for each encoding, what a member sends in a round and how fast it
// encodes, sums and decodes, beside a plain copy of as many bytes in the same run; and how far off
// the sum of the last round is, which of AdaComp's, of signs and of the sketch's comes in later
// ones.

#include "agent/engine/combine/encodings.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "agent/collective/in_process.h"
#include "base/check.h"
#include "base/rng.h"
#include "cuda/device.h"
#include "cuda/ops/segments.h"
#include "cuda/ops/vector.h"

namespace tactus {
namespace {

constexpr int kMembers = 4;
constexpr std::size_t kTensors = 100;
constexpr std::int64_t kSide = 500;  // of a tensor: 100 of 500 x 500 are 25 M values
constexpr int kRounds = 5;

// Of the processor, so that what else the machine does shows little.
double SecondsSince(std::clock_t begin) {
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

double MedianOf(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

cuda::SegmentTable Model() {
  cuda::SegmentTable segments;
  for (std::size_t i = 0; i < kTensors; ++i) {
    segments.push_back({.name = "tensor " + std::to_string(i),
                        .length = static_cast<std::size_t>(kSide * kSide),
                        .shape = {kSide, kSide}});
  }
  cuda::AssignOffsets(segments);
  return segments;
}

// Normal within a tensor; tensors differ by some powers of two, as gradients do.
std::vector<float> Gradients(const cuda::SegmentTable& segments, int rank) {
  Rng rng(static_cast<std::uint64_t>(rank) + 1);
  Rng scales(99);
  std::vector<float> values(cuda::FlatLength(segments));
  for (const cuda::Segment& segment : segments) {
    const double scale = std::exp(scales.Normal());
    for (std::size_t i = 0; i < segment.length; ++i) {
      values[segment.offset + i] = static_cast<float>(scale * rng.Normal());
    }
  }
  return values;
}

struct Member {
  std::unique_ptr<collective::Transport> transport{};
  std::unique_ptr<cuda::Device> device = cuda::MakeHostDevice("cpu:0");
  std::unique_ptr<engine::Encodings> encodings{};
  std::vector<float> gradients{};
  std::vector<float> buffer{};
  std::vector<float> moment{};   // of an optimizer that had no gradient yet
  std::vector<float> second{};   // and is said to have frozen this
  std::vector<double> scales{};  // by which tensors come to one size
};

std::vector<Member> Members(const cuda::SegmentTable& segments) {
  std::vector<Member> members;
  for (auto& transport : collective::MakeInProcessGroup(kMembers, [] { return Instant(); })) {
    Member& member = members.emplace_back();
    member.transport = std::move(transport);
    member.encodings =
        std::make_unique<engine::Encodings>(engine::EncodingOptions{}, *member.device, segments);
    member.gradients = Gradients(segments, member.transport->rank());
    member.buffer = member.gradients;
    member.moment.resize(member.buffer.size());
    member.second.resize(member.buffer.size(), 1);
    for (const cuda::Segment& segment : segments) {
      const auto tensor =
          std::span(members.front().gradients).subspan(segment.offset, segment.length);
      member.scales.push_back(1 / std::sqrt(cuda::host::SquaredNorm(tensor)));
    }
  }
  return members;
}

engine::SharedMomentum MomentumOf(const Member& member) {
  return {.first = member.moment,
          .second = member.second,
          .scales = member.scales,
          .since = 1,
          .samples = kMembers,
          .own_samples = 1};
}

// A tensor by itself, as a bucket of 1 MiB would have it.
engine::Piece PieceOf(Member& member, const cuda::Segment& segment) {
  return {.offset = segment.offset,
          .values = std::span(member.buffer).subspan(segment.offset, segment.length)};
}

void SumPiece(std::vector<Member>& members, policies::Encoding kind, const cuda::Segment& segment) {
  std::vector<std::unique_ptr<collective::Collective>> exchanges;
  for (Member& member : members) {
    exchanges.push_back(
        member.encodings->For(kind).Exchange(*member.transport, PieceOf(member, segment)));
  }
  for (const auto& exchange : exchanges) {
    TACTUS_CHECK(exchange->Wait().progress == collective::Progress::kDone);
  }
  for (Member& member : members) member.encodings->For(kind).Restore(PieceOf(member, segment));
}

// One round of all members, on this thread. [s] of one member
double Round(std::vector<Member>& members, const cuda::SegmentTable& segments,
             policies::Encoding kind, std::uint64_t number) {
  for (Member& member : members) {
    member.buffer = member.gradients;
    member.encodings->Open({.number = number}, MomentumOf(member));
  }
  const std::clock_t begin = std::clock();
  for (const cuda::Segment& segment : segments) SumPiece(members, kind, segment);
  const double seconds = SecondsSince(begin);
  for (Member& member : members) member.encodings->Settle(true);
  return seconds / kMembers;
}

double CopySeconds(const Member& member) {
  std::vector<float> copy(member.gradients.size());
  std::vector<double> seconds;
  for (int round = 0; round <= kRounds; ++round) {
    const std::clock_t begin = std::clock();
    std::memcpy(copy.data(), member.gradients.data(), copy.size() * sizeof(float));
    seconds.push_back(SecondsSince(begin));
  }
  return MedianOf({seconds.begin() + 1, seconds.end()});
}

// Error of the sum, as a share of its norm.
double ErrorOf(const std::vector<Member>& members) {
  double error = 0;
  double norm = 0;
  for (std::size_t i = 0; i < members.front().buffer.size(); ++i) {
    double sum = 0;
    for (const Member& member : members) sum += member.gradients[i];
    const double difference = members.front().buffer[i] - sum;
    error += difference * difference;
    norm += sum * sum;
  }
  return std::sqrt(error / norm);
}

void PrintRow(std::vector<Member>& members, const cuda::SegmentTable& segments,
              policies::Encoding kind, double copy_seconds) {
  std::vector<double> seconds;
  for (int round = 0; round <= kRounds; ++round) {
    seconds.push_back(Round(members, segments, kind, static_cast<std::uint64_t>(round)));
  }
  const double each = MedianOf({seconds.begin() + 1, seconds.end()});
  Member& member = members.front();
  const auto dense = static_cast<double>(member.buffer.size() * sizeof(float));
  double payload = 0;
  for (const cuda::Segment& segment : segments) {
    payload += static_cast<double>(member.encodings->For(kind).Bytes(PieceOf(member, segment)));
  }
  constexpr double kSent = 2.0 * (kMembers - 1) / kMembers;
  std::printf("%-9s  %8.1f  %8.2f  %8.0f  %6.2f  %9.2f  %9.5f\n",
              std::string(policies::NameOf(kind)).c_str(), kSent * payload / 1e6, dense / payload,
              1e3 * each, dense / each / 1e9, copy_seconds / each, ErrorOf(members));
}

void PrintAll() {
  const cuda::SegmentTable segments = Model();
  std::vector<Member> members = Members(segments);
  const double copy_seconds = CopySeconds(members.front());
  const auto bytes = static_cast<double>(members.front().buffer.size() * sizeof(float));
  std::printf("%d members, %.1f M values; memcpy: %.1f ms, %.2f GB/s\n", kMembers, bytes / 4e6,
              1e3 * copy_seconds, bytes / copy_seconds / 1e9);
  std::printf("encoding    sent MB  x fewer  ms, core    GB/s  of memcpy      error\n");
  for (std::size_t i = 0; i < policies::kEncodingNames.size(); ++i) {
    const auto kind = static_cast<policies::Encoding>(i);
    PrintRow(members, segments, kind, copy_seconds);
  }
}

}  // namespace
}  // namespace tactus

int main() { tactus::PrintAll(); }
