// A specification with nothing left open: every default is filled in, here and nowhere else.

#pragma once

#include <utility>

#include "tactus/v1/spec.pb.h"

namespace tactus::spec {

// Made by Resolve alone, so that whoever takes one needs no default of its own. A field that has
// none, or that is not of the job's policy, optimizer or model, is unset.
class ResolvedSpec {
 public:
  const v1::JobSpec& operator*() const { return spec_; }
  const v1::JobSpec* operator->() const { return &spec_; }

 private:
  friend ResolvedSpec Resolve(v1::JobSpec spec);
  explicit ResolvedSpec(v1::JobSpec spec) : spec_(std::move(spec)) {}

  v1::JobSpec spec_;
};

// What a user gave, completed. The store and the API keep what was given, so that a change of it
// means what it says: a base batch that was left out follows adapt.batch.per_worker.
ResolvedSpec Resolve(v1::JobSpec spec);

}  // namespace tactus::spec
