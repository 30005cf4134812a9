#include "agent/collective/registration.h"

namespace tactus::collective {

bool RegisterTogether(Transport& transport, std::span<float> memory, bool fit) {
  const bool registered = fit && transport.Register(memory);
  float votes = registered ? 1 : 0;
  const Completion vote = transport.StartAllReduceSum({&votes, 1})->Wait();
  const bool all =
      vote.progress == Progress::kDone && votes == static_cast<float>(transport.size());
  if (registered && !all) transport.Deregister();
  return all;
}

}  // namespace tactus::collective
