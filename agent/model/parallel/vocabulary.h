// What is split by the vocabulary: the embedding of tokens, and the loss. Private to agent/model.
//
// A vocabulary of v tokens in q parts: part k has the tokens [k c, (k + 1) c), c = ceil(v / q), of
// which the last ones may not exist: their rows of the embedding are zero and stay so, and the loss
// does not see their logits.

#pragma once

#include <ATen/ATen.h>

#include "agent/model/parallel/group.h"

namespace tactus::model {

// tokens int64 [n], the same along the mesh's row; embedding [c, h / q], part i of the tokens and j
// of the channels -> [n, h / q]. The parts travel along the column, as in a product. The groups
// outlive the passes; throws LostMesh. As all here.
at::Tensor SummaEmbedding(const Mesh& mesh, const at::Tensor& embedding, const at::Tensor& tokens);

// tokens int64 [n], the same on all members; embedding [c, h] of this member's part of the tokens
// -> [n, h], the same on all members, as are the gradients that come back. One sum for all.
at::Tensor LineEmbedding(Group& row, const at::Tensor& embedding, const at::Tensor& tokens);

// Cross entropy of each row, [n], the same on all members of the group: logits [n, c] of this
// member's part of `classes`, targets int64 [n] in [0, classes), the same on all members; below 0:
// the row has no loss and no gradient.
//
// Source: [optimus]; primary-algorithms.md 5.c.2.
// Differs: maximum, sum and target's logit of each part are gathered at once, in one collective
// instead of three, and combined by rank.
at::Tensor SplitCrossEntropy(Group& row, const at::Tensor& logits, const at::Tensor& targets,
                             std::int64_t classes);

// Which rows' largest logit is their target's, as float32 [n]; ties go to the lowest class. Without
// gradients.
at::Tensor SplitRightAnswers(Group& row, const at::Tensor& logits, const at::Tensor& targets,
                             std::int64_t classes);

}  // namespace tactus::model
