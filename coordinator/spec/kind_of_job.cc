#include "coordinator/spec/kind_of_job.h"

#include "runtime/sha256.h"

namespace tactus::spec {

// None of these parts has a map, so that equal ones have equal bytes.
std::string KindOfJob(const ResolvedSpec& spec) {
  constexpr std::size_t kDigits = 32;
  v1::JobSpec parts;
  *parts.mutable_model() = spec->model();
  *parts.mutable_data() = spec->data();
  *parts.mutable_optimizer() = spec->optimizer();
  *parts.mutable_adapt() = spec->adapt();
  parts.mutable_adapt()->clear_frozen();
  return runtime::Sha256Of(parts.SerializeAsString()).substr(0, kDigits);
}

}  // namespace tactus::spec
