// The rules of a model that is split over devices: model.options.mesh, and model.options.recompute,
// which has the same limits.

#pragma once

#include <cstdint>
#include <string>

#include "coordinator/spec/field_checks.h"
#include "coordinator/spec/resolve.h"
#include "policies/parallelism.h"
#include "tactus/v1/spec.pb.h"

namespace tactus::spec {

// Of bytes-lm's layers as model.options has them, each at least 1.
policies::TransformerSizes TransformerSizesOf(const v1::JobSpec& spec);

// Of a replica; 1: each device has all of the model. Of a specification that may be wrong, too.
std::uint32_t DevicesOfReplica(const v1::JobSpec& spec);

// Of a specification whose other defaults are filled in: the kind auto becomes the one that is
// taken, and the numbers of workers that were not given, as `given` has them, fit whole replicas.
void ResolveMesh(const v1::JobSpec& given, v1::JobSpec* spec);

// How a replica is laid out and what the other way would move, for a person: "2d, 2 x 2 devices;
// ..."; empty: it is not split.
std::string MeshWords(const ResolvedSpec& spec);

// What holds between the mesh, the model's sizes, the workers and what a device that has a part of
// the model cannot do. What it does not go with of `adapt` the compatibility table says.
void CheckMesh(const v1::JobSpec& spec, const ResolvedSpec& resolved, FieldChecks& checks);

}  // namespace tactus::spec
