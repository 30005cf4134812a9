#include "coordinator/spec/shape_of_job.h"

#include "coordinator/spec/field_checks.h"
#include "runtime/sha256.h"

namespace tactus::spec {

// As model::WhyNotFused has it of the model, which the worker asks again.
std::string WhyByItself(const ResolvedSpec& spec) {
  if (spec->has_program()) {
    return "program: its code is a process; one program trains several models together by "
           "tactus_train.fused (docs/python.md)";
  }
  const v1::Workers& workers = spec->workers();
  if (workers.max() != 1) {
    return "workers.max: found " + std::to_string(workers.max()) + ", allowed is 1";
  }
  if (workers.spares() != 0) {
    return "workers.spares: found " + std::to_string(workers.spares()) + ", allowed is 0";
  }
  const v1::Model& model = spec->model();
  if (model.has_torchscript()) return "model.torchscript: allowed is a built-in model";
  if (model.builtin() != "bytes-lm" && model.builtin() != "cifar-cnn") {
    return "model.builtin: found " + Shown(model.builtin()) +
           ", allowed are bytes-lm and cifar-cnn";
  }
  if (model.precision() == v1::PRECISION_BFLOAT16) {
    return "model.precision: found bfloat16, allowed is float32";
  }
  if (model.loss() != "cross_entropy") {
    return "model.loss: found " + Shown(model.loss()) + ", allowed is cross_entropy";
  }
  return "";
}

// None of these parts has a map, so that equal ones have equal bytes.
std::string ShapeOfJob(const ResolvedSpec& spec) {
  if (!WhyByItself(spec).empty()) return "";
  constexpr std::size_t kDigits = 32;
  v1::JobSpec parts;
  *parts.mutable_model() = spec->model();
  *parts.mutable_data() = spec->data();
  parts.mutable_adapt()->mutable_batch()->set_per_worker(spec->adapt().batch().per_worker());
  return runtime::Sha256Of(parts.SerializeAsString()).substr(0, kDigits);
}

}  // namespace tactus::spec
