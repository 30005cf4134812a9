#include "agent/model/builtins.h"

#include <array>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "agent/data/field_error.h"

namespace tactus::model {
namespace {

absl::Status Wrong(const std::string& field, const std::string& what) {
  return data::AtField(field, absl::InvalidArgumentError(what));
}

// A size as a job file has it: where it stands in the options, and what is allowed.
struct Size {
  const char* name;
  std::optional<std::uint32_t> ModelOptions::*field;
  std::uint32_t min;
  std::uint32_t max;
};

constexpr std::array<Size, 6> kSizes = {{
    {"width", &ModelOptions::width, 1, 8192},
    {"heads", &ModelOptions::heads, 1, 256},
    {"layers", &ModelOptions::layers, 1, 256},
    {"context", &ModelOptions::context, 1, 65536},
    {"classes", &ModelOptions::classes, 2, 1'000'000},
    {"channels", &ModelOptions::channels, 1, 1024},
}};

// A built-in's sizes by name; those in the map are its defaults, others it does not have.
using SizeMap = std::map<std::string, std::int64_t>;

absl::StatusOr<SizeMap> ReadSizes(const ModelOptions& options, SizeMap sizes) {
  for (const Size& size : kSizes) {
    const std::optional<std::uint32_t>& given = options.*size.field;
    if (!given) continue;
    const std::string field = std::string("model.options.") + size.name;
    const auto known = sizes.find(size.name);
    if (known == sizes.end()) {
      return Wrong(field, options.builtin + " has no such size");
    }
    if (*given < size.min || *given > size.max) {
      return Wrong(field, std::to_string(*given) + " is out of range; allowed: " +
                              std::to_string(size.min) + " to " + std::to_string(size.max));
    }
    known->second = *given;
  }
  return sizes;
}

}  // namespace

absl::StatusOr<BytesLmSizes> ReadBytesLmSizes(const ModelOptions& options) {
  const BytesLmSizes defaults;
  const absl::StatusOr<SizeMap> read = ReadSizes(options, {{"width", defaults.width},
                                                           {"heads", defaults.heads},
                                                           {"layers", defaults.layers},
                                                           {"context", defaults.context}});
  if (!read.ok()) return read.status();
  const BytesLmSizes sizes{.width = read->at("width"),
                           .heads = read->at("heads"),
                           .layers = read->at("layers"),
                           .context = read->at("context")};
  if (sizes.width % sizes.heads != 0) {
    return Wrong("model.options.width", std::to_string(sizes.width) +
                                            " is not a multiple of heads (" +
                                            std::to_string(sizes.heads) + ")");
  }
  return sizes;
}

namespace {

absl::StatusOr<Builtin> MakeBytesLm(const ModelOptions& options) {
  const absl::StatusOr<BytesLmSizes> sizes = ReadBytesLmSizes(options);
  if (!sizes.ok()) return sizes.status();
  return Builtin{BytesLm(*sizes), static_cast<std::uint32_t>(sizes->context)};
}

// Of both image models, which take the same three sizes.
template <typename Sizes>
absl::StatusOr<Sizes> ReadImageSizes(const ModelOptions& options) {
  const Sizes defaults;
  const absl::StatusOr<SizeMap> read = ReadSizes(
      options,
      {{"width", defaults.width}, {"classes", defaults.classes}, {"channels", defaults.channels}});
  if (!read.ok()) return read.status();
  return Sizes{
      .width = read->at("width"), .classes = read->at("classes"), .channels = read->at("channels")};
}

absl::StatusOr<Builtin> MakeCifarCnn(const ModelOptions& options) {
  const absl::StatusOr<CifarCnnSizes> sizes = ReadImageSizes<CifarCnnSizes>(options);
  if (!sizes.ok()) return sizes.status();
  return Builtin{CifarCnn(*sizes), std::nullopt};
}

absl::StatusOr<Builtin> MakeResnet18(const ModelOptions& options) {
  const absl::StatusOr<Resnet18Sizes> sizes = ReadImageSizes<Resnet18Sizes>(options);
  if (!sizes.ok()) return sizes.status();
  return Builtin{Resnet18(*sizes), std::nullopt};
}

}  // namespace

absl::StatusOr<Builtin> MakeBuiltin(const ModelOptions& options) {
  if (options.builtin == "bytes-lm") return MakeBytesLm(options);
  if (options.builtin == "cifar-cnn") return MakeCifarCnn(options);
  if (options.builtin == "resnet18") return MakeResnet18(options);
  return Wrong("model.builtin",
               "\"" + options.builtin + "\" is unknown; allowed: bytes-lm, cifar-cnn, resnet18");
}

absl::Status RefuseSizes(const ModelOptions& options) {
  for (const Size& size : kSizes) {
    if ((options.*size.field).has_value()) {
      return Wrong(std::string("model.options.") + size.name, "only a built-in model takes sizes");
    }
  }
  return absl::OkStatus();
}

}  // namespace tactus::model
