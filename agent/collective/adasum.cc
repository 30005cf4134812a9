#include "agent/collective/adasum.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <utility>

#include "base/check.h"

namespace tactus::collective {
namespace {

// Slices begin where a kernel may read and write by whole packs, and in the phase of an inbox's
// front, to which what the other side has of them is sent: 256 bytes.
constexpr std::size_t kCutMultiple = 64;

// Where a range of so many floats, or a share of them, ends: no further than asked, and at a
// multiple as soon as there is one.
std::size_t CutAt(std::size_t length) {
  return length < kCutMultiple ? length : length / kCutMultiple * kCutMultiple;
}

// The least multiple that holds so many.
std::size_t Padded(std::size_t length) {
  return (length + kCutMultiple - 1) / kCutMultiple * kCutMultiple;
}

// The ranks of each node in rising order, nodes in the order of their lowest ranks; every rank a
// node of its own unless the nodes have the same number of members, which one sum can take.
std::vector<std::vector<int>> PlacesOf(int size, const std::vector<std::uint32_t>& nodes) {
  TACTUS_CHECK(nodes.empty() || nodes.size() == static_cast<std::size_t>(size));
  std::vector<std::vector<int>> places;
  std::vector<std::uint32_t> seen;
  for (int rank = 0; rank < size && !nodes.empty(); ++rank) {
    const std::uint32_t node = nodes[static_cast<std::size_t>(rank)];
    const auto place = static_cast<std::size_t>(std::ranges::find(seen, node) - seen.begin());
    if (place == seen.size()) {
      seen.push_back(node);
      places.emplace_back();
    }
    places[place].push_back(rank);
  }
  const auto equal = [&](const std::vector<int>& node) {
    return node.size() == places.front().size();
  };
  const bool alike = !places.empty() && std::ranges::all_of(places, equal);
  if (alike && places.front().size() <= cuda::kCombinedMax) return places;
  places.clear();
  for (int rank = 0; rank < size; ++rank) places.push_back({rank});
  return places;
}

// What is left of a range without `part`, which is at its front or its back.
cuda::FlatRange OtherPart(cuda::FlatRange range, cuda::FlatRange part) {
  const bool front = part.offset == range.offset && part.length < range.length;
  return {.offset = front ? range.offset + part.length : range.offset,
          .length = range.length - part.length};
}

// out <- the mean of the buffers, in their order. `out` may be one of them.
void Average(cuda::Device& device, std::vector<std::span<const float>> buffers,
             std::span<float> out) {
  const double share = 1.0 / static_cast<double>(buffers.size());
  std::vector<cuda::Weighted> parts;
  for (const std::span<const float> buffer : buffers) {
    parts.push_back({.weight = share, .buffer = buffer});
  }
  device.WeightedSum(parts, out);
}

}  // namespace

AdasumReduction::AdasumReduction(Transport& transport, cuda::Device& device,
                                 const cuda::SegmentTable& segments,
                                 const std::vector<std::uint32_t>& nodes, ReplicaSums replica)
    : transport_(transport),
      device_(device),
      segments_(segments),
      sums_(segments.size() * cuda::kAdasumSumsPerSegment),
      places_(PlacesOf(transport.size(), nodes)),
      replica_(std::move(replica), device, segments),
      results_(device.AllocateOnHost<double>(kLanes)) {
  TACTUS_CHECK(!replica_.in_parts() || nodes.empty());
  for (std::size_t node = 0; node < places_.size(); ++node) {
    const auto place = std::ranges::find(places_[node], transport.rank());
    if (place == places_[node].end()) continue;
    node_ = node;
    local_ = static_cast<std::size_t>(place - places_[node].begin());
  }
}

void AdasumReduction::Start(std::span<float> buffer, std::span<float> lanes) {
  TACTUS_CHECK(!open_);
  for (const cuda::Segment& segment : segments_) {
    TACTUS_CHECK(segment.offset + segment.length <= buffer.size());
  }
  open_ = true;
  buffer_ = buffer;
  lanes_ = lanes;
  MakeRoom();
  steps_.clear();
  completion_ = {};
  next_ = 0;
  if (node_size() > 1) PlanNodeMean();
  if (nodes() > 1) PlanTree(ShardOf(local_));
  if (nodes() == 1) PlanSum(tail(), {});
  if (node_size() > 1) PlanNodeGather();
  PlanReplicaSum(tail());
  // A group of one has no exchange but learns of the end as the others do.
  running_ = transport_.size() == 1 ? transport_.StartBarrier() : nullptr;
  if (running_ == nullptr) Advance();
}

Progress AdasumReduction::Poll() {
  TACTUS_CHECK(open_);
  while (running_ != nullptr && running_->Poll() != Progress::kRunning) Advance();
  return running_ != nullptr ? Progress::kRunning : completion_.progress;
}

Progress AdasumReduction::WaitOnDevice() {
  TACTUS_CHECK(open_);
  while (running_ != nullptr && replica_.in_parts()) Advance();
  while (running_ != nullptr) {
    if (running_->WaitOnDevice() != Progress::kRunning) {
      Advance();
      continue;
    }
    followed_.push_back(std::move(running_));
    DoSteps();
  }
  if (completion_.progress == Progress::kFailed || followed_.empty()) return completion_.progress;
  return Progress::kRunning;
}

Completion AdasumReduction::Wait() {
  TACTUS_CHECK(open_);
  while (running_ != nullptr) Advance();
  for (const std::unique_ptr<Collective>& exchange : followed_) {
    // The first that failed tells why; none may use the buffer once this returns.
    Completion completion = exchange->Wait();
    if (completion_.progress == Progress::kDone) completion_ = std::move(completion);
  }
  followed_.clear();
  open_ = false;
  return completion_;
}

// Waits for the exchange under way, if there is one, and goes on to the next.
void AdasumReduction::Advance() {
  if (running_ != nullptr) {
    completion_ = running_->Wait();
    running_.reset();
    if (completion_.progress == Progress::kFailed) return;
  }
  DoSteps();
}

// Does what needs nobody else, and starts the exchange that comes then.
void AdasumReduction::DoSteps() {
  while (next_ < steps_.size()) {
    const Step& step = steps_[next_++];
    if (step.peer != kNobody) {
      running_ = transport_.StartExchange(step.peer, step.outgoing, step.incoming);
      return;
    }
    step.act();
    if (completion_.progress == Progress::kFailed) return;
  }
  TakeResults();
}

void AdasumReduction::TakeResults() {
  device_.Copy(tail().first(kLanes), results_.span());
  device_.Narrow(tail().subspan(kLanes), lanes_);
}

std::uint64_t AdasumReduction::bytes() const { return buffer_.size_bytes() + lanes_.size_bytes(); }

cuda::FlatRange AdasumReduction::ShardOf(std::size_t local) const {
  const std::size_t length = CutAt(buffer_.size() / node_size());
  const std::size_t offset = local * length;
  return {.offset = offset, .length = local + 1 == node_size() ? buffer_.size() - offset : length};
}

std::vector<std::size_t> AdasumReduction::Neighbours() const {
  std::vector<std::size_t> neighbours;
  for (std::size_t turn = 0; turn < node_size(); ++turn) {
    const std::size_t other = (turn + node_size() - local_) % node_size();
    if (other != local_) neighbours.push_back(other);
  }
  return neighbours;
}

// Steps keep spans of this memory.
void AdasumReduction::MakeRoom() {
  const std::size_t shard = ShardOf(local_).length;
  const std::size_t inbox = std::max(shard - CutAt(shard / 2), Padded(shard) * (node_size() - 1));
  if (inbox_.size() < inbox) inbox_ = device_.Allocate(inbox);
  const std::size_t row = sums_ + kLanes + lanes_.size();
  if (row_.size() != row) {
    row_ = device_.AllocateSums(row);
    row_inbox_ = device_.AllocateSums(row * node_size());
  }
  device_.Clear(row_.span());
  replica_.AddNorm(buffer_, 0, InTail(kNorm2));
  device_.Widen(lanes_, tail().subspan(kLanes));
}

template <typename Number>
void AdasumReduction::PlanExchange(int peer, std::span<Number> outgoing,
                                   std::span<Number> incoming) {
  steps_.push_back({.peer = peer,
                    .outgoing = std::as_bytes(outgoing),
                    .incoming = std::as_writable_bytes(incoming)});
}

void AdasumReduction::PlanNodeMean() {
  const std::span<float> shard = At(ShardOf(local_));
  std::vector<std::span<const float>> sources(node_size(), shard);
  std::span<float> inbox = inbox_.span();
  for (const std::size_t neighbour : Neighbours()) {
    sources[neighbour] = inbox.first(shard.size());
    PlanExchange(places_[node_][neighbour], At(ShardOf(neighbour)), inbox.first(shard.size()));
    inbox = inbox.subspan(Padded(shard.size()));
  }
  PlanAct([this, shard, sources = std::move(sources)] {
    Average(device_, sources, shard);
    device_.Clear(InTail(kNorm2));  // it is the mean that goes up the tree
    device_.AddSquaredNorm(shard, InTail(kNorm2));
  });
}

void AdasumReduction::PlanNodeGather() {
  for (const std::size_t neighbour : Neighbours()) {
    PlanExchange(places_[node_][neighbour], At(ShardOf(local_)), At(ShardOf(neighbour)));
  }
}

void AdasumReduction::PlanTree(cuda::FlatRange slice) {
  const std::size_t core = std::bit_floor(nodes());
  const bool extra = node_ >= core;
  const bool folds = extra || node_ + core < nodes();
  const std::size_t fold_partner = extra ? node_ - core : node_ + core;
  if (folds) PlanFold(slice, fold_partner);
  Level level;
  std::vector<cuda::FlatRange> slices = {slice};
  for (std::size_t distance = 1; distance < core && !extra; distance *= 2) {
    level.partner = node_ ^ distance;
    level.sum_with.push_back(level.partner);
    level.tail = 2 * distance == core;
    slices.push_back(PlanLevel(slices.back(), level));
  }
  for (std::size_t distance = core / 2; distance > 0 && !extra; distance /= 2) {
    const cuda::FlatRange own = slices.back();
    slices.pop_back();
    PlanExchange(PeerOn(node_ ^ distance), At(own), At(OtherPart(slices.back(), own)));
  }
  if (folds) PlanUnfold(slice, fold_partner);
}

// Returns the half of the slice that is this member's from then on.
cuda::FlatRange AdasumReduction::PlanLevel(cuda::FlatRange slice, const Level& level) {
  const bool lower = node_ < level.partner;
  const cuda::FlatRange front{.offset = slice.offset, .length = CutAt(slice.length / 2)};
  const cuda::FlatRange kept = lower ? front : OtherPart(slice, front);
  const std::span<float> own = At(kept);
  const std::span<float> received = inbox_.span().first(kept.length);
  const cuda::AdasumPair pair{.a = lower ? own : received, .b = lower ? received : own};
  PlanExchange(PeerOn(level.partner), At(OtherPart(slice, kept)), received);
  PlanAct([this, kept, pair] { SetPartials(kept, pair); });
  PlanSum(level.tail ? row_.span() : sums(), level.sum_with);
  PlanReplicaSum(sums());
  PlanAct([this, kept, pair] {
    device_.AdasumCombine(pair, cuda::PartsOf(kept, segments_), sums(), At(kept));
  });
  return kept;
}

// The lower of two nodes gets the Adasum of both, and the sums of their tails.
void AdasumReduction::PlanFold(cuda::FlatRange slice, std::size_t partner) {
  const cuda::FlatRange kept =
      PlanLevel(slice, {.partner = partner, .sum_with = {partner}, .tail = true});
  const int peer = PeerOn(partner);
  if (node_ > partner) return PlanExchange(peer, At(kept), std::span<float>());
  PlanExchange(peer, std::span<float>(), At(OtherPart(slice, kept)));
  // All members of the node have the same tail now; it counts once.
  if (local_ > 0) PlanAct([this] { device_.Clear(tail()); });
}

void AdasumReduction::PlanUnfold(cuda::FlatRange slice, std::size_t partner) {
  const int peer = PeerOn(partner);
  if (node_ < partner) {
    PlanExchange(peer, At(slice), std::span<float>());
    PlanExchange(peer, tail(), std::span<double>());
  } else {
    PlanExchange(peer, std::span<float>(), At(slice));
    PlanExchange(peer, std::span<double>(), tail());
  }
}

// Adds up a row over this node and those with which the others sum, the lower rank's first, so that
// all get the same bits: first all members of the node, then equal places in two halves of nodes.
void AdasumReduction::PlanSum(std::span<double> row, const std::vector<std::size_t>& sum_with) {
  for (const std::size_t neighbour : Neighbours()) {
    PlanExchange(places_[node_][neighbour], row, RowInbox(neighbour, row.size()));
  }
  if (node_size() > 1) {
    PlanAct([this, row] {
      device_.Copy(row, RowInbox(local_, row.size()));
      device_.Copy(RowInbox(0, row.size()), row);
      for (std::size_t local = 1; local < node_size(); ++local) {
        device_.AddRows(row, RowInbox(local, row.size()), row);
      }
    });
  }
  for (const std::size_t node : sum_with) {
    const std::span<double> received = RowInbox(0, row.size());
    PlanExchange(PeerOn(node), row, received);
    PlanAct([this, row, received, lower = node_ < node] {
      device_.AddRows(lower ? row : received, lower ? received : row, row);
    });
  }
}

void AdasumReduction::SetPartials(cuda::FlatRange slice, const cuda::AdasumPair& pair) {
  std::vector<cuda::SegmentPart> parts = cuda::PartsOf(slice, segments_);
  std::erase_if(parts, [this](const auto& part) { return !replica_.Counts(part.segment); });
  device_.Clear(sums());
  device_.AdasumPartials(pair, parts, sums());
  device_.CountNonFinite(sums(), InTail(kNonfinite));
}

// Behind sums between the two halves of a tree: these are of a part, and alike for all who have it.
void AdasumReduction::PlanReplicaSum(std::span<double> row) {
  if (replica_.in_parts()) PlanAct([this, row] { completion_ = replica_.Add(row); });
}

}  // namespace tactus::collective
