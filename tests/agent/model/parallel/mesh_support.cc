#include "tests/agent/model/parallel/mesh_support.h"

#include <gtest/gtest.h>

#include <exception>
#include <iostream>

#include "agent/model/parallel/partition.h"
#include "base/check.h"
#include "base/rng.h"
#include "cuda/ops/segments.h"
#include "tests/agent/collective/groups.h"

namespace tactus::model {
namespace {

using collective::MeshGroups;
using collective::MeshShape;

void OnGroups(const MeshShape& shape, const std::function<void(int rank, MeshGroups&)>& body) {
  std::vector<MeshGroups> groups =
      collective::MakeInProcessMeshes(shape.devices(), shape, [] { return collective::kTestNow; });
  collective::OnEveryRank(shape.devices(), [&](int rank) {
    MeshGroups& own = groups[static_cast<std::size_t>(rank)];
    try {
      body(rank, own);
    } catch (const std::exception& error) {
      ADD_FAILURE() << "rank " << rank << ": " << error.what();
      own.Abort("a test has failed");
    }
  });
}

std::unique_ptr<PartitionedModel> OpenOrDie(const ModelOptions& options, MeshGroups& groups) {
  auto model = PartitionedModel::Open(options, *groups.row, *groups.column);
  if (!model.ok()) std::cerr << model.status() << "\n";
  TACTUS_CHECK(model.ok());
  return *std::move(model);
}

}  // namespace

void OnMesh(const MeshShape& shape, const std::function<void(const Mesh&)>& body) {
  OnGroups(shape, [&body](int /*rank*/, MeshGroups& groups) {
    Group row(*groups.row);
    Group column(*groups.column);
    Group::Pair(row, column);
    body({.row = row, .column = column});
  });
}

at::Tensor BlockOf(const at::Tensor& matrix, int i, int j, const MeshShape& shape) {
  return matrix.chunk(shape.rows, 0)[static_cast<std::size_t>(i)]
      .chunk(shape.columns, 1)[static_cast<std::size_t>(j)]
      .contiguous()
      .clone();
}

at::Tensor Assembly::Whole() const {
  std::vector<at::Tensor> rows;
  for (int i = 0; i < shape_.rows; ++i) {
    std::vector<at::Tensor> row;
    for (int j = 0; j < shape_.columns; ++j) row.push_back(At(i, j));
    rows.push_back(at::cat(row, 1));
  }
  return at::cat(rows, 0);
}

at::Tensor WholeNumbers(std::vector<std::int64_t> shape, std::int64_t limit, std::uint64_t seed) {
  Rng rng = Rng(seed).Fork("whole numbers");
  at::Tensor tensor = at::empty(shape, at::TensorOptions().dtype(at::kFloat));
  float* const values = tensor.data_ptr<float>();
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    const auto drawn =
        static_cast<std::int64_t>(rng.Below(static_cast<std::uint64_t>(2 * limit + 1)));
    values[i] = static_cast<float>(drawn - limit);
  }
  return tensor;
}

BoundPart::BoundPart(const ModelOptions& options, MeshGroups& groups)
    : model(OpenOrDie(options, groups)),
      parameters(cuda::FlatLength(model->segments())),
      gradients(parameters.span().size()) {
  model->Bind(parameters.span(), {&loss_sum, 1});
}

double BoundPart::Step(const Examples& examples) {
  loss_sum = 0;
  const absl::Status status = model->ForwardBackward(examples, [this](SegmentGradient gradient) {
    const cuda::Segment& segment = model->segments()[gradient.segment];
    for (std::size_t i = 0; gradient.values != nullptr && i < segment.length; ++i) {
      gradients.span()[segment.offset + i] += gradient.values[i];
    }
  });
  EXPECT_TRUE(status.ok()) << status;
  return loss_sum;
}

void BoundPart::Descend(float rate) {
  for (std::size_t i = 0; i < parameters.span().size(); ++i) {
    parameters.span()[i] -= rate * gradients.span()[i];
    gradients.span()[i] = 0;
  }
}

Examples ShareOf(const ExampleSet& set, std::uint64_t first, std::uint64_t count, int rank,
                 std::uint64_t members) {
  const auto index = static_cast<std::uint64_t>(rank);
  const std::uint64_t begin = count * index / members;
  return set.Range(first + begin, count * (index + 1) / members - begin);
}

ModelOptions SmallLm(MeshKind kind, std::uint32_t devices) {
  ModelOptions options{.builtin = "bytes-lm", .mesh = {.kind = kind, .devices = devices}};
  options.width = 24;
  options.heads = 12;
  options.layers = 2;
  options.context = 8;
  options.seed = 5;
  return options;
}

void OnParts(const ModelOptions& options, const std::function<void(int rank, BoundPart&)>& body) {
  const absl::StatusOr<MeshShape> shape = MeshShapeOf(options);
  TACTUS_CHECK(shape.ok());
  OnGroups(*shape, [&](int rank, MeshGroups& groups) {
    BoundPart part(options, groups);
    body(rank, part);
  });
}

}  // namespace tactus::model
