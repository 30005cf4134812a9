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

// Known from the first batch on, before the others are computed.
absl::Status CheckSize(std::size_t samples, std::size_t width) {
  if (width > model::GradientProxies::kWidthMax) {
    return data::AtField(
        kField, absl::InvalidArgumentError("tells samples apart by " + std::to_string(width) +
                                           " numbers each; allowed are " +
                                           std::to_string(model::GradientProxies::kWidthMax) +
                                           ", or random in place of craig"));
  }
  if (samples <= kProxyBytesMax / sizeof(float) / width) return absl::OkStatus();
  return data::AtField(
      kField, absl::InvalidArgumentError(
                  "tells samples apart by " + std::to_string(width) + " numbers each, of which " +
                  std::to_string(samples) + " samples of one worker take more than " +
                  std::to_string(kProxyBytesMax >> 30) +
                  " GiB; allowed are more workers, or random in place of craig"));
}

// A member without samples knows neither width nor classes: those of any sample.
absl::StatusOr<subset::Proxies> ProxiesOf(Trainee& trainee, collective::Transport& transport,
                                          std::vector<std::uint64_t> samples,
                                          const ChoiceOptions& options) {
  subset::Proxies proxies;
  const bool none = samples.empty();
  if (none) samples.push_back(0);
  std::uint64_t batch = trainee.evaluation_batch();
  for (std::size_t at = 0; at < samples.size();) {
    if (options.beside) options.beside();
    // Not at the end, which may be far: the others await this member's word of it.
    if (const std::vector<int> gone = transport.failed(); !gone.empty()) {
      return absl::UnavailableError("rank " + std::to_string(gone.front()) +
                                    ": closed the connection");
    }
    const auto some = std::span<const std::uint64_t>(samples).subspan(at).first(
        std::min<std::size_t>(batch, samples.size() - at));
    const absl::StatusOr<model::GradientProxies> found =
        trainee.Proxies(some, options.subset.by_inputs);
    if (absl::IsResourceExhausted(found.status()) && some.size() > 1) {
      batch = some.size() / 2;
      continue;
    }
    if (!found.ok()) return found.status();
    if (at == 0) {
      if (absl::Status s = CheckSize(samples.size(), found->width); !s.ok()) return s;
      proxies.values.reserve(samples.size() * found->width);
    }
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
      ProxiesOf(trainee, transport,
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
