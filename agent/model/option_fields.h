// How a specification's `model` is read; see agent/engine/option_fields.h.

#pragma once

#include <string_view>

#include "agent/model/model.h"
#include "base/fields.h"

namespace tactus::model {

constexpr std::string_view NameOf(Precision precision) {
  return precision == Precision::kFloat32 ? "float32" : "bfloat16";
}

constexpr std::string_view NameOf(MeshKind kind) {
  if (kind == MeshKind::kNone) return "none";
  return kind == MeshKind::k1d ? "1d" : "2d";
}

}  // namespace tactus::model

namespace tactus {

template <>
inline constexpr int kEnumMax<model::MeshKind> = static_cast<int>(model::MeshKind::k2d);
template <>
inline constexpr int kEnumMax<model::Precision> = static_cast<int>(model::Precision::kBfloat16);

}  // namespace tactus

namespace tactus::model {

void Fields(auto& archive, Of<ModelOptions> auto& model) {
  if (archive.Has("builtin")) archive("builtin", model.builtin);
  if (archive.Has("torchscript")) archive("torchscript", model.torchscript);
  archive("loss", model.loss);
  if (archive.Has("output")) archive("output", model.output);
  archive("precision", model.precision);
  archive.Within("options", [&](auto& sizes) {
    sizes("width", model.width);
    sizes("heads", model.heads);
    sizes("layers", model.layers);
    sizes("context", model.context);
    sizes("classes", model.classes);
    sizes("channels", model.channels);
    if (sizes.Has("recompute")) sizes("recompute", model.recompute);
    sizes.Within("mesh", [&](auto& mesh) {
      mesh("kind", model.mesh.kind);
      if (mesh.Has("devices")) mesh("devices", model.mesh.devices);
    });
  });
}

}  // namespace tactus::model
