#include "agent/collective/operation.h"

#include <algorithm>
#include <vector>

#include "agent/collective/rank_sum.h"
#include "base/check.h"

namespace tactus::collective {
namespace {

// The root's buffer, or that of rank 0, to all.
void CopyToAll(std::span<const Operation> operations) {
  const int root = operations.front().partner;
  const std::span<float> from = operations[static_cast<std::size_t>(root)].buffer;
  for (const Operation& operation : operations) {
    TACTUS_CHECK(operation.partner == root);
    if (operation.buffer.data() == from.data()) continue;
    std::ranges::copy(from, operation.buffer.begin());
  }
}

void SumIntoAll(std::span<const Operation> operations) {
  if (operations.size() == 1) return;  // who is alone has the sum
  std::vector<const float*> sources;
  for (const Operation& operation : operations) sources.push_back(operation.buffer.data());
  SumInRankOrder(sources, operations.front().buffer);
  CopyToAll(operations);
}

void Swap(const Operation& a, const Operation& b) {
  TACTUS_CHECK(a.outgoing.size() == b.incoming.size());
  TACTUS_CHECK(b.outgoing.size() == a.incoming.size());
  std::ranges::copy(a.outgoing, b.incoming.begin());
  std::ranges::copy(b.outgoing, a.incoming.begin());
}

// A turn's messages are all there once every member has begun it.
void Converse(std::span<const Operation> operations) {
  const std::size_t turns = operations.front().conversation->turns();
  for (std::size_t turn = 0; turn < turns; ++turn) {
    for (const Operation& each : operations) each.conversation->Begin(turn);
    for (std::size_t from = 0; from < operations.size(); ++from) {
      for (std::size_t to = 0; to < operations.size(); ++to) {
        if (from == to) continue;
        const std::span<const std::byte> message =
            operations[from].conversation->Outgoing(turn, static_cast<int>(to));
        const std::span<std::byte> place =
            operations[to].conversation->Incoming(turn, static_cast<int>(from));
        TACTUS_CHECK(message.size() == place.size());
        std::ranges::copy(message, place.begin());
      }
    }
  }
  for (const Operation& each : operations) each.conversation->End();
}

}  // namespace

void CarryOut(std::span<const Operation> operations) {
  const Operation& first = operations.front();
  for (const Operation& operation : operations) {
    TACTUS_CHECK(operation.kind == first.kind);
    TACTUS_CHECK(operation.buffer.size() == first.buffer.size());
  }
  switch (first.kind) {
    case Operation::Kind::kAllReduceSum:
      return SumIntoAll(operations);
    case Operation::Kind::kBroadcast:
      return CopyToAll(operations);
    case Operation::Kind::kBarrier:
      return;
    case Operation::Kind::kExchange:
      return Swap(first, operations.back());
    case Operation::Kind::kConversation:
      return Converse(operations);
    case Operation::Kind::kRootSum:
    case Operation::Kind::kAllGather:
      TACTUS_CHECK(false);  // they are conversations
  }
}

}  // namespace tactus::collective
