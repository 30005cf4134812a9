#include "agent/collective/replicas.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "agent/collective/together.h"
#include "base/check.h"

namespace tactus::collective {
namespace {

// `buffer` before, within and behind `parts`.
struct Pieces {
  std::span<float> before;
  std::span<float> within;
  std::span<float> behind;
};

Pieces Cut(std::span<float> buffer, std::span<const float> parts) {
  const float* const begin = buffer.data();
  const float* const end = begin + buffer.size();
  // Addresses of other memory than the buffer's compare by std::less alone.
  const auto in_buffer = [&](const float* edge) {
    if (std::less<>()(edge, begin)) return std::size_t{0};
    return std::less<>()(end, edge) ? buffer.size() : static_cast<std::size_t>(edge - begin);
  };
  const std::size_t first = in_buffer(parts.data());
  const std::size_t last = in_buffer(parts.data() + parts.size());
  return {.before = buffer.first(first),
          .within = buffer.subspan(first, last - first),
          .behind = buffer.subspan(last)};
}

}  // namespace

std::unique_ptr<Collective> ReplicaTransport::Start(const Operation& operation) {
  const bool may_be_parts = operation.kind == Operation::Kind::kAllReduceSum ||
                            operation.kind == Operation::Kind::kBroadcast;
  if (!may_be_parts) return world_.Start(operation);
  const bool broadcast = operation.kind == Operation::Kind::kBroadcast;
  const Pieces pieces = Cut(operation.buffer, parts_);
  std::vector<std::unique_ptr<Collective>> started;
  const auto start = [&](Transport& group, std::span<float> piece, int root) {
    if (piece.empty()) return;
    Operation part = operation;
    part.buffer = piece;
    part.partner = root;
    started.push_back(group.Start(part));
  };
  // Equal places first, which are waited for first: of these all come as long as they live, and who
  // finds one dead ends the world, in which members of other places would wait.
  start(*groups_.equal_places, pieces.within,
        broadcast ? PlaceOf(operation.partner, shape_).replica : 0);
  start(world_, pieces.before, operation.partner);
  start(world_, pieces.behind, operation.partner);
  if (started.empty()) return world_.Start(operation);
  return std::make_unique<Together>(std::move(started),
                                    [this](const std::string& reason) { Abort(reason); });
}

std::vector<int> ReplicaTransport::InWorld(const std::vector<int>& ranks,
                                           const std::vector<int>& members) {
  std::vector<int> in_world;
  for (const int rank : ranks) in_world.push_back(members.at(static_cast<std::size_t>(rank)));
  return in_world;
}

Awaiting ReplicaTransport::awaiting() {
  Awaiting all = world_.awaiting();
  const auto add = [&all](Transport& group, const std::vector<int>& members) {
    const Awaiting own = group.awaiting();
    all.collective = all.collective || own.collective;
    all.bytes_moved += own.bytes_moved;
    const std::vector<int> peers = InWorld(own.peers, members);
    all.peers.insert(all.peers.end(), peers.begin(), peers.end());
  };
  add(*groups_.row, RowOf(rank(), shape_));
  add(*groups_.column, ColumnOf(rank(), shape_));
  add(*groups_.equal_places, EqualPlacesOf(rank(), shape_, size()));
  return all;
}

std::vector<int> ReplicaTransport::failed() {
  std::vector<int> all = world_.failed();
  const auto add = [&all](Transport& group, const std::vector<int>& members) {
    const std::vector<int> own = InWorld(group.failed(), members);
    all.insert(all.end(), own.begin(), own.end());
  };
  add(*groups_.row, RowOf(rank(), shape_));
  add(*groups_.column, ColumnOf(rank(), shape_));
  add(*groups_.equal_places, EqualPlacesOf(rank(), shape_, size()));
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

void ReplicaTransport::Abort(const std::string& reason) {
  world_.Abort(reason);
  groups_.Abort(reason);
}

}  // namespace tactus::collective
