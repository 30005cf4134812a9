#include "bench/control_plane/sample_job.h"

namespace tactus::bench {

v1::JobSpec SampleSpec(const std::string& name, std::uint32_t workers) {
  v1::JobSpec spec;
  spec.set_name(name);
  spec.mutable_model()->set_builtin("bytes-lm");
  spec.mutable_data()->set_text("/corpus.txt");
  spec.mutable_optimizer()->mutable_sgd()->set_learning_rate(0.1);
  spec.mutable_optimizer()->mutable_sgd()->set_momentum(0.9);
  spec.mutable_stop()->set_rounds(1'000'000'000);
  spec.mutable_workers()->set_min(workers);
  spec.mutable_workers()->set_max(workers);
  spec.mutable_adapt()->mutable_batch()->set_policy(v1::BATCH_POLICY_PROPORTIONAL);
  spec.mutable_adapt()->mutable_batch()->set_per_worker(32);
  return spec;
}

}  // namespace tactus::bench
