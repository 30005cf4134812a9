// The part of the samples that epochs are made of, where it is not all of them.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tactus::engine {

// Which part, and how it is chosen: a job file's `data.subset`.
enum class SubsetKind : std::uint32_t { kNone, kRandom, kCraig };

struct SubsetOptions {
  SubsetKind kind = SubsetKind::kNone;  // none: epochs are of all samples
  double fraction = 1;                  // of the samples, in (0, 1]
  std::uint32_t epochs = 1;   // of the subset, until one is chosen anew, >= 1; by inputs none is
  bool by_inputs = false;     // craig: samples are near one another by their inputs
  std::uint64_t samples = 0;  // of the data, from which it is chosen; 0: not known
};

// Plain data, equal on all members. An epoch's position stands for one of them.
struct Subset {
  std::uint64_t number = 0;  // of those chosen so far, this included; 0: none is, epochs are of all
  std::uint64_t epoch = 0;   // in which it was chosen, or found to stay
  // As the options had it then.
  SubsetKind kind = SubsetKind::kNone;
  bool by_inputs = false;
  std::vector<std::uint64_t> samples{};  // rising
  // How much each counts, in losses and gradients; the mean is 1. Empty: each 1.
  std::vector<float> weights{};

  friend bool operator==(const Subset&, const Subset&) = default;
};

// Whether another one is to be chosen, now that so many epochs are over. Counted from the first, so
// that a job that went back to a checkpoint chooses where it would have. One of another kind is of
// the job that this one goes on from.
inline bool IsDue(const SubsetOptions& options, const Subset& chosen, std::uint64_t epoch) {
  if (options.kind == SubsetKind::kNone) return false;
  if (chosen.kind != options.kind || chosen.by_inputs != options.by_inputs) return true;
  // Inputs stay what they are: it would be the same again.
  if (chosen.number > 0 && options.by_inputs) return false;
  return chosen.number == 0 || epoch / options.epochs > chosen.epoch / options.epochs;
}

// Why no ledger over epochs of `epoch_size` samples can go on with it; empty: it can, if there is
// data with all of its samples.
std::string ReasonAgainst(const Subset& subset, std::uint64_t epoch_size);

}  // namespace tactus::engine
