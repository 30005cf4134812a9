// The checks of a specification's `optimizer`.

#pragma once

#include "coordinator/spec/field_checks.h"
#include "tactus/v1/spec.pb.h"

namespace tactus::spec {

void CheckOptimizer(const v1::Optimizer& optimizer, FieldChecks& checks);

}  // namespace tactus::spec
