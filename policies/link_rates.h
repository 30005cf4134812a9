// How fast the members' links are, and whose holds up what all exchange.

#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/fields.h"
#include "policies/plan.h"

namespace tactus::policies {

struct SlowLink {
  std::uint32_t rank = 0;
  double rate = 0;   // of its link [bytes/s]
  double usual = 0;  // the median of all [bytes/s]
};

// Medians of what each member's latest rounds told of its rate. An exchange is over when the
// slowest link is through with it.
//
// Source: design.
class LinkRates {
 public:
  static constexpr std::size_t kRounds = 12;  // of which a rate is the median
  static constexpr double kSlow = 0.5;        // of what is usual: a slow link has less

  void Start(std::uint32_t members) { rates_.assign(members, {}); }

  // A report of one of the members.
  void Observe(const Report& report);

  // The slowest, where it is slow; nothing while one is not known, or there are but two members,
  // who have one way between them.
  std::optional<SlowLink> Slow() const;

  friend void Fields(auto& archive, Of<LinkRates> auto& links) { archive("rates", links.rates_); }
  friend bool Sound(const LinkRates& links);

 private:
  std::vector<std::deque<double>> rates_;  // [members] of the latest rounds; 0: not told [bytes/s]
};

// What a decision says of a transfer: "a transfer of 1.3 s", and of which link it waits for.
std::string TransferText(double seconds, const std::optional<SlowLink>& link);

}  // namespace tactus::policies
