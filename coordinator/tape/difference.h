// Where two lists of actions differ, for a person.

#pragma once

#include <optional>
#include <string>

#include "coordinator/job/actions.h"

namespace tactus::tape {

struct Difference {
  std::string place{};     // "action 3, publish_progress: progress.plan.reason"
  std::string expected{};  // JSON in ASCII, at most kValueBytesMax; "nothing"
  std::string found{};
};
inline constexpr std::size_t kValueBytesMax = 300;

// The first difference in the order of actions, of names and of a list's items; empty when the
// lists are encoded alike, so that a loss that is not a number equals itself.
std::optional<Difference> FirstDifference(const job::Actions& expected, const job::Actions& found);

}  // namespace tactus::tape
