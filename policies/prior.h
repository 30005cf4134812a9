// What the planner of one job hands on to the next job of its kind.

#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/fields.h"
#include "policies/encodings.h"

namespace tactus::policies {

// Of a job whose rounds were all of use. It is small, as thousands are kept, and has what a first
// plan is made and tried by, no more.
struct Prior {
  // Of local steps, as the loss judged; 1: an exchange in every step. >= 1
  std::uint32_t period = 1;
  double transfer_seconds = 0;           // D of a round, as it was measured
  Encoding encoding = Encoding::kDense;  // that it was measured with

  friend bool operator==(const Prior&, const Prior&) = default;
  friend void Fields(auto& archive, Of<Prior> auto& prior) {
    archive("period", prior.period);
    archive("transfer_seconds", prior.transfer_seconds);
    archive("encoding", prior.encoding);
  }
  friend bool Sound(const Prior& prior) {
    return prior.period >= 1 && std::isfinite(prior.transfer_seconds) &&
           prior.transfer_seconds >= 0;
  }
};

// As bytes that tell whoever has other fields, or finds them damaged, that they are not for him.
std::string BytesOf(const Prior& prior);

struct ReadPrior {
  std::optional<Prior> prior{};
  std::string refusal{};  // where there is none: why not, a clause
};
// The bytes may be anything.
ReadPrior PriorOf(std::string_view bytes);

}  // namespace tactus::policies
