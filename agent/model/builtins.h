// The built-in models, as blueprints.

#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "agent/model/blueprint.h"
#include "agent/model/model.h"

namespace tactus::model {

// A pre-norm transformer over bytes: int64 tokens [n, t], t <= context -> logits [n, t, 256].
struct BytesLmSizes {
  std::int64_t width = 128;  // a multiple of heads
  std::int64_t heads = 4;
  std::int64_t layers = 4;
  std::int64_t context = 64;
};
ModuleBlueprint BytesLm(const BytesLmSizes& sizes);

// With defaults for the sizes that are not given. Errors: as MakeBuiltin.
absl::StatusOr<BytesLmSizes> ReadBytesLmSizes(const ModelOptions& options);

// Three convolutions (width, 2 width, 4 width channels) and two linear layers:
// float32 images [n, channels, 32, 32] -> logits [n, classes].
struct CifarCnnSizes {
  std::int64_t width = 32;
  std::int64_t classes = 10;
  std::int64_t channels = 3;
};
ModuleBlueprint CifarCnn(const CifarCnnSizes& sizes);

// ResNet-18 in its form for small images: a 3x3 stem with stride 1 and no max-pooling, four stages
// of two basic blocks (width, 2, 4, 8 width channels): float32 images [n, channels, h, w] -> logits
// [n, classes].
//
// Source: memory, unverified: He et al., "Deep residual learning for image recognition",
// section 4.2.
struct Resnet18Sizes {
  std::int64_t width = 64;
  std::int64_t classes = 10;
  std::int64_t channels = 3;
};
ModuleBlueprint Resnet18(const Resnet18Sizes& sizes);

// A built-in with its sizes filled in.
struct Builtin {
  ModuleBlueprint root;
  std::optional<std::uint32_t> context;  // of a text model
};

// The built-in that options.builtin names, with defaults for the sizes that are not given.
// Errors: InvalidArgument, "model.builtin: ..." (unknown) or "model.options.<size>: ..." (out of
// range, or no size of this model).
absl::StatusOr<Builtin> MakeBuiltin(const ModelOptions& options);

// InvalidArgument when any size is given, for a model that takes none.
absl::Status RefuseSizes(const ModelOptions& options);

}  // namespace tactus::model
