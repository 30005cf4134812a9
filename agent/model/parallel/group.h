// Collectives on tensors within a mesh's row or column. Private to agent/model.
//
// Tensors are float32, without holes in memory, on the host or on a device that the transport takes
// memory of: all members of a group give tensors of one shape and one layout, for what travels is
// their memory as it is. On a device nobody waits for what can be put into the device's order
// (Collective::WaitOnDevice): the tensor may be used on the stream at once, and the host learns
// later whether it came.

#pragma once

#include <ATen/ATen.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "agent/collective/transport.h"
#include "agent/model/parallel/volume.h"

namespace tactus::model {

// A collective has failed: the mesh is over, for all who are in it.
class LostMesh : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Group;

// A tensor on its way. Destroying it waits, as the memory is in use.
class Underway {
 public:
  Underway() = default;
  explicit Underway(at::Tensor tensor) : tensor_(std::move(tensor)) {}  // has come
  Underway(Group& group, at::Tensor tensor, std::unique_ptr<collective::Collective> collective)
      : group_(&group), tensor_(std::move(tensor)), collective_(std::move(collective)) {}

  // The tensor when it has come; undefined where there was none. Throws LostMesh.
  at::Tensor Take();

 private:
  Group* group_ = nullptr;  // outlives this
  at::Tensor tensor_;
  std::unique_ptr<collective::Collective>
      collective_;  // gone before the tensor, whose memory it has
};

// One member's end of a row or column. A group of one moves nothing, and has no transport to be
// asked. One thread.
class Group {
 public:
  // The transport outlives this.
  explicit Group(collective::Transport& transport)
      : transport_(&transport), rank_(transport.rank()), size_(transport.size()) {}
  // Of this member alone.
  Group() = default;

  int rank() const { return rank_; }
  int size() const { return size_; }

  // Gives the root's `own` to all, which is not changed before it is there; the others' say only
  // its shape and layout.
  Underway StartBroadcast(const at::Tensor& own, int root);

  // The root's tensor <- the sum of all, in rank order; the others give theirs away.
  Underway StartRootSum(at::Tensor tensor, int root);

  // tensor <- the sum of all, in rank order. Throws LostMesh.
  void AllSum(const at::Tensor& tensor);

  // [size, ...] of every member's tensor, by rank. Throws LostMesh.
  at::Tensor AllGather(const at::Tensor& own);

  const Volume& volume() const { return volume_; }
  void ClearVolume() { volume_ = {}; }

  // From now on the loss of one group ends the other, too: what is under way there would wait for
  // members that have given up.
  static void Pair(Group& row, Group& column) {
    row.partner_ = &column;
    column.partner_ = &row;
  }

  // Ends this group and the one that it is paired with, for all members.
  void Abort(const std::string& reason);

  // Has what is queued from here on come behind a collective of this group; `memory` is what it
  // moves, and stays as long as that takes. Throws LostMesh.
  void Follow(std::unique_ptr<collective::Collective> collective, std::vector<at::Tensor> memory);

  // Waits for all that was followed: what came of it is as it should be then. By who is going to
  // use it outside of this group. Throws LostMesh.
  void Settle();
  // Lets go of it, when it has ended: of a group that is over.
  void Forget() { followed_.clear(); }

 private:
  // One that is in the device's order.
  struct Followed {
    std::vector<at::Tensor> memory{};
    std::unique_ptr<collective::Collective> collective = nullptr;  // gone before its memory
  };
  // More are waited for, so that no memory is held for long.
  static constexpr std::size_t kFollowedMax = 8;

  void WaitFor(collective::Collective& collective);

  collective::Transport* transport_ = nullptr;
  int rank_ = 0;
  int size_ = 1;
  Group* partner_ = nullptr;
  Volume volume_ = {};
  std::deque<Followed> followed_{};  // in the order of their starts
};

// A member's groups, which are paired, and so its place: row i is its rank in the column's group,
// column j its rank in the row's.
struct Mesh {
  Group& row;
  Group& column;

  int i() const { return column.rank(); }
  int j() const { return row.rank(); }
};

}  // namespace tactus::model
