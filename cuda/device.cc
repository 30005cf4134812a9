#include "cuda/device.h"

#include <charconv>
#include <optional>
#include <string>
#include <utility>

namespace tactus::cuda {
namespace {

struct DeviceName {
  std::string_view kind;
  int index = 0;
};

// "cpu:12" -> {"cpu", 12}; nothing unless the index is digits alone and fits an int.
std::optional<DeviceName> Parse(std::string_view name) {
  const std::size_t colon = name.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  DeviceName parsed{.kind = name.substr(0, colon)};
  const std::string_view digits = name.substr(colon + 1);
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string_view::npos) {
    return std::nullopt;
  }
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), parsed.index);
  if (error != std::errc()) return std::nullopt;
  return parsed;
}

}  // namespace

OpenedDevice OpenDevice(std::string_view name) {
  const std::optional<DeviceName> parsed = Parse(name);
  if (parsed && parsed->kind == "cpu") {
    return {.device = MakeHostDevice("cpu:" + std::to_string(parsed->index)), .reason = ""};
  }
  if (parsed && parsed->kind == "cuda") return OpenCudaDevice(parsed->index);
  return {.device = nullptr,
          .reason = "device '" + std::string(name) + "' does not exist: expected cpu:N or cuda:N"};
}

}  // namespace tactus::cuda
