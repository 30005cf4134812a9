#include "coordinator/spec/optimizer_checks.h"

#include <string>

#include "agent/engine/optimizer.h"

namespace tactus::spec {
namespace {

void CheckSgd(const v1::Sgd& sgd, FieldChecks& checks) {
  const std::string field = "optimizer.sgd.";
  if (sgd.has_learning_rate()) checks.Real(field + "learning_rate", sgd.learning_rate(), kPositive);
  if (sgd.has_momentum()) checks.Real(field + "momentum", sgd.momentum(), kBelowOne);
  if (sgd.has_weight_decay()) checks.Real(field + "weight_decay", sgd.weight_decay(), kNotNegative);
  if (sgd.nesterov() && sgd.momentum() == 0) {
    checks.Add(field + "nesterov",
               "found true without momentum; give optimizer.sgd.momentum above 0");
  }
}

// What Adam and LAMB have in common.
template <typename Moments>
void CheckMoments(const std::string& field, const Moments& moments, FieldChecks& checks) {
  if (moments.has_learning_rate())
    checks.Real(field + "learning_rate", moments.learning_rate(), kPositive);
  if (moments.has_beta1()) checks.Real(field + "beta1", moments.beta1(), kBelowOne);
  if (moments.has_beta2()) checks.Real(field + "beta2", moments.beta2(), kBelowOne);
  if (moments.has_epsilon()) checks.Real(field + "epsilon", moments.epsilon(), kPositive);
  if (moments.has_weight_decay())
    checks.Real(field + "weight_decay", moments.weight_decay(), kNotNegative);
}

void CheckLamb(const v1::Lamb& lamb, FieldChecks& checks) {
  CheckMoments("optimizer.lamb.", lamb, checks);
  const engine::LambOptions defaults;
  const double min = lamb.has_ratio_min() ? lamb.ratio_min() : defaults.ratio_min;
  const double max = lamb.has_ratio_max() ? lamb.ratio_max() : defaults.ratio_max;
  checks.Real("optimizer.lamb.ratio_min", min, kPositive);
  if (!Contains(kPositive, min)) return;
  checks.Real("optimizer.lamb.ratio_max", max,
              {.low = min,
               .high = kInfinity,
               .high_included = false,
               .text = "a finite number of at least optimizer.lamb.ratio_min"});
}

}  // namespace

void CheckOptimizer(const v1::Optimizer& optimizer, FieldChecks& checks) {
  if (optimizer.has_sgd()) CheckSgd(optimizer.sgd(), checks);
  if (optimizer.has_adam()) CheckMoments("optimizer.adam.", optimizer.adam(), checks);
  if (optimizer.has_adamw()) CheckMoments("optimizer.adamw.", optimizer.adamw(), checks);
  if (optimizer.has_lamb()) CheckLamb(optimizer.lamb(), checks);
  if (optimizer.has_clip_norm())
    checks.Real("optimizer.clip_norm", optimizer.clip_norm(), kPositive);
}

}  // namespace tactus::spec
