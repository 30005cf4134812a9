// Page tokens: a place in a listing, as text that is of use only with the same database and the
// same listing. Pure functions.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace tactus::store {

// After which item a page begins.
struct PagePosition {
  std::int64_t number = 0;
  std::int64_t second = 0;
  std::string text{};
};

// What a token belongs to.
struct Listing {
  std::string_view server{};  // the database's id
  std::string_view query{};   // what is listed and in which order
};

// Hexadecimal digits.
std::string EncodePageToken(const Listing& listing, const PagePosition& position);

// Errors: InvalidArgument, "page_token: ...": not one of ours, of another database, or of another
// query.
absl::StatusOr<PagePosition> DecodePageToken(const Listing& listing, std::string_view token);

}  // namespace tactus::store
