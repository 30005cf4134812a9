#include "tests/agent/engine/encoded_group.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <thread>
#include <utility>

#include "agent/collective/in_process.h"
#include "agent/collective/rank_sum.h"
#include "agent/collective/tcp_transport.h"
#include "base/check.h"
#include "base/rng.h"
#include "tests/agent/collective/endpoint_board.h"

namespace tactus::engine {
namespace {

void OnThreads(std::size_t members, const std::function<void(std::size_t rank)>& body) {
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < members; ++rank) threads.emplace_back(body, rank);
  for (std::thread& thread : threads) thread.join();
}

std::vector<std::unique_ptr<collective::Transport>> MeetOverTcp(int size) {
  collective::EndpointBoard board(size);
  std::vector<std::unique_ptr<collective::Transport>> members(static_cast<std::size_t>(size));
  OnThreads(members.size(), [&](std::size_t index) {
    const int rank = static_cast<int>(index);
    collective::ConnectedTransport connected = collective::ConnectTcp(
        {.rank = rank,
         .size = size,
         .address = "127.0.0.1",
         .exchange = [&, rank](const std::string& own) { return board.Exchange(rank, own); },
         .now = [] { return Instant(); }});
    TACTUS_CHECK(connected.transport != nullptr);
    members[index] = std::move(connected.transport);
  });
  return members;
}

}  // namespace

EncodedGroup::EncodedGroup(Setup setup) : setup_(std::move(setup)) {
  cuda::AssignOffsets(setup_.segments);
  Regroup(setup_.members);
}

void EncodedGroup::Regroup(int members) {
  auto transports = setup_.meeting == Meeting::kTcp
                        ? MeetOverTcp(members)
                        : collective::MakeInProcessGroup(members, [] { return Instant(); });
  members_.resize(transports.size());
  for (std::size_t rank = 0; rank < members_.size(); ++rank) {
    Member& member = members_[rank];
    member.transport = std::move(transports[rank]);
    if (member.encodings == nullptr) {
      member.device = cuda::MakeHostDevice("cpu:0");
      member.encodings =
          std::make_unique<Encodings>(setup_.options, *member.device, setup_.segments);
    }
    member.encodings->Meet({.nodes = setup_.nodes});
  }
}

std::vector<Piece> EncodedGroup::PiecesOf(std::vector<float>& buffer) const {
  const std::size_t length = cuda::FlatLength(setup_.segments);
  std::vector<std::size_t> begins;
  for (std::size_t i = 0; i < setup_.pieces; ++i) {
    begins.push_back(setup_.segments[setup_.segments.size() * i / setup_.pieces].offset);
  }
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < begins.size(); ++i) {
    const bool last = i + 1 == begins.size();
    const std::size_t end = last ? length : begins[i + 1];
    pieces.push_back({.offset = begins[i],
                      .values = std::span(buffer).subspan(begins[i], end - begins[i]),
                      .lanes = std::span(buffer).subspan(end, last ? kLanes : 0)});
  }
  return pieces;
}

std::vector<std::vector<float>> EncodedGroup::Sum(std::vector<std::vector<float>> buffers,
                                                  const EncodedRound& round,
                                                  const SharedMomentum& momentum,
                                                  const CarriedMomentum& carried) {
  OnThreads(members_.size(), [&](std::size_t rank) {
    Member& member = members_[rank];
    member.encodings->Open(round, momentum, carried);
    Encoding& encoding = member.encodings->For(setup_.kind);
    const std::vector<Piece> pieces = PiecesOf(buffers[rank]);
    std::vector<std::unique_ptr<collective::Collective>> exchanges;
    for (const Piece& piece : pieces) {
      encoding.Prepare(piece);
      exchanges.push_back(encoding.Exchange(*member.transport, piece));
    }
    member.bytes = 0;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const collective::Completion completion = exchanges[i]->Wait();
      TACTUS_CHECK(completion.progress == collective::Progress::kDone);
      encoding.Restore(pieces[i]);
      member.bytes += encoding.Bytes(pieces[i]);
    }
  });
  return buffers;
}

void EncodedGroup::Settle(bool applied) {
  for (Member& member : members_) member.encodings->Settle(applied);
}

std::vector<float> EncodedGroup::LeftOver(int rank, std::size_t which) {
  const Residual residual =
      members_[static_cast<std::size_t>(rank)].encodings->Residuals().at(which);
  return {residual.values.begin(), residual.values.end()};
}

void EncodedGroup::SetLeftOver(int rank, std::size_t which, const std::vector<float>& values) {
  const Residual residual =
      members_[static_cast<std::size_t>(rank)].encodings->Residuals().at(which);
  std::ranges::copy(values, residual.values.begin());
}

std::vector<std::vector<float>> NormalBuffers(const EncodedGroup& group, int members,
                                              std::uint64_t seed, float scale) {
  std::vector<std::vector<float>> buffers;
  for (int rank = 0; rank < members; ++rank) {
    Rng rng = Rng(seed).Fork("rank " + std::to_string(rank));
    std::vector<float>& buffer = buffers.emplace_back(group.length());
    for (const cuda::Segment& segment : group.segments()) {
      for (std::size_t i = 0; i < segment.length; ++i) {
        buffer[segment.offset + i] = scale * static_cast<float>(rng.Normal());
      }
    }
    for (std::size_t lane = 0; lane < EncodedGroup::kLanes; ++lane) {
      buffer[buffer.size() - 1 - lane] = static_cast<float>(rng.Below(1000)) / 3;
    }
  }
  return buffers;
}

std::vector<std::vector<float>> WholeBuffers(const EncodedGroup& group, int members,
                                             std::uint64_t seed) {
  auto buffers = NormalBuffers(group, members, seed, 8);
  for (std::vector<float>& buffer : buffers) {
    for (float& value : buffer) value = std::nearbyint(value);
  }
  return buffers;
}

std::vector<float> DenseSum(const std::vector<std::vector<float>>& buffers) {
  std::vector<const float*> sources;
  for (const std::vector<float>& buffer : buffers) sources.push_back(buffer.data());
  std::vector<float> sum(buffers.front().size());
  collective::SumInRankOrder(sources, sum);
  return sum;
}

bool AllAlike(const std::vector<std::vector<float>>& buffers) {
  return std::ranges::all_of(buffers, [&](const std::vector<float>& buffer) {
    return buffer.size() == buffers.front().size() &&
           std::memcmp(buffer.data(), buffers.front().data(), buffer.size() * sizeof(float)) == 0;
  });
}

}  // namespace tactus::engine
