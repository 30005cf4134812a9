// The escapes of URIs: "%5B" is "[". Pure.

#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tactus::runtime {

// `text` with the bytes that its escapes stand for, whatever they are. Nothing: one is not whole.
std::optional<std::string> DecodePercent(std::string_view text);

}  // namespace tactus::runtime
