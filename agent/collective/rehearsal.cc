#include "agent/collective/rehearsal.h"

#include <memory>
#include <vector>

#include "base/check.h"

namespace tactus::collective {

std::string Rehearse(Transport& transport, std::span<float> zeros) {
  TACTUS_CHECK(zeros.size() >= 2);
  const std::size_t half = zeros.size() / 2;
  const int neighbour = transport.rank() ^ 1;
  std::vector<std::unique_ptr<Collective>> parts;
  parts.push_back(transport.StartAllReduceSum(zeros.first(1)));
  parts.push_back(transport.StartAllReduceSum(zeros));
  parts.push_back(transport.StartBroadcast(zeros, 0));
  if (neighbour < transport.size()) {
    parts.push_back(transport.StartExchange(neighbour, std::as_bytes(zeros.first(half)),
                                            std::as_writable_bytes(zeros.subspan(half, half))));
  }
  std::string reason;
  for (const std::unique_ptr<Collective>& part : parts) {
    const Completion completion = part->Wait();
    if (reason.empty() && completion.progress == Progress::kFailed) reason = completion.reason;
  }
  return reason;
}

}  // namespace tactus::collective
