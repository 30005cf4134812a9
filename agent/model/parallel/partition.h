// Which part of a dense model's tensors a member of a mesh has, and the way between the two: what
// lets checkpoints and results be those of the dense model, and every layout read every other's.

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/collective/places.h"
#include "agent/model/model.h"

namespace tactus::model {

// A dimension in equal parts, of which one is taken; the last ones end where the dimension does.
struct Cut {
  std::int64_t parts = 1;
  std::int64_t index = 0;
};

// A part of a dense tensor: a matrix, or a vector as a matrix of one column.
//
// The dense rows are `groups` equal groups, and each of them is cut by itself, as the heads of q, k
// and v are that stand one above the other in a projection's weight.
struct Part {
  std::vector<std::int64_t> dense = {};  // the dense shape, of one or two dimensions
  std::int64_t groups = 1;
  Cut rows = {};
  Cut columns = {};
  // Of 2-D: all members of a column have this part, and each a gradient by its own samples.
  bool shared_by_column = false;

  // Whether members of a row have different parts.
  bool is_cut() const { return rows.parts > 1 || columns.parts > 1; }
  // Of this member's tensor, the same on all members: rows that do not exist in the dense tensor
  // are there, and are zero.
  std::vector<std::int64_t> Shape() const;
  // Elements of it that are the dense tensor's.
  std::uint64_t CountReal() const;
};

// block <- the part of `dense`; both by rows, of the part's sizes.
void CopyPart(const Part& part, std::span<const float> dense, std::span<float> block);
// The opposite; elements of other parts stay as they are.
void PlacePart(const Part& part, std::span<const float> block, std::span<float> dense);

// The mesh that the options ask for.
// Errors: InvalidArgument at "model.options.mesh...." or the size to blame, with the nearest choice
// that works: devices that are no square, sizes that cannot be cut, another model than bytes-lm.
absl::StatusOr<collective::MeshShape> MeshShapeOf(const ModelOptions& options);

// The part of bytes-lm's tensor of this name and dense shape at a place of such a mesh. 2-D where
// the kind is k2d, else 1-D.
//
//   2-D at (i, j)                                       1-D, j of n
//   token.weight        tokens i, channels j            tokens j
//   position, norms     channels j, for all i           whole
//   qkv, up, head       outputs j, inputs i; bias j     outputs j; bias j
//   out, down           outputs j, inputs i; bias j     inputs j; bias whole
//
// Source: [optimus]; primary-algorithms.md 5.c.2.
// Differs: biases and norms are on all rows of the mesh, not on row 0, so that no column waits for
// its first member, and the members' buffers have one length; their gradients are summed over the
// column once a pass, all together.
Part PartOf(const std::string& name, const std::vector<std::int64_t>& dense, MeshKind kind,
            const collective::MeshShape& shape, const collective::Place& place);

}  // namespace tactus::model
