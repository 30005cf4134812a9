// The optimizers, a row each: what the policies and the checks of a job must know of them.

#pragma once

#include <span>
#include <string_view>

namespace tactus::policies {

// One optimizer of job files; its arithmetic is agent/engine's.
struct OptimizerRow {
  std::string_view name;  // as in a job file: "adamw"
  // How it bends the gradient, coordinate by coordinate, in words that follow "steps of adamw".
  // Empty: its steps go along the gradient and those before, as the methods that are derived for
  // sgd need it (adascale, adacomm).
  std::string_view bending;
  // Whether it divides by the root of the gradient's second moment, of which nothing but the
  // momentum has to travel once that is steady.
  bool second_moment = false;

  bool preconditioned() const { return !bending.empty(); }
};

// All, in the order of spec.proto.
std::span<const OptimizerRow> Optimizers();

// Whether what is derived for sgd does not hold for it. An unknown one is taken for such.
bool IsPreconditioned(std::string_view optimizer);

// As OptimizerRow has it. False for an unknown one.
bool HasSecondMoment(std::string_view optimizer);

// How it bends the gradient; see OptimizerRow. Empty for an unknown one.
std::string_view BendingOf(std::string_view optimizer);

}  // namespace tactus::policies
