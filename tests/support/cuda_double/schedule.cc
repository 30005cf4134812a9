#include "tests/support/cuda_double/schedule.h"

#include <charconv>
#include <random>

#include "tests/support/cuda_double/runtime.h"

namespace tactus::cuda_double {

std::optional<Timing> ParseTiming(std::string_view text) {
  constexpr std::string_view kSeeded = "random:";
  if (text == "lazy") return Timing{.schedule = Schedule::kLazy};
  if (text == "eager") return Timing{.schedule = Schedule::kEager};
  if (text == "random")
    return Timing{.schedule = Schedule::kRandom, .seed = std::random_device{}()};
  if (!text.starts_with(kSeeded)) return std::nullopt;
  Timing timing{.schedule = Schedule::kRandom};
  text.remove_prefix(kSeeded.size());
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), timing.seed);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return timing;
}

std::string TextOf(const Timing& timing) {
  if (timing.schedule == Schedule::kLazy) return "lazy";
  if (timing.schedule == Schedule::kEager) return "eager";
  return "random:" + std::to_string(timing.seed);
}

void SetTiming(const Timing& timing) {
  const std::lock_guard lock(TheRuntime().mutex);
  TheRuntime().timing = timing;
}

}  // namespace tactus::cuda_double
