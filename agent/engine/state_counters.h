// The numbers of an engine's state, by name: what writes or reads them follows this list.

#pragma once

#include <string>

namespace tactus::engine {

void VisitAdascale(const std::string& name, auto& adascale, const auto& visit) {
  visit(name + ".base_batch", adascale.base_batch);
  visit(name + ".estimated", adascale.estimated);
  visit(name + ".sigma2", adascale.average.moments.sigma2);
  visit(name + ".mu2", adascale.average.moments.mu2);
  visit(name + ".count", adascale.average.count);
  visit(name + ".weights", adascale.average.weights);
}

void VisitValidation(auto& validation, const auto& visit) {
  visit("validation.count", validation.count);
  visit("validation.rounds", validation.last.rounds);
  visit("validation.epochs", validation.last.epochs);
  visit("validation.samples", validation.last.samples);
  visit("validation.trained_nanoseconds", validation.last.trained);
  visit("validation.cost_nanoseconds", validation.cost);
  visit("validation.total_cost_nanoseconds", validation.total_cost);
  visit("validation.evaluated_samples", validation.samples);
  visit("validation.loss", validation.loss);
  visit("validation.best_loss", validation.best_loss);
  visit("validation.best_accuracy", validation.best_accuracy);
  visit("validation.best_samples", validation.best_samples);
  visit("validation.best_rounds", validation.best_rounds);
  visit("validation.since_best", validation.since_best);
}

void VisitOneBit(auto& one_bit, const auto& visit) {
  visit("one_bit.frozen", one_bit.frozen);
  visit("one_bit.since", one_bit.since);
  visit("one_bit.frozen_steps", one_bit.frozen_steps);
  visit("one_bit.begun", one_bit.begun);
  visit("one_bit.variance", one_bit.variance);
  visit("one_bit.looks", one_bit.looks);
  visit("one_bit.next_look", one_bit.next_look);
}

// Calls visit(name, field) for each; state: EngineState, constant or not. Fields are integers, a
// SubsetKind, doubles, bools and Durations, which count nanoseconds. Checkpoints hold these names:
// they are never changed.
void VisitCounters(auto& state, const auto& visit) {
  visit("rounds", state.rounds);
  visit("samples_global", state.samples_global);
  visit("steps", state.steps);
  visit("nonfinite_rounds", state.nonfinite_rounds);
  visit("train_nanoseconds", state.train_time);
  visit("progress", state.learning_rate.progress);
  VisitAdascale("adascale", state.learning_rate.adascale, visit);
  VisitAdascale("windows", state.learning_rate.windows, visit);
  visit("windows.bending", state.learning_rate.bending);
  visit("windows.bending_weight", state.learning_rate.bending_weight);
  visit("ledger.epoch_size", state.ledger.epoch_size);
  visit("ledger.fresh", state.ledger.fresh);
  visit("subset.number", state.ledger.subset.number);
  visit("subset.epoch", state.ledger.subset.epoch);
  visit("subset.kind", state.ledger.subset.kind);
  visit("subset.by_inputs", state.ledger.subset.by_inputs);
  VisitValidation(state.validation, visit);
  VisitOneBit(state.one_bit, visit);
}

}  // namespace tactus::engine
