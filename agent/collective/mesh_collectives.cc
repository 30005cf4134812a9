#include "agent/collective/mesh_collectives.h"

#include "agent/collective/mesh_costs.h"
#include "agent/collective/mesh_pieces.h"
#include "agent/collective/rank_sum.h"

namespace tactus::collective {

bool MeshCollectives::AllReduceSum(std::span<float> buffer) {
  for (std::size_t i = 0; i < PiecesIn(buffer.size()); ++i) {
    if (!ReducePiece(PieceOf(buffer, i))) return false;
  }
  return true;
}

bool MeshCollectives::Broadcast(std::span<float> buffer, int root) {
  for (std::size_t i = 0; i < PiecesIn(buffer.size()); ++i) {
    if (!BroadcastPiece(PieceOf(buffer, i), root)) return false;
  }
  return true;
}

bool MeshCollectives::Barrier() { return AllReduceSum({&nothing_, 1}); }

bool MeshCollectives::Exchange(int peer, std::span<const std::byte> outgoing,
                               std::span<std::byte> incoming) {
  const std::size_t pieces = PiecesOfExchange(outgoing.size(), incoming.size());
  for (std::size_t i = 0; i < pieces; ++i) {
    mesh_.Receive(peer, Lane::kFirst, PieceOf(incoming, i));
    mesh_.Send(peer, Lane::kFirst, PieceOf(outgoing, i));
  }
  // Awaited when all are posted: long messages would fill the sockets' buffers, and each member
  // would wait for the other to read.
  for (std::size_t i = 0; i < pieces; ++i) {
    if (!mesh_.WaitReceived(peer, Lane::kFirst) || !mesh_.WaitSent(peer, Lane::kFirst)) {
      return false;
    }
  }
  return true;
}

bool MeshCollectives::Converse(Conversation& conversation) {
  for (std::size_t turn = 0; turn < conversation.turns(); ++turn) {
    conversation.Begin(turn);
    for (int peer = 0; peer < mesh_.size(); ++peer) {
      if (peer == mesh_.rank()) continue;
      mesh_.Receive(peer, Lane::kFirst, conversation.Incoming(turn, peer));
      mesh_.Send(peer, Lane::kFirst, conversation.Outgoing(turn, peer));
    }
    for (int peer = 0; peer < mesh_.size(); ++peer) {
      if (peer == mesh_.rank()) continue;
      if (!mesh_.WaitReceived(peer, Lane::kFirst) || !mesh_.WaitSent(peer, Lane::kFirst)) {
        return false;
      }
    }
  }
  conversation.End();
  return true;
}

bool MeshCollectives::ReducePiece(std::span<float> piece) {
  // Whole: (n - 1) length; in chunks: 2 (n - 1) / n length. Equal for two members.
  const auto members = static_cast<std::size_t>(mesh_.size());
  const bool whole = piece.size() * (members - 1) * (members - 2) / members <= kExtraLengthMax;
  return whole ? ReduceWhole(piece) : ReduceInChunks(piece);
}

bool MeshCollectives::BroadcastPiece(std::span<float> piece, int root) {
  // Whole: (n - 1) length from the root; in chunks: length.
  const auto others = static_cast<std::size_t>(mesh_.size() - 1);
  const bool whole = piece.size() * (others - 1) <= kExtraLengthMax;
  return whole ? BroadcastWhole(piece, root) : BroadcastInChunks(piece, root);
}

bool MeshCollectives::ReduceWhole(std::span<float> buffer) {
  MakeRoom(buffer.size());
  for (int peer = 0; peer < mesh_.size(); ++peer) {
    if (peer == mesh_.rank()) continue;
    mesh_.Receive(peer, Lane::kFirst, std::as_writable_bytes(InboxOf(peer, buffer.size())));
    mesh_.Send(peer, Lane::kFirst, std::as_bytes(buffer));
  }
  for (int peer = 0; peer < mesh_.size(); ++peer) {
    if (peer == mesh_.rank()) continue;
    if (!mesh_.WaitReceived(peer, Lane::kFirst) || !mesh_.WaitSent(peer, Lane::kFirst)) {
      return false;
    }
  }
  SumInboxesInto(buffer);
  return true;
}

// A peer can send its finished chunk only after it has received this member's part of it, so the
// second step's receives may be posted at once, into memory that the first step still sends from.
bool MeshCollectives::ReduceInChunks(std::span<float> piece) {
  const std::span<float> own = ChunkOf(piece, mesh_.rank());
  MakeRoom(own.size());
  for (int peer = 0; peer < mesh_.size(); ++peer) {
    if (peer == mesh_.rank()) continue;
    mesh_.Receive(peer, Lane::kFirst, std::as_writable_bytes(InboxOf(peer, own.size())));
    mesh_.Receive(peer, Lane::kSecond, std::as_writable_bytes(ChunkOf(piece, peer)));
    mesh_.Send(peer, Lane::kFirst, std::as_bytes(ChunkOf(piece, peer)));
  }
  for (int peer = 0; peer < mesh_.size(); ++peer) {
    if (peer != mesh_.rank() && !mesh_.WaitReceived(peer, Lane::kFirst)) return false;
  }
  SumInboxesInto(own);
  for (int peer = 0; peer < mesh_.size(); ++peer) {
    if (peer != mesh_.rank()) mesh_.Send(peer, Lane::kSecond, std::as_bytes(own));
  }
  for (int peer = 0; peer < mesh_.size(); ++peer) {
    if (peer == mesh_.rank()) continue;
    if (!mesh_.WaitReceived(peer, Lane::kSecond) || !mesh_.WaitSent(peer, Lane::kFirst) ||
        !mesh_.WaitSent(peer, Lane::kSecond)) {
      return false;
    }
  }
  return true;
}

bool MeshCollectives::BroadcastWhole(std::span<float> buffer, int root) {
  if (mesh_.rank() != root) {
    mesh_.Receive(root, Lane::kFirst, std::as_writable_bytes(buffer));
    return mesh_.WaitReceived(root, Lane::kFirst);
  }
  for (int peer = 0; peer < mesh_.size(); ++peer) {
    if (peer != root) mesh_.Send(peer, Lane::kFirst, std::as_bytes(buffer));
  }
  for (int peer = 0; peer < mesh_.size(); ++peer) {
    if (peer != root && !mesh_.WaitSent(peer, Lane::kFirst)) return false;
  }
  return true;
}

bool MeshCollectives::BroadcastInChunks(std::span<float> piece, int root) {
  const std::span<float> own = ChunkOf(piece, mesh_.rank());
  const bool is_root = mesh_.rank() == root;
  if (!is_root) mesh_.Receive(root, Lane::kFirst, std::as_writable_bytes(own));
  for (int peer = 0; peer < mesh_.size(); ++peer) {
    if (peer == mesh_.rank()) continue;
    if (!is_root) mesh_.Receive(peer, Lane::kSecond, std::as_writable_bytes(ChunkOf(piece, peer)));
    if (is_root) mesh_.Send(peer, Lane::kFirst, std::as_bytes(ChunkOf(piece, peer)));
  }
  if (!is_root && !mesh_.WaitReceived(root, Lane::kFirst)) return false;
  for (int peer = 0; peer < mesh_.size(); ++peer) {
    if (peer != mesh_.rank() && peer != root) mesh_.Send(peer, Lane::kSecond, std::as_bytes(own));
  }
  for (int peer = 0; peer < mesh_.size(); ++peer) {
    if (peer == mesh_.rank()) continue;
    if (is_root && !mesh_.WaitSent(peer, Lane::kFirst)) return false;
    if (!is_root && !mesh_.WaitReceived(peer, Lane::kSecond)) return false;
    if (peer != root && !mesh_.WaitSent(peer, Lane::kSecond)) return false;
  }
  return true;
}

std::span<float> MeshCollectives::ChunkOf(std::span<float> piece, int rank) const {
  const auto index = static_cast<std::size_t>(rank);
  const auto count = static_cast<std::size_t>(mesh_.size());
  const std::size_t begin = piece.size() * index / count;
  const std::size_t end = piece.size() * (index + 1) / count;
  return piece.subspan(begin, end - begin);
}

std::span<float> MeshCollectives::InboxOf(int rank, std::size_t length) {
  const int index = rank < mesh_.rank() ? rank : rank - 1;
  return std::span<float>(inboxes_).subspan(static_cast<std::size_t>(index) * length, length);
}

void MeshCollectives::MakeRoom(std::size_t length) {
  const std::size_t needed = length * static_cast<std::size_t>(mesh_.size() - 1);
  if (inboxes_.size() < needed) inboxes_.resize(needed);
}

void MeshCollectives::SumInboxesInto(std::span<float> own) {
  sources_.clear();
  for (int rank = 0; rank < mesh_.size(); ++rank) {
    sources_.push_back(rank == mesh_.rank() ? own.data() : InboxOf(rank, own.size()).data());
  }
  SumInRankOrder(sources_, own);
}

}  // namespace tactus::collective
