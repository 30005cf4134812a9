#include "bench/kernels/options.h"

#include <charconv>
#include <string_view>

namespace tactus::bench {
namespace {

constexpr std::size_t kSizeMaxMebibytes = 4096;

// "16,64" as bytes; nothing where that is no list of mebibytes.
std::vector<std::size_t> SizesFrom(std::string_view text) {
  std::vector<std::size_t> sizes;
  while (true) {
    const std::string_view one = text.substr(0, text.find(','));
    std::size_t mebibytes = 0;
    const auto [end, error] = std::from_chars(one.data(), one.data() + one.size(), mebibytes);
    if (error != std::errc() || end != one.data() + one.size()) return {};
    if (mebibytes == 0 || mebibytes > kSizeMaxMebibytes) return {};
    sizes.push_back(mebibytes * kMebibyte);
    if (one.size() == text.size()) return sizes;
    text.remove_prefix(one.size() + 1);
  }
}

// Takes over an option with its value. False: there is no such option, or no such value.
bool Take(std::string_view name, const char* value, Options& options) {
  if (name == "--filter") {
    options.filter = value;
  } else if (name == "--json") {
    options.json = value;
  } else if (name == "--sizes") {
    options.sizes = SizesFrom(value);
    return !options.sizes.empty();
  } else {
    return false;
  }
  return true;
}

}  // namespace

std::optional<Options> Parse(std::span<const char* const> arguments) {
  Options options;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view name = arguments[i];
    if (name == "--quick") {
      options.sizes = {16 * kMebibyte};
      options.repetitions = 3;
    } else if (name == "--graph") {
      options.graph = true;
    } else if (i + 1 == arguments.size() || !Take(name, arguments[i + 1], options)) {
      return std::nullopt;
    } else {
      ++i;
    }
  }
  return options;
}

}  // namespace tactus::bench
