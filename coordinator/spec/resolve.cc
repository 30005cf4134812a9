#include "coordinator/spec/resolve.h"

#include "coordinator/spec/field_rules.h"
#include "coordinator/spec/mesh_checks.h"

namespace tactus::spec {

ResolvedSpec Resolve(v1::JobSpec spec) {
  const v1::JobSpec given = spec;
  if (spec.optimizer().rule_case() == v1::Optimizer::RULE_NOT_SET) {
    spec.mutable_optimizer()->mutable_sgd();
  }
  FillDefaults("", &spec);
  v1::Model& model = *spec.mutable_model();
  if (model.has_builtin()) FillDefaults(model.builtin(), model.mutable_options());
  // Who evaluates knows it by its former name alone.
  v1::Validation& validation = *spec.mutable_validation();
  if (validation.has_samples()) {
    spec.mutable_data()->set_validation_samples_max(validation.samples());
  } else {
    validation.set_samples(spec.data().validation_samples_max());
  }
  v1::Adapt& adapt = *spec.mutable_adapt();
  if (!adapt.learning_rate().has_base_batch()) {
    adapt.mutable_learning_rate()->set_base_batch(adapt.batch().per_worker());
  }
  ResolveMesh(given, &spec);
  return ResolvedSpec(std::move(spec));
}

}  // namespace tactus::spec
