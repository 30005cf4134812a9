// CRAIG: the weighted subset whose gradients sum up to about those of all samples, chosen by all
// members together.
//
// Each member takes a part of the samples, drawn at random, and computes their proxies: vectors by
// whose distances those of gradients are bounded. For each class by itself it picks from its part
// those that stand for the rest (facility_location.h); all picks come together, and where they are
// more than the class is to have, one member picks among them, by how many each stands for. In the
// end every sample, not only the picked ones, counts for the nearest: the weights of a class sum up
// to its samples. A class of more than PieceMaxOf samples of a member is cut into pieces.
//
// Source: spec of the subset, steps 4 to 10: [craig] and GreeDi.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "agent/collective/transport.h"
#include "agent/engine/samples/subset.h"

namespace tactus::subset {

// Pieces, and what one member picks among at once, have so many samples at most: the time of a pick
// grows with their square, and by inputs what pieces of 1,000 pick is as good to train on as what
// is picked in a class of 9,000 at once (docs/benchmarks.md).
inline constexpr std::size_t kPieceMax = 1024;
// The same of proxies of this width: fewer of wide ones, so that the time stays about that of the
// largest at width 4096. In [256, kPieceMax] for widths up to 65536. A power of two.
std::size_t PieceMaxOf(std::size_t width);

// No sample counts for more than so many, at a mean of 1.
// Source: spec of the subset, hyperparameters. Differs: 20 there, "if loss spikes"; measured, see
// docs/benchmarks.md.
inline constexpr double kWeightMax = 2;

// Equal on all members.
struct SelectionOptions {
  std::uint64_t samples = 1;  // of the data
  std::uint64_t size = 1;     // of the subset, <= samples
  std::uint64_t seed = 1;
  std::uint64_t number = 1;             // of this selection, from 1
  std::vector<std::uint32_t> shares{};  // of the members, as their speeds; empty or zeros: equal
  double weight_max = kWeightMax;       // of a sample, at a mean of 1; >= 1: HoldBelow in its class
};

// The samples whose proxies a member is to compute, rising: a random part of all, as large as its
// share.
std::vector<std::uint64_t> PartOf(const SelectionOptions& options, std::size_t member,
                                  std::size_t members);

// What a member knows of its part.
struct Proxies {
  std::vector<std::uint64_t> samples{};  // rising; those without a finite proxy are left out
  std::vector<std::uint32_t> classes{};  // of each, below class_count
  std::vector<float> values{};           // [samples, width] row-major
  std::size_t width = 1;                 // equal on all members, as is the next
  std::uint32_t class_count = 1;
  std::uint64_t excluded = 0;  // left out
};

// What was found, the same on all members but for the times.
struct SelectionFacts {
  std::uint64_t samples = 0;   // of the subset
  std::uint64_t of = 0;        // of the data
  std::uint64_t excluded = 0;  // without a finite proxy
  bool kept = false;           // more than 1 % were, and what was chosen before stays
  std::vector<std::uint64_t> class_sizes{};
  std::vector<std::uint64_t> class_quotas{};
  double error = 0;       // epsilon / n: the mean way to the nearest of the subset; what the sum of
                          // all misses by weights that were not held below a bound is no more
  double norm = 0;        // the mean length of a proxy, beside it
  double weight_max = 1;  // of weights whose mean is 1
  double effective = 0;   // EffectiveCount of the weights
  double proxy_seconds = 0;
  double greedy_seconds = 0;
};

struct Selected {
  std::optional<engine::Subset> subset{};  // but for its epoch; nothing: `facts.kept`, or a failure
  SelectionFacts facts{};
  std::string lost{};   // the group was lost: why
  std::string wrong{};  // there is no such subset: why, for a person
};

// All members call it in the same place of their collectives; it waits. beside, where there is one,
// is called now and then while it computes, some hundredths of a second apart.
Selected SelectCraig(const Proxies& own, const SelectionOptions& options,
                     collective::Transport& transport, const std::function<void()>& beside = {});

// "15000 of 50000 samples, 30 % of each of 10 classes, in 2.1 s".
std::string Describe(const SelectionFacts& facts);

}  // namespace tactus::subset
