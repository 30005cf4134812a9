#include "coordinator/job/failure_inquiry.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace tactus::job {

void FailureInquiry::Add(Finding finding, Instant now) {
  if (findings_.empty()) opened_ = now;
  const bool known = std::ranges::any_of(findings_, [&finding](const Finding& other) {
    return other.worker == finding.worker && other.evidence == finding.evidence;
  });
  if (!known) findings_.push_back(std::move(finding));
}

void FailureInquiry::Withdraw(WorkerId worker) {
  std::erase_if(findings_, [worker](const Finding& finding) { return finding.worker == worker; });
}

bool FailureInquiry::Heard(WorkerId worker) const {
  return std::ranges::any_of(findings_, [worker](const Finding& finding) {
    return finding.worker == worker &&
           (finding.evidence == Evidence::kConsequence || finding.evidence == Evidence::kOwnWords);
  });
}

bool FailureInquiry::Conclusive() const { return open() && Best().evidence >= Evidence::kNodeLost; }

const Finding& FailureInquiry::Best() const {
  TACTUS_CHECK(open());
  return *std::ranges::max_element(findings_, {}, &Finding::evidence);
}

}  // namespace tactus::job
