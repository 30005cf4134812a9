#include "agent/model/parallel/vocabulary.h"

#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace tactus::model {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Which of the tokens are in a part, and their rows there; of the others row 0.
struct InPart {
  at::Tensor here;  // bool [n]
  at::Tensor rows;  // int64 [n]
};

InPart Find(const at::Tensor& tokens, int part, std::int64_t rows) {
  const at::Tensor shifted = tokens - part * rows;
  at::Tensor here = shifted.ge(0).logical_and_(shifted.lt(rows));
  return {here, shifted.mul(here)};
}

// [n, h], zero for tokens of other parts.
at::Tensor LookUp(const at::Tensor& embedding, const InPart& found) {
  return embedding.index_select(0, found.rows).mul_(found.here.unsqueeze(1));
}

// The gradient of a part: rows of dy added up where their tokens are.
at::Tensor Scatter(const at::Tensor& dy, const InPart& found, std::int64_t rows) {
  return at::zeros({rows, dy.size(1)}, dy.options())
      .index_add_(0, found.rows, dy * found.here.unsqueeze(1));
}

struct SummaEmbeddingFunction : torch::autograd::Function<SummaEmbeddingFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& embedding,
                            const at::Tensor& tokens, Group* column) {
    context->saved_data["column"] = reinterpret_cast<std::int64_t>(column);
    context->saved_data["rows"] = embedding.size(0);
    context->save_for_backward({tokens});
    at::Tensor x = at::zeros({tokens.size(0), embedding.size(1)}, embedding.options());
    Underway coming = column->StartBroadcast(embedding, 0);
    for (int part = 0; part < column->size(); ++part) {
      const at::Tensor panel = coming.Take();
      if (part + 1 < column->size()) coming = column->StartBroadcast(embedding, part + 1);
      x.add_(LookUp(panel, Find(tokens, part, panel.size(0))));
    }
    return x;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    Group& column = *reinterpret_cast<Group*>(context->saved_data["column"].toInt());
    const std::int64_t rows = context->saved_data["rows"].toInt();
    const at::Tensor tokens = context->get_saved_variables()[0];
    at::Tensor own;
    for (int part = 0; part < column.size(); ++part) {
      at::Tensor sum = Scatter(gradients[0], Find(tokens, part, rows), rows);
      sum = column.StartRootSum(std::move(sum), part).Take();
      if (part == column.rank()) own = std::move(sum);
    }
    return {std::move(own), at::Tensor(), at::Tensor()};
  }
};

struct LineEmbeddingFunction : torch::autograd::Function<LineEmbeddingFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& embedding,
                            const at::Tensor& tokens, Group* row) {
    context->saved_data["row"] = reinterpret_cast<std::int64_t>(row);
    context->saved_data["rows"] = embedding.size(0);
    context->save_for_backward({tokens});
    at::Tensor x = LookUp(embedding, Find(tokens, row->rank(), embedding.size(0)));
    row->AllSum(x);
    return x;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const Group& row = *reinterpret_cast<Group*>(context->saved_data["row"].toInt());
    const std::int64_t rows = context->saved_data["rows"].toInt();
    const at::Tensor tokens = context->get_saved_variables()[0];
    return {Scatter(gradients[0], Find(tokens, row.rank(), rows), rows), at::Tensor(),
            at::Tensor()};
  }
};

// Logits of the classes that exist: the first ones of the part.
at::Tensor Existing(const Group& row, const at::Tensor& logits, std::int64_t classes) {
  const std::int64_t here = classes - row.rank() * logits.size(1);
  return logits.narrow(1, 0, std::clamp<std::int64_t>(here, 0, logits.size(1)));
}

// The largest of each row [n]; of a part without classes, -inf.
at::Tensor Largest(const at::Tensor& logits) {
  if (logits.size(1) == 0) {
    return at::full({logits.size(0)}, -std::numeric_limits<float>::infinity(), logits.options());
  }
  return logits.amax(1);
}

struct CrossEntropyFunction : torch::autograd::Function<CrossEntropyFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& logits,
                            const at::Tensor& targets, std::int64_t classes, Group* row) {
    const at::Tensor existing = Existing(*row, logits, classes);
    const InPart found = Find(targets, row->rank(), logits.size(1));
    const at::Tensor largest = Largest(existing);
    const at::Tensor sum = (existing - largest.unsqueeze(1)).exp_().sum(1);
    const at::Tensor target = logits.gather(1, found.rows.unsqueeze(1)).squeeze(1);
    const at::Tensor all = row->AllGather(
        at::stack({largest, sum, at::where(found.here, target, at::zeros_like(target))}));
    const at::Tensor maxima = all.select(1, 0);  // [q, n], as the others
    const at::Tensor maximum = maxima.amax(0);
    const at::Tensor logarithm =
        (all.select(1, 1) * (maxima - maximum).exp_()).sum(0).log_().add_(maximum);
    context->saved_data["row"] = reinterpret_cast<std::int64_t>(row);
    context->saved_data["classes"] = classes;
    context->save_for_backward({logits, targets, logarithm});
    return (logarithm - all.select(1, 2).sum(0)).mul_(targets.ge(0));
  }

  // softmax - one hot, times the gradient of the row's loss.
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const Group& row = *reinterpret_cast<Group*>(context->saved_data["row"].toInt());
    const std::int64_t classes = context->saved_data["classes"].toInt();
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& logits = saved[0];
    const at::Tensor& targets = saved[1];
    at::Tensor of_logits = at::zeros_like(logits);
    const at::Tensor existing = Existing(row, logits, classes);
    Existing(row, of_logits, classes).copy_((existing - saved[2].unsqueeze(1)).exp_());
    const InPart found = Find(targets, row.rank(), logits.size(1));
    of_logits.scatter_add_(1, found.rows.unsqueeze(1),
                           found.here.to(at::kFloat).neg_().unsqueeze(1));
    of_logits.mul_((gradients[0] * targets.ge(0)).unsqueeze(1));
    return {std::move(of_logits), at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor SummaEmbedding(const Mesh& mesh, const at::Tensor& embedding, const at::Tensor& tokens) {
  return SummaEmbeddingFunction::apply(embedding, tokens, &mesh.column);
}

at::Tensor LineEmbedding(Group& row, const at::Tensor& embedding, const at::Tensor& tokens) {
  return LineEmbeddingFunction::apply(embedding, tokens, &row);
}

at::Tensor SplitCrossEntropy(Group& row, const at::Tensor& logits, const at::Tensor& targets,
                             std::int64_t classes) {
  return CrossEntropyFunction::apply(logits, targets, classes, &row);
}

at::Tensor SplitRightAnswers(Group& row, const at::Tensor& logits, const at::Tensor& targets,
                             std::int64_t classes) {
  const at::NoGradGuard no_grad;
  const at::Tensor existing = Existing(row, logits, classes);
  const at::Tensor largest = Largest(existing);
  // Classes as float32: exact below 2^24, and there are at most a million.
  at::Tensor answer = at::zeros_like(largest);
  if (existing.size(1) > 0)
    answer = existing.argmax(1).add_(row.rank() * logits.size(1)).to(at::kFloat);
  const at::Tensor all = row.AllGather(at::stack({largest, answer}));
  const at::Tensor part = all.select(1, 0).argmax(0, /*keepdim=*/true);
  return all.select(1, 1).gather(0, part).squeeze(0).eq(targets).to(at::kFloat);
}

}  // namespace tactus::model
