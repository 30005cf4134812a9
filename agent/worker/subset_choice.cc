#include "agent/worker/subset_choice.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <span>
#include <string>
#include <utility>

#include "agent/data/field_error.h"
#include "agent/subset/craig.h"
#include "agent/subset/random_subset.h"
#include "agent/worker/clock.h"
#include "base/time.h"

namespace tactus::worker {
namespace {

constexpr const char* kField = "data.subset.craig";

bool IsFinite(std::span<const float> row) {
  return std::ranges::all_of(row, [](float value) { return std::isfinite(value); });
}

// Those of some samples, without those that are not finite.
void Add(std::span<const std::uint64_t> samples, const model::GradientProxies& found,
         subset::Proxies& proxies) {
  proxies.width = found.width;
  proxies.class_count = found.class_count;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const auto row = std::span(found.values).subspan(i * found.width, found.width);
    if (!IsFinite(row)) {
      ++proxies.excluded;
      continue;
    }
    proxies.samples.push_back(samples[i]);
    proxies.classes.push_back(found.classes[i]);
    proxies.values.insert(proxies.values.end(), row.begin(), row.end());
  }
}

// A member without samples knows neither width nor classes: those of any sample.
absl::StatusOr<subset::Proxies> ProxiesOf(Trainee& trainee, std::vector<std::uint64_t> samples,
                                          const ChoiceOptions& options) {
  subset::Proxies proxies;
  const bool none = samples.empty();
  if (none) samples.push_back(0);
  std::uint64_t batch = trainee.evaluation_batch();
  for (std::size_t at = 0; at < samples.size();) {
    if (options.beside) options.beside();
    const auto some = std::span<const std::uint64_t>(samples).subspan(at).first(
        std::min<std::size_t>(batch, samples.size() - at));
    const absl::StatusOr<model::GradientProxies> found =
        trainee.Proxies(some, options.subset.by_inputs);
    if (absl::IsResourceExhausted(found.status()) && some.size() > 1) {
      batch = some.size() / 2;
      continue;
    }
    if (!found.ok()) return found.status();
    Add(some, *found, proxies);
    at += some.size();
  }
  if (none) {
    proxies = {.width = proxies.width, .class_count = proxies.class_count};
  }
  return proxies;
}

absl::StatusOr<life::SubsetChoice> ChooseCraig(Trainee& trainee, collective::Transport& transport,
                                               const ChoiceOptions& options) {
  const subset::SelectionOptions selection = {.samples = trainee.data_samples(),
                                              .size = trainee.train_samples(),
                                              .seed = options.seed,
                                              .number = options.former + 1,
                                              .shares = options.shares};
  const Instant begun = Now();
  const absl::StatusOr<subset::Proxies> own =
      ProxiesOf(trainee,
                subset::PartOf(selection, static_cast<std::size_t>(transport.rank()),
                               static_cast<std::size_t>(transport.size())),
                options);
  if (!own.ok()) return own.status();
  const Instant known = Now();
  subset::Selected selected = subset::SelectCraig(*own, selection, transport, options.beside);
  const Instant end = Now();
  if (!selected.lost.empty()) return absl::UnavailableError(selected.lost);
  if (!selected.wrong.empty()) {
    return data::AtField(std::string(kField) + ".fraction",
                         absl::InvalidArgumentError(selected.wrong));
  }
  selected.facts.proxy_seconds = ToSeconds(known - begun);
  selected.facts.greedy_seconds = ToSeconds(end - known);
  if (!selected.subset && options.former == 0) {
    return data::AtField(kField, absl::InvalidArgumentError(
                                     "the gradients of " + std::to_string(selected.facts.excluded) +
                                     " of " + std::to_string(selected.facts.of) +
                                     " samples are not finite before the first round"));
  }
  return life::SubsetChoice{
      .subset = std::move(selected.subset), .end = end, .facts = Describe(selected.facts)};
}

}  // namespace

absl::StatusOr<life::SubsetChoice> ChooseSubset(Trainee& trainee, collective::Transport& transport,
                                                const ChoiceOptions& options) {
  if (options.subset.kind == engine::SubsetKind::kCraig) {
    return ChooseCraig(trainee, transport, options);
  }
  const std::uint64_t samples = trainee.data_samples();
  const std::uint64_t size = trainee.train_samples();
  return life::SubsetChoice{
      .subset = subset::DrawSubset(samples, size, options.seed, options.former + 1),
      .end = Now(),
      .facts = std::to_string(size) + " of " + std::to_string(samples) + " samples, drawn"};
}

}  // namespace tactus::worker
