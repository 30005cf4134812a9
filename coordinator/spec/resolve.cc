#include "coordinator/spec/resolve.h"

#include <cstdint>

#include "coordinator/spec/field_rules.h"
#include "coordinator/spec/mesh_checks.h"

namespace tactus::spec {
namespace {

// Over which momentum between rounds grows where an optimizer's first steps are as long whatever
// the gradient (decision 55).
constexpr std::uint32_t kMomentumSteps = 256;

// A program's optimizer is known when it has loaded: it may be any.
bool StepsByGradients(const v1::JobSpec& spec) {
  return spec.optimizer().has_sgd() && !spec.has_program();
}

}  // namespace

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
  v1::SynchronizationAxis& rounds = *adapt.mutable_synchronization();
  if (rounds.policy() == v1::SYNCHRONIZATION_POLICY_AUTO && !StepsByGradients(spec) &&
      !given.adapt().synchronization().has_block_momentum_steps()) {
    rounds.set_block_momentum_steps(kMomentumSteps);
  }
  ResolveMesh(given, &spec);
  return ResolvedSpec(std::move(spec));
}

}  // namespace tactus::spec
