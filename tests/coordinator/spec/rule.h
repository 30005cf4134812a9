// Rules of the job file: each, broken alone, is reported at its field.

#pragma once

#include <functional>
#include <ostream>
#include <string>

#include "tactus/v1/spec.pb.h"

namespace tactus::spec {

// A job file in which nothing is wrong.
v1::JobSpec TextSpec();

// How to break one rule of TextSpec, and what is to be said of it.
struct Rule {
  std::string name;
  std::function<void(v1::JobSpec&)> break_it;
  std::string field;
  std::string says;  // part of the description
};

void PrintTo(const Rule& rule, std::ostream* out);

// Expects that TextSpec with the rule broken has exactly one violation, of the right field.
void ExpectReportedAtItsField(const Rule& rule);

}  // namespace tactus::spec
