#include "coordinator/job/contact.h"

namespace tactus::job {

void Contact::Miss(const std::string& node, const std::string& reason, Instant now) {
  missed_[node] = reason;
  since_ = now;
}

bool Contact::Hear(const std::string& node, Instant now) {
  if (missed_.erase(node) == 0) return false;
  since_ = now;
  return true;
}

// An older round proves nothing: it may have waited at its agent while that was not heard itself.
void Contact::Prove(std::uint64_t round, Instant now) {
  if (newest_ && round <= *newest_) return;
  newest_ = round;
  since_ = now;
}

// Round numbers count from 0: one that was made behind the newest round was made after more rounds.
void Contact::ProveValidated(std::uint64_t rounds, Instant now) {
  if (rounds <= validated_ || (newest_ && rounds <= *newest_)) return;
  validated_ = rounds;
  since_ = now;
}

bool Contact::Over(const Limits& limits, Instant now) {
  const Instant due = LookDue(limits.patience);
  if (now < due) return false;
  if (look_ && look_->since == since_) return true;
  look_ = {.since = since_, .again = now + limits.second_look};
  return false;
}

Instant Contact::LookDue(Duration patience) const {
  return look_ && look_->since == since_ ? look_->again : since_ + patience;
}

}  // namespace tactus::job
