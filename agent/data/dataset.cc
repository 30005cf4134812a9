#include "agent/data/dataset.h"

#include "absl/status/status.h"
#include "agent/data/cifar_dataset.h"
#include "agent/data/field_error.h"
#include "agent/data/images.h"
#include "agent/data/pair_dataset.h"
#include "agent/data/text_dataset.h"
#include "base/check.h"

namespace tactus::data {
namespace {

constexpr double kValidationFractionMax = 0.9;
constexpr std::uint32_t kContextMax = 1'048'576;  // [bytes]

absl::Status Wrong(const std::string& field, const std::string& what) {
  return AtField(field, absl::InvalidArgumentError(what));
}

absl::Status Validate(const DataOptions& options) {
  const int sources = int{options.text.has_value()} + int{options.cifar.has_value()} +
                      int{options.idx.has_value()} + int{options.numpy.has_value()};
  if (sources != 1) {
    return Wrong("data", "exactly one of text, cifar, idx and numpy is needed, " +
                             std::to_string(sources) + " are set");
  }
  // Written so that not-a-number is refused.
  if (!(options.validation_fraction >= 0.0 &&
        options.validation_fraction <= kValidationFractionMax)) {
    return Wrong("data.validation_fraction",
                 std::to_string(options.validation_fraction) + " is not in [0, 0.9]");
  }
  if (options.text && (options.context < 1 || options.context > kContextMax)) {
    return Wrong("data.context",
                 std::to_string(options.context) + " is not 1 to " + std::to_string(kContextMax));
  }
  return absl::OkStatus();
}

absl::StatusOr<Split> Of(const std::string& field, absl::StatusOr<Split> split) {
  if (!split.ok()) return AtField(field, split.status());
  return split;
}

absl::StatusOr<Split> OpenSource(const DataOptions& options) {
  const double fraction = options.validation_fraction;
  if (options.text) {
    return Of("data.text", OpenText({.path = *options.text,
                                     .context = options.context,
                                     .validation_fraction = fraction}));
  }
  if (options.cifar) return Of("data.cifar", OpenCifar(*options.cifar, fraction));
  if (options.idx) return Of("data.idx", OpenIdx(*options.idx, fraction));
  return Of("data.numpy", OpenNumpy(*options.numpy, fraction));
}

}  // namespace

std::size_t SizeOf(ElementType type) {
  switch (type) {
    case ElementType::kFloat32:
      return 4;
    case ElementType::kInt64:
      return 8;
    case ElementType::kUint8:
    case ElementType::kBool:
      return 1;
  }
  TACTUS_CHECK(false);
}

std::size_t TensorSpec::ElementsPerSample() const {
  std::size_t elements = 1;
  for (const std::int64_t dimension : shape) elements *= static_cast<std::size_t>(dimension);
  return elements;
}

TensorPlaces PlacesOf(std::span<const TensorSpec> tensors, std::size_t samples) {
  constexpr std::size_t kAlignment = 64;
  TensorPlaces places;
  for (const TensorSpec& tensor : tensors) {
    places.offsets.push_back((places.bytes + kAlignment - 1) / kAlignment * kAlignment);
    places.bytes = places.offsets.back() + samples * tensor.BytesPerSample();
  }
  return places;
}

absl::StatusOr<Split> OpenData(const DataOptions& options) {
  if (absl::Status valid = Validate(options); !valid.ok()) return valid;
  absl::StatusOr<Split> split = OpenSource(options);
  if (!split.ok() || !options.images) return split;
  return Of("data.images", Normalised(*std::move(split), *options.images));
}

}  // namespace tactus::data
