// What a layer of bytes-lm costs that is split over devices: what it moves, and how much memory a
// pass takes, of a device, counted in passes of meshes of threads, beside the formulas of the
// Optimus paper; in two dimensions and in one. Prints Markdown.
//
// usage: bench_partitioned [SAMPLES_A_DEVICE [CONTEXT [WIDTH]]]

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "agent/collective/mesh_groups.h"
#include "agent/model/parallel/partition.h"
#include "agent/model/parallel/partitioned_model.h"
#include "base/check.h"
#include "base/rng.h"
#include "tests/agent/model/parallel/memory_watch.h"

namespace tactus::model {
namespace {

struct Sizes {
  std::uint64_t samples = 4;  // a device
  std::uint64_t context = 64;
  std::uint32_t width = 144;
};

// Of one member, in elements, and the most bytes that a pass took beside parameters and gradients.
struct Cost {
  std::uint64_t forward = 0;
  std::uint64_t products_forward = 0;  // of these, what products move
  std::uint64_t pass = 0;
  std::uint64_t products_pass = 0;
  std::int64_t peak_bytes = 0;
};

std::uint64_t OfProducts(const Volume& volume, MeshKind kind) {
  return kind == MeshKind::k1d ? volume.all_summed : volume.broadcast + volume.summed;
}

Cost CostOf(PartitionedModel& model, MeshKind kind, const Sizes& sizes) {
  std::vector<std::int64_t> tokens(sizes.samples * sizes.context);
  Rng rng(1);
  for (std::int64_t& token : tokens) token = static_cast<std::int64_t>(rng.Below(256));
  const data::TensorSpec spec{data::ElementType::kInt64,
                              {static_cast<std::int64_t>(sizes.context)}};
  const Examples examples{.count = sizes.samples,
                          .input_specs = {spec},
                          .target_spec = spec,
                          .inputs = std::as_bytes(std::span(tokens)),
                          .targets = std::as_bytes(std::span(tokens))};
  Cost cost;
  TACTUS_CHECK(model.Evaluate(examples).ok());
  const Volume forward = model.TakeMoved();
  {
    const MemoryWatch watch;
    TACTUS_CHECK(model.TryOut(examples).ok());
    cost.peak_bytes = watch.peak();
  }
  const Volume pass = model.TakeMoved();
  cost.forward = forward.Total();
  cost.products_forward = OfProducts(forward, kind);
  cost.pass = pass.Total();
  cost.products_pass = OfProducts(pass, kind);
  return cost;
}

// The mean over the members, of a model with so many layers.
Cost Measure(ModelOptions options, std::uint32_t layers, const Sizes& sizes) {
  options.layers = layers;
  const collective::MeshShape shape = *MeshShapeOf(options);
  const int devices = shape.devices();
  std::vector<collective::MeshGroups> groups =
      collective::MakeInProcessMeshes(devices, shape, [] { return Instant{}; });
  std::vector<Cost> costs(static_cast<std::size_t>(devices));
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < costs.size(); ++rank) {
    threads.emplace_back([&, rank] {
      auto model = *PartitionedModel::Open(options, *groups[rank].row, *groups[rank].column);
      std::vector<float> parameters(cuda::FlatLength(model->segments()) + 16);
      void* start = parameters.data();
      std::size_t space = parameters.size() * sizeof(float);
      TACTUS_CHECK(std::align(64, space - 64, start, space) != nullptr);
      double loss = 0;
      model->Bind({static_cast<float*>(start), cuda::FlatLength(model->segments())}, {&loss, 1});
      costs[rank] = CostOf(*model, options.mesh.kind, sizes);
    });
  }
  for (std::thread& thread : threads) thread.join();
  // All members move as much; of memory the one that needs most.
  Cost most = costs.front();
  for (const Cost& cost : costs) most.peak_bytes = std::max(most.peak_bytes, cost.peak_bytes);
  return most;
}

void PrintRow(MeshKind kind, std::uint32_t devices, bool recompute, const Sizes& sizes) {
  ModelOptions options{.builtin = "bytes-lm", .mesh = {.kind = kind, .devices = devices}};
  options.recompute = recompute;
  options.width = sizes.width;
  options.heads = 12;
  options.context = static_cast<std::uint32_t>(sizes.context);
  const Cost two = Measure(options, 2, sizes);
  const Cost four = Measure(options, 4, sizes);
  const auto layer = [&](std::uint64_t Cost::*of) {
    return static_cast<double>(four.*of - two.*of) / 2;
  };
  const double p = devices;
  const double tokens = static_cast<double>(sizes.samples * sizes.context) * p;
  const double h = sizes.width;
  const double root = std::sqrt(p);
  const bool grid = kind == MeshKind::k2d;
  const double operands = 7 * tokens * h + 12 * h * h;
  const double formula = grid ? operands / root : 4 * (p - 1) / p * tokens * h;
  const double tree = grid ? std::log2(p) / (2 * root) * operands : formula;
  const double times = grid ? (recompute ? 3 : 2) : (recompute ? 2 : 1);
  const double backward = layer(&Cost::products_pass) - layer(&Cost::products_forward);
  const double kept = static_cast<double>(four.peak_bytes - two.peak_bytes) / 2 / 4;
  const double input = grid ? tokens * h / p : tokens * h;
  std::printf("| %s %u%s | %.0f | %.0f | %.0f | %.3f | %.0f | %.3f | %.0f | %.0f | %.0f | %.2f |\n",
              grid ? "2-D" : "1-D", devices, recompute ? "" : ", kept",
              layer(&Cost::products_forward), formula, tree,
              formula > 0 ? layer(&Cost::products_forward) / formula : 1.0, backward,
              formula > 0 ? backward / (times * formula) : 1.0,
              layer(&Cost::pass) - layer(&Cost::products_pass), kept, input,
              static_cast<double>(four.peak_bytes) / 1e6);
}

void Run(const Sizes& sizes) {
  std::printf(
      "%llu samples of %llu positions a device, width %u; elements of one device and layer\n\n",
      static_cast<unsigned long long>(sizes.samples),
      static_cast<unsigned long long>(sizes.context), sizes.width);
  std::printf(
      "| mesh | forward, products | formula | with trees | of formula | backward, products "
      "| of formula | pass, all else | kept | b s h (/ p) | peak of 4 layers, MB |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|\n");
  for (const bool recompute : {true, false}) {
    for (const std::uint32_t devices : {4U, 9U}) {
      PrintRow(MeshKind::k2d, devices, recompute, sizes);
    }
    for (const std::uint32_t devices : {4U, 12U}) {
      PrintRow(MeshKind::k1d, devices, recompute, sizes);
    }
  }
}

}  // namespace
}  // namespace tactus::model

int main(int count, char** arguments) {
  tactus::model::Sizes sizes;
  if (count > 1) sizes.samples = std::strtoull(arguments[1], nullptr, 10);
  if (count > 2) sizes.context = std::strtoull(arguments[2], nullptr, 10);
  if (count > 3) sizes.width = static_cast<std::uint32_t>(std::strtoul(arguments[3], nullptr, 10));
  tactus::model::Run(sizes);
  return 0;
}
