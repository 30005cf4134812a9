#include "coordinator/spec/mesh_checks.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "coordinator/spec/field_rules.h"
#include "policies/figures.h"
#include "policies/parallelism.h"

namespace tactus::spec {
namespace {

constexpr std::uint32_t kDevicesMax = 1024;
constexpr std::uint32_t kWorkersMax = 65536;
constexpr std::uint64_t kBytes = 256;  // bytes-lm's vocabulary
constexpr const char* kKind = "model.options.mesh.kind";
constexpr const char* kDevices = "model.options.mesh.devices";

const v1::Mesh& MeshOf(const v1::JobSpec& spec) { return spec.model().options().mesh(); }

bool IsSplit(const v1::JobSpec& spec) {
  return MeshOf(spec).kind() > v1::MESH_KIND_NONE && DevicesOfReplica(spec) > 1;
}

std::string KindName(v1::MeshKind kind) { return WordOf(*v1::MeshKind_descriptor(), kind); }

policies::MeshShape ShapeOf(v1::MeshKind kind, std::uint32_t devices) {
  policies::MeshShape shape{.devices = devices};
  if (kind == v1::MESH_KIND_1D) shape.kind = policies::MeshKind::kOneD;
  if (kind == v1::MESH_KIND_2D) shape.kind = policies::MeshKind::kTwoD;
  return shape;
}

// Numbers that a device sends for a layer of a step, there and back.
double MovedBy(const v1::JobSpec& spec, v1::MeshKind kind) {
  const std::uint32_t devices = DevicesOfReplica(spec);
  const policies::MeshShape shape = ShapeOf(kind, devices);
  const policies::MeshTraining training{.recompute = spec.model().options().recompute()};
  const std::uint64_t batch = std::uint64_t{spec.adapt().batch().per_worker()} * devices;
  const policies::TransformerSizes sizes = TransformerSizesOf(spec);
  return policies::ForwardElements(shape, sizes, batch, training) +
         policies::BackwardElements(shape, sizes, batch, training);
}

std::string WhyNot(const v1::JobSpec& spec, v1::MeshKind kind) {
  return policies::ReasonAgainst(ShapeOf(kind, DevicesOfReplica(spec)), TransformerSizesOf(spec));
}

// 1d where both move as much; auto where neither can be.
v1::MeshKind Taken(const v1::JobSpec& spec) {
  const bool line = WhyNot(spec, v1::MESH_KIND_1D).empty();
  const bool grid = WhyNot(spec, v1::MESH_KIND_2D).empty();
  if (!line && !grid) return v1::MESH_KIND_AUTO;
  if (!line) return v1::MESH_KIND_2D;
  const bool less = grid && MovedBy(spec, v1::MESH_KIND_2D) < MovedBy(spec, v1::MESH_KIND_1D);
  return less ? v1::MESH_KIND_2D : v1::MESH_KIND_1D;
}

void CheckShape(const v1::JobSpec& spec, const ResolvedSpec& resolved, FieldChecks& checks) {
  const v1::Mesh& mesh = MeshOf(spec);
  if (!checks.Right(kKind) || !checks.Right(kDevices)) return;
  if (mesh.kind() == v1::MESH_KIND_UNSPECIFIED) {
    return checks.Missing(kKind, "give none, 1d, 2d or auto");
  }
  if (mesh.kind() == v1::MESH_KIND_NONE) {
    if (mesh.devices() <= 1) return;
    return checks.Add(kDevices, "found " + std::to_string(mesh.devices()) +
                                    " with kind none, allowed is 1, or kind 1d, 2d or auto");
  }
  if (!mesh.has_devices()) {
    return checks.Missing(kDevices, "give the devices of a replica, such as 4");
  }
  for (const char* size : {"model.options.width", "model.options.heads"}) {
    if (!checks.Right(size)) return;
  }
  const v1::MeshKind kind = MeshOf(*resolved).kind();
  if (kind != v1::MESH_KIND_AUTO) {
    const std::string why = WhyNot(*resolved, kind);
    if (!why.empty()) checks.Add(kDevices, why);
    return;
  }
  checks.Add(kDevices,
             "found " + std::to_string(mesh.devices()) +
                 " with kind auto, and neither can be: 1d: " + WhyNot(*resolved, v1::MESH_KIND_1D) +
                 "; 2d: " + WhyNot(*resolved, v1::MESH_KIND_2D));
}

void CheckMultiple(const char* field, std::uint32_t found, std::uint32_t devices,
                   FieldChecks& checks) {
  if (!checks.Right(field) || found % devices == 0) return;
  const std::uint32_t below = found / devices * devices;
  std::string nearest = std::to_string(below + devices);
  if (below > 0) nearest = std::to_string(below) + " or " + nearest;
  checks.Add(field, "found " + std::to_string(found) + ", allowed is a multiple of " + kDevices +
                        ", " + std::to_string(devices) + "; the nearest is " + nearest);
}

void CheckWorkersOf(const v1::JobSpec& spec, const ResolvedSpec& resolved, FieldChecks& checks) {
  const std::uint32_t devices = DevicesOfReplica(spec);
  CheckMultiple("workers.min", resolved->workers().min(), devices, checks);
  if (spec.workers().has_max()) {
    CheckMultiple("workers.max", spec.workers().max(), devices, checks);
  }
  if (spec.workers().spares() > 0) {
    checks.Add("workers.spares", "found " + std::to_string(spec.workers().spares()) +
                                     ", allowed with model.options.mesh is 0: a mesh lives or is "
                                     "replaced as a whole");
  }
}

// What only whole models do. why: of the field that asks for parts, or for recomputation.
void CheckWhole(const v1::JobSpec& spec, const std::string& why, FieldChecks& checks) {
  if (spec.model().precision() == v1::PRECISION_BFLOAT16) {
    checks.Add("model.precision", "found bfloat16, allowed with " + why + " is float32");
  }
  const std::string& loss = spec.model().loss();
  if (!loss.empty() && loss != "cross_entropy" && checks.Right("model.loss")) {
    checks.Add("model.loss", "found a module, allowed with " + why + " is cross_entropy");
  }
  if (spec.data().subset().has_craig()) {
    checks.Add("data.subset.craig", "does not go with " + why +
                                        ", which gives no gradients by the model's output; "
                                        "allowed is data.subset.random");
  }
}

void CheckOptimizerOf(const v1::JobSpec& spec, FieldChecks& checks) {
  const v1::Shard shard = spec.optimizer().shard();
  if (shard <= v1::SHARD_NONE) return;
  checks.Add("optimizer.shard",
             "found " + WordOf(*v1::Shard_descriptor(), shard) +
                 " with model.options.mesh, where each device has a part of every layer, and the "
                 "optimizer's state of it; take shard: none");
}

// A replica's devices take each step together, so none can go on while it waits.
void CheckWindows(const v1::JobSpec& spec, FieldChecks& checks) {
  if (!spec.adapt().synchronization().elastic()) return;
  checks.Add("adapt.synchronization.elastic",
             "found true, allowed with model.options.mesh is false: a replica's devices take as "
             "many steps each");
}

// Files that are kept while it trains, or of what was once.
void CheckKept(const v1::JobSpec& spec, FieldChecks& checks) {
  if (spec.has_snapshots()) {
    checks.Add("snapshots",
               "does not go with model.options.mesh, whose devices come together for "
               "checkpoints and the result; allowed are checkpoints");
  }
  if (spec.result() == v1::RESULT_CHOICE_BEST) {
    checks.Add("result", "found best, allowed with model.options.mesh is last");
  }
}

}  // namespace

policies::TransformerSizes TransformerSizesOf(const v1::JobSpec& spec) {
  const v1::BuiltinOptions& options = spec.model().options();
  return {.layers = std::max(1u, options.layers()),
          .hidden = std::max(1u, options.width()),
          .heads = std::max(1u, options.heads()),
          .vocabulary = kBytes,
          .sequence = std::max(1u, options.context()),
          .positions = std::max(1u, options.context()),
          .tied = false};
}

std::uint32_t DevicesOfReplica(const v1::JobSpec& spec) {
  const v1::Mesh& mesh = MeshOf(spec);
  if (mesh.kind() <= v1::MESH_KIND_NONE) return 1;
  return std::clamp(mesh.devices(), 1u, kDevicesMax);
}

void ResolveMesh(const v1::JobSpec& given, v1::JobSpec* spec) {
  if (MeshOf(*spec).kind() == v1::MESH_KIND_AUTO && MeshOf(*spec).has_devices()) {
    spec->mutable_model()->mutable_options()->mutable_mesh()->set_kind(Taken(*spec));
  }
  const std::uint32_t devices = DevicesOfReplica(*spec);
  if (devices == 1) return;
  v1::Workers& workers = *spec->mutable_workers();
  if (!given.workers().has_min()) {
    const std::uint32_t most = given.workers().has_max() ? workers.max() : kWorkersMax;
    workers.set_min(std::min(devices, most));
  }
  if (!given.workers().has_max()) workers.set_max(kWorkersMax / devices * devices);
}

std::string MeshWords(const ResolvedSpec& spec) {
  if (!IsSplit(*spec)) return "";
  const std::uint32_t devices = DevicesOfReplica(*spec);
  const v1::MeshKind kind = MeshOf(*spec).kind();
  const auto side =
      static_cast<std::uint32_t>(std::lround(std::sqrt(static_cast<double>(devices))));
  std::string words =
      KindName(kind) + ", " +
      (kind == v1::MESH_KIND_2D ? std::to_string(side) + " x " + std::to_string(side)
                                : std::to_string(devices)) +
      " devices; each sends " + policies::Figure(MovedBy(*spec, kind)) +
      " numbers a layer and step";
  const v1::MeshKind other = kind == v1::MESH_KIND_1D ? v1::MESH_KIND_2D : v1::MESH_KIND_1D;
  if (!WhyNot(*spec, other).empty()) return words;
  return words + ", with " + KindName(other) + " " + policies::Figure(MovedBy(*spec, other));
}

void CheckMesh(const v1::JobSpec& spec, const ResolvedSpec& resolved, FieldChecks& checks) {
  if (spec.model().builtin() != "bytes-lm") return;  // refused where fields are checked
  if (spec.model().options().has_mesh()) CheckShape(spec, resolved, checks);
  if (spec.model().options().recompute()) CheckWhole(spec, "model.options.recompute", checks);
  if (!IsSplit(spec)) return;
  if (!spec.model().options().recompute()) CheckWhole(spec, "model.options.mesh", checks);
  CheckWorkersOf(spec, resolved, checks);
  CheckOptimizerOf(spec, checks);
  CheckWindows(spec, checks);
  CheckKept(spec, checks);
}

}  // namespace tactus::spec
