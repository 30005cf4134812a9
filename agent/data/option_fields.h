// How a specification's `data` is read; see agent/engine/option_fields.h.

#pragma once

#include "agent/data/dataset.h"
#include "base/fields.h"

namespace tactus::data {

void Fields(auto& archive, Of<DataOptions::FilePair> auto& pair) {
  archive("inputs", pair.inputs);
  archive("targets", pair.targets);
  archive("more_inputs", pair.more_inputs);
  archive("input_types", pair.input_types);
}

void Fields(auto& archive, Of<ImageOptions> auto& images) {
  archive("mean", images.mean);
  archive("deviation", images.deviation);
  if (archive.Has("crop")) archive("crop", images.crop);
  if (archive.Has("flip")) archive("flip", images.flip);
}

void Fields(auto& archive, Of<DataOptions> auto& data) {
  archive("text", data.text);
  archive("cifar", data.cifar);
  archive("idx", data.idx);
  archive("numpy", data.numpy);
  archive("images", data.images);
  archive("context", data.context);
  archive("validation_fraction", data.validation_fraction);
  archive("validation_samples_max", data.validation_samples_max);
}

}  // namespace tactus::data
