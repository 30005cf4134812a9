// The algorithms of the TCP transport: collectives over a full mesh.
//
// Two steps however many members there are, each moving the least possible: what every member owns
// a chunk of is first gathered at the chunk's owner, then sent by the owner to all. Where it
// costs little more, buffers go whole to everybody in one step.
//
// Long buffers are worked off in the pieces of mesh_pieces.h, one after the other, and which way a
// piece goes hangs on its own length alone: so a member that starts a collective a piece sends and
// receives what one does that starts a single collective of them all.

#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "agent/collective/conversation.h"
#include "agent/collective/tcp_mesh.h"

namespace tactus::collective {

// Runs collectives over one mesh, one at a time. One thread.
//
// Every function returns false when the mesh is over; all memory is then left in an undefined state
// and the mesh still holds on to it until mesh.ReleaseMemory().
class MeshCollectives {
 public:
  explicit MeshCollectives(TcpMesh& mesh) : mesh_(mesh) {}

  // buffer <- sum over the members in rank order; see SumInRankOrder.
  //
  // A member sends and receives 2 (size - 1) / size of the buffer, or at most kExtraLengthMax
  // elements a piece more; see mesh_costs.h. Scratch memory: one piece.
  [[nodiscard]] bool AllReduceSum(std::span<float> buffer);

  // buffer <- the root's buffer. Every member but the root sends less than the buffer's size and
  // the root less than twice: its chunk to each owner, then its own chunk to all. So a model
  // reaches many members over the root's one link.
  [[nodiscard]] bool Broadcast(std::span<float> buffer, int root);

  // Returns once every member has called it.
  [[nodiscard]] bool Barrier();

  // Sends to one peer and receives from it at the same time; a message without bytes travels too.
  [[nodiscard]] bool Exchange(int peer, std::span<const std::byte> outgoing,
                              std::span<std::byte> incoming);

  // Turn by turn, messages whole to everybody at once.
  [[nodiscard]] bool Converse(Conversation& conversation);

 private:
  [[nodiscard]] bool ReducePiece(std::span<float> piece);
  [[nodiscard]] bool BroadcastPiece(std::span<float> piece, int root);
  [[nodiscard]] bool ReduceWhole(std::span<float> buffer);
  [[nodiscard]] bool ReduceInChunks(std::span<float> piece);
  [[nodiscard]] bool BroadcastWhole(std::span<float> buffer, int root);
  [[nodiscard]] bool BroadcastInChunks(std::span<float> piece, int root);

  // The part of `piece` that `rank` owns: the parts of all ranks make up the piece.
  std::span<float> ChunkOf(std::span<float> piece, int rank) const;

  // Memory for one message of `length` from `rank`; room for all of them must have been made.
  std::span<float> InboxOf(int rank, std::size_t length);
  void MakeRoom(std::size_t length);

  // Sums own [n] and the inboxes of all others into own.
  void SumInboxesInto(std::span<float> own);

  TcpMesh& mesh_;
  float nothing_ = 0;                  // what the members of a barrier sum
  std::vector<float> inboxes_;         // one after the other in rank order, without this member
  std::vector<const float*> sources_;  // of the sum under way
};

}  // namespace tactus::collective
