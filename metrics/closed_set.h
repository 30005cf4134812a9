// The words of a label as one text, put together by the compiler.

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace tactus::metrics {

template <const auto& kWords>
inline constexpr auto kJoinedWords = [] {
  constexpr std::size_t kLength = [] {
    std::size_t length = kWords.size();  // of the bars, and one of the end
    for (const std::string_view word : kWords) length += word.size();
    return length;
  }();
  std::array<char, kLength> joined{};
  char* at = joined.data();
  for (const std::string_view word : kWords) {
    if (at != joined.data()) *at++ = '|';
    at = std::ranges::copy(word, at).out;
  }
  return joined;
}();

// "a|b|c" of an array of words with static storage: MetricLabel::values.
template <const auto& kWords>
constexpr std::string_view ClosedSet() {
  return {kJoinedWords<kWords>.data(), kJoinedWords<kWords>.size() - 1};
}

}  // namespace tactus::metrics
