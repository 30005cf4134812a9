// Times of day as people write them in filters.

#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tactus::store {

// Nanoseconds since 1970 of an RFC 3339 time such as 2026-01-31T09:30:00Z, 2026-01-31T09:30:00.25Z
// or 2026-01-31T10:30:00+01:00, years 1970 to 2200, at most nine digits of a second. Nothing when
// it is not one.
std::optional<std::int64_t> ParseRfc3339(std::string_view text);

}  // namespace tactus::store
