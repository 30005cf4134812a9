#include "agent/collective/staged_pieces.h"

#include <algorithm>
#include <span>
#include <utility>

#include "agent/collective/mesh_pieces.h"

namespace tactus::collective {
namespace {

using Kind = Operation::Kind;

// What a member puts into a collective, and what it gets from it.
std::span<const std::byte> PutIn(const Operation& piece) {
  if (piece.kind == Kind::kAllGather) return std::as_bytes(piece.own);
  return piece.kind == Kind::kExchange ? piece.outgoing : std::as_bytes(piece.buffer);
}
std::span<std::byte> Gets(const Operation& piece) {
  return piece.kind == Kind::kExchange ? piece.incoming : std::as_writable_bytes(piece.buffer);
}

std::size_t MembersOf(const Operation& gathering) {
  return gathering.own.empty() ? 1 : gathering.buffer.size() / gathering.own.size();
}

// Of what this member brings; what comes of the others lies apart.
std::span<const float> OwnPiece(const Operation& gathering, std::size_t number) {
  const std::size_t length = PieceOfGathering(MembersOf(gathering));
  const std::span<const float> from = gathering.own.subspan(number * length);
  return from.first(std::min(length, from.size()));
}

// The piece on the memory where the whole is.
Operation PieceInPlace(const Operation& whole, std::size_t number) {
  Operation piece = whole;
  if (whole.kind == Kind::kAllGather) {
    piece.own = OwnPiece(whole, number);
    return piece;
  }
  piece.buffer = PieceOf(whole.buffer, number);
  piece.outgoing = PieceOf(whole.outgoing, number);
  piece.incoming = PieceOf(whole.incoming, number);
  return piece;
}

std::span<std::byte> BytesOf(const cuda::PinnedFloats& memory, std::size_t bytes) {
  return std::as_writable_bytes(std::span(memory.get(), kPieceLength)).first(bytes);
}

std::string OpenSlot(StagingSlot& slot) {
  for (cuda::PinnedFloats* const memory : {&slot.first, &slot.second}) {
    cuda::OpenedPinned opened = cuda::OpenPinned(kPieceLength);
    if (opened.memory == nullptr) return opened.reason;
    *memory = std::move(opened.memory);
  }
  for (cuda::OwnedEvent* const event : {&slot.down, &slot.up}) {
    cuda::OpenedEvent opened = cuda::OpenSleepingEvent();
    if (opened.event == nullptr) return opened.reason;
    *event = std::move(opened.event);
  }
  return "";
}

}  // namespace

StagedOperation StageOf(const Operation& operation, int rank) {
  StagedOperation staged{.operation = operation};
  const bool root = operation.partner == rank;
  const bool puts_in = operation.kind != Kind::kBroadcast || root;
  const bool gets = operation.kind == Kind::kBroadcast ? !root
                    : operation.kind == Kind::kRootSum ? root
                                                       : true;
  const auto on_device = [](std::span<const std::byte> memory) {
    return !memory.empty() && cuda::IsDeviceMemory(memory.data());
  };
  staged.down = puts_in && on_device(PutIn(operation));
  staged.up = gets && on_device(Gets(operation));
  if (!staged.down && !staged.up) return staged;
  switch (operation.kind) {
    case Kind::kExchange:
      staged.pieces = PiecesOfExchange(operation.outgoing.size(), operation.incoming.size());
      break;
    case Kind::kAllGather:
      staged.pieces = PiecesOfGathering(operation.own.size(), MembersOf(operation));
      break;
    default:
      staged.pieces = PiecesIn(operation.buffer.size());
  }
  return staged;
}

Operation PieceOnHost(const StagedOperation& staged, std::size_t number, StagingSlot& slot) {
  if (!staged.down && !staged.up) return staged.operation;
  Operation piece = PieceInPlace(staged.operation, number);
  if (piece.kind == Kind::kAllGather) {
    const std::size_t length = piece.own.size();
    piece.own = std::span(slot.first.get(), length);
    piece.buffer = std::span(slot.second.get(), length * MembersOf(staged.operation));
    return piece;
  }
  if (piece.kind != Kind::kExchange) {
    piece.buffer = std::span(slot.first.get(), piece.buffer.size());
    return piece;
  }
  if (staged.down) piece.outgoing = BytesOf(slot.first, piece.outgoing.size());
  if (staged.up) piece.incoming = BytesOf(slot.second, piece.incoming.size());
  return piece;
}

std::string Staging::Open() {
  for (cuda::OwnedStream* const stream : {&down_, &up_}) {
    cuda::OpenedStream opened = cuda::OpenStream();
    if (opened.stream == nullptr) return opened.reason;
    *stream = std::move(opened.stream);
  }
  for (StagingSlot& slot : slots_) {
    if (std::string reason = OpenSlot(slot); !reason.empty()) return reason;
  }
  return "";
}

std::string Staging::Follow(cuda::Event before) {
  const std::string reason = cuda::WaitFor(down_.get(), before);
  return reason.empty() ? cuda::WaitFor(up_.get(), before) : reason;
}

std::string Staging::BringDown(const StagedOperation& staged, std::size_t number,
                               StagingSlot& slot) {
  if (!staged.down) return "";
  const std::span<const std::byte> from = PutIn(PieceInPlace(staged.operation, number));
  const std::string reason = cuda::QueueCopy(down_.get(), from, BytesOf(slot.first, from.size()));
  return reason.empty() ? cuda::Record(slot.down.get(), down_.get()) : reason;
}

// A failure is found by who awaits it.
bool Staging::IsDown(const StagingSlot& slot) const {
  return cuda::Query(slot.down.get()).reached != cuda::Reached::kNot;
}

// Every member's part of what was gathered has a place of its own.
std::string Staging::QueueGathered(const Operation& whole, std::size_t number, StagingSlot& slot) {
  const std::size_t length = OwnPiece(whole, number).size();
  const std::size_t first = number * PieceOfGathering(MembersOf(whole));
  std::string reason;
  for (std::size_t rank = 0; rank < MembersOf(whole) && reason.empty(); ++rank) {
    const std::span<const float> from(slot.second.get() + rank * length, length);
    const std::span<float> to = whole.buffer.subspan(rank * whole.own.size() + first, length);
    reason = cuda::QueueCopy(up_.get(), std::as_bytes(from), std::as_writable_bytes(to));
  }
  return reason;
}

std::string Staging::BringUp(const StagedOperation& staged, std::size_t number, StagingSlot& slot) {
  if (!staged.up) return "";
  std::string reason;
  if (staged.operation.kind == Kind::kAllGather) {
    reason = QueueGathered(staged.operation, number, slot);
  } else {
    const std::span<std::byte> to = Gets(PieceInPlace(staged.operation, number));
    const bool exchange = staged.operation.kind == Kind::kExchange;
    reason =
        cuda::QueueCopy(up_.get(), BytesOf(exchange ? slot.second : slot.first, to.size()), to);
  }
  if (reason.empty()) reason = cuda::Record(slot.up.get(), up_.get());
  return reason.empty() ? cuda::Await(slot.up.get()) : reason;
}

void Staging::AwaitQuiet() {
  for (StagingSlot& slot : slots_) {
    if (cuda::Record(slot.down.get(), down_.get()).empty()) cuda::Await(slot.down.get());
    if (cuda::Record(slot.up.get(), up_.get()).empty()) cuda::Await(slot.up.get());
  }
}

}  // namespace tactus::collective
