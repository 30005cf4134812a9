// Text of others that may not be UTF-8: protobuf's messages and JSON hold nothing else. Pure.

#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tactus::runtime {

// Bytes of the character that `text` begins with, 1 to 4; 0: it begins with none. Overlong forms,
// surrogates and what is above U+10FFFF are none. `text` is not empty.
std::size_t Utf8CharacterBytes(std::string_view text);

bool IsUtf8(std::string_view text);

// U+FFFD, which stands for what is no character.
inline constexpr std::string_view kUtf8Replacement = "\xef\xbf\xbd";

// `text` with a replacement for each byte that is not part of a character.
std::string ToUtf8(std::string_view text);

}  // namespace tactus::runtime
