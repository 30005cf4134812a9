#include "simulator/fit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "agent/engine/combine/lanes.h"
#include "policies/encodings.h"
#include "simulator/collective_model.h"
#include "simulator/network.h"

namespace tactus::simulator {
namespace {

constexpr double kFloatBytes = 4;
constexpr std::size_t kReplayedRoundsMax = 300;
constexpr double kRateMin = 1e4;  // bytes/s
constexpr double kRateMax = 1e12;
constexpr int kBisections = 60;
constexpr int kReweightings = 5;

// A member's part of a round: micro-batches, samples, seconds.
struct Pass {
  double batches = 0;
  double samples = 0;
  double seconds = 0;
};

bool Usable(const job::RoundRecord& round, std::size_t members) {
  if (round.worker_samples.size() != members || round.worker_compute_seconds.size() != members ||
      round.worker_blocked_seconds.size() != members) {
    return false;
  }
  for (std::size_t rank = 0; rank < members; ++rank) {
    if (round.worker_samples[rank] == 0 || !(round.worker_compute_seconds[rank] > 0)) return false;
  }
  return true;
}

// Of the member that waited least: it came last, so it waited for the bytes alone.
double TransferOf(const job::RoundRecord& round) {
  return *std::ranges::min_element(round.worker_blocked_seconds);
}

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// What a round took beyond computing and waiting: the optimizer's step and the like.
double Overhead(const job::RoundRecord& round) {
  return std::max(
      round.seconds - Mean(round.worker_compute_seconds) - Mean(round.worker_blocked_seconds), 0.0);
}

std::vector<Pass> PassesOf(const std::vector<const job::RoundRecord*>& rounds, std::size_t rank,
                           double micro_batch) {
  std::vector<Pass> passes;
  for (const job::RoundRecord* round : rounds) {
    const double samples = static_cast<double>(round->worker_samples[rank]);
    passes.push_back({.batches = std::ceil(samples / micro_batch),
                      .samples = samples,
                      .seconds = round->worker_compute_seconds[rank] + Overhead(*round)});
  }
  return passes;
}

double Predicted(const DeviceModel& device, const Pass& pass) {
  return device.batch_seconds * pass.batches + device.sample_seconds * pass.samples;
}

DeviceModel FitProportional(const std::vector<Pass>& passes) {
  double samples = 0;
  double seconds = 0;
  for (const Pass& pass : passes) {
    samples += pass.samples;
    seconds += pass.seconds;
  }
  return {.sample_seconds = seconds / samples};
}

// One weighted least-squares solution, the weights being 1 / predicted^2 of `before`.
DeviceModel Refit(const std::vector<Pass>& passes, const DeviceModel& before) {
  double kk = 0, ks = 0, ss = 0, kt = 0, st = 0;
  for (const Pass& pass : passes) {
    const double predicted = Predicted(before, pass);
    const double weight = 1 / (predicted * predicted);
    kk += weight * pass.batches * pass.batches;
    ks += weight * pass.batches * pass.samples;
    ss += weight * pass.samples * pass.samples;
    kt += weight * pass.batches * pass.seconds;
    st += weight * pass.samples * pass.seconds;
  }
  const double determinant = kk * ss - ks * ks;
  DeviceModel after = before;
  after.batch_seconds = (kt * ss - st * ks) / determinant;
  after.sample_seconds = (kk * st - ks * kt) / determinant;
  return after;
}

DeviceModel FitDevice(const std::vector<Pass>& passes) {
  const DeviceModel proportional = FitProportional(passes);
  const auto [least, most] = std::ranges::minmax_element(passes, {}, &Pass::samples);
  if (most->samples < kFitSizesVary * least->samples) return proportional;
  DeviceModel device = proportional;
  for (int i = 0; i < kReweightings; ++i) {
    const DeviceModel next = Refit(passes, device);
    const bool sensible = std::isfinite(next.batch_seconds) && next.batch_seconds >= 0 &&
                          std::isfinite(next.sample_seconds) && next.sample_seconds > 0;
    if (!sensible) return proportional;
    device = next;
  }
  return device;
}

// [members][rounds] t / predicted.
using Ratios = std::vector<std::vector<double>>;

double Covariance(std::span<const double> x, std::span<const double> y) {
  double mean_x = 0, mean_y = 0, sum = 0;
  const double count = static_cast<double>(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    mean_x += x[i] / count;
    mean_y += y[i] / count;
  }
  for (std::size_t i = 0; i < x.size(); ++i) sum += (x[i] - mean_x) * (y[i] - mean_y);
  return sum / (count - 1);
}

// The mean covariance of two members, not below 0.
double CommonVariance(const Ratios& ratios) {
  double sum = 0;
  double pairs = 0;
  for (std::size_t a = 0; a < ratios.size(); ++a) {
    for (std::size_t b = a + 1; b < ratios.size(); ++b) {
      sum += Covariance(ratios[a], ratios[b]);
      ++pairs;
    }
  }
  return pairs > 0 ? std::max(sum / pairs, 0.0) : 0;
}

void FitNoise(const Ratios& ratios, double batches_mean, double common, std::size_t rank,
              DeviceModel& device) {
  const double own = std::max(Covariance(ratios[rank], ratios[rank]) - common, 0.0);
  // A round's k micro-batches have independent noise, which is k times as large in the variance.
  device.noise.log_sigma = std::min(std::sqrt(std::log1p(own * batches_mean)), 2.0);
}

// The recorded rounds once more, one after the other, over links of some model.
class Replay {
 public:
  Replay(const std::vector<const job::RoundRecord*>& rounds, const JobHistory& history)
      : rounds_(rounds.begin(), rounds.begin() + static_cast<std::ptrdiff_t>(
                                                     std::min(rounds.size(), kReplayedRoundsMax))),
        history_(history) {}

  // Mean length of a round.
  double RoundSeconds(const ClusterModel& cluster) const {
    Network network(cluster);
    const Places places = PlacesOf(cluster);
    std::vector<Instant> edges(places.hosts.size(), Instant{});
    for (const job::RoundRecord* round : rounds_) Run(*round, cluster, places, network, edges);
    double sum = 0;
    for (const Instant edge : edges) sum += ToSeconds(edge.time_since_epoch());
    return sum / static_cast<double>(edges.size() * rounds_.size());
  }

  double Recorded() const {
    double sum = 0;
    for (const job::RoundRecord* round : rounds_) {
      sum += Mean(round->worker_compute_seconds) + Mean(round->worker_blocked_seconds) +
             Overhead(*round);
    }
    return sum / static_cast<double>(rounds_.size());
  }

 private:
  Places PlacesOf(const ClusterModel& cluster) const {
    Places places;
    for (const job::MemberRecord& member : history_.members) {
      const auto host = std::ranges::find(cluster.hosts, member.node, &HostModel::name);
      places.hosts.push_back(static_cast<std::size_t>(host - cluster.hosts.begin()));
    }
    return places;
  }

  // Moves each member's edge from the round's begin to its end.
  void Run(const job::RoundRecord& round, const ClusterModel& cluster, const Places& places,
           Network& network, std::vector<Instant>& edges) const {
    const auto buckets = static_cast<std::size_t>(std::max(
        1.0,
        std::ceil(static_cast<double>(round.bytes) / static_cast<double>(history_.bucket_bytes))));
    const std::vector<Instant> begun = edges;
    std::vector<Instant> ready(edges.size());
    for (std::size_t bucket = 0; bucket < buckets; ++bucket) {
      const double done = static_cast<double>(bucket + 1) / static_cast<double>(buckets);
      for (std::size_t rank = 0; rank < ready.size(); ++rank) {
        const double passes = std::ceil(static_cast<double>(round.worker_samples[rank]) /
                                        static_cast<double>(history_.micro_batch));
        const double share = 1 - history_.backward_share * (1 - done) / passes;
        const double seconds = round.worker_compute_seconds[rank] + Overhead(round);
        ready[rank] = std::max(begun[rank] + Seconds(seconds * share), edges[rank]);
      }
      RunAllReduce(cluster.algorithm, places,
                   {.bytes = static_cast<double>(round.bytes) / static_cast<double>(buckets),
                    .ready = ready,
                    .finished = edges},
                   network);
    }
  }

  const std::vector<const job::RoundRecord*> rounds_;
  const JobHistory& history_;
};

void SetLinks(const LinkModel& link, ClusterModel& cluster) {
  for (HostModel& host : cluster.hosts) host.link = link;
  cluster.local = link;
}

// Bisection in the logarithm of the rate: rounds get shorter as it grows.
void FitLinks(const Replay& replay, ClusterModel& cluster) {
  const double wanted = replay.Recorded();
  LinkModel link{.latency_seconds = kFitLatencySeconds, .bytes_per_second = kRateMax};
  const auto too_long = [&] {
    SetLinks(link, cluster);
    return replay.RoundSeconds(cluster) > wanted;
  };
  if (too_long()) link.latency_seconds = 0;
  double low = kRateMin;
  double high = kRateMax;
  for (int i = 0; i < kBisections; ++i) {
    link.bytes_per_second = std::sqrt(low * high);
    (too_long() ? low : high) = link.bytes_per_second;
  }
}

// A host a node, in the order of the members.
HostModel& HostOf(const job::MemberRecord& member, ClusterModel& cluster) {
  const auto found = std::ranges::find(cluster.hosts, member.node, &HostModel::name);
  if (found != cluster.hosts.end()) return *found;
  cluster.hosts.push_back({.name = member.node});
  return cluster.hosts.back();
}

std::uint64_t ParametersOf(const job::RoundRecord& round, const JobHistory& history) {
  const double lanes = static_cast<double>(engine::LaneCount(round.worker_samples.size()));
  const double sent = static_cast<double>(round.bytes) / kFloatBytes - lanes;
  const auto members = static_cast<std::uint32_t>(round.worker_samples.size());
  const double share = policies::ShareOf(history.encoding, members, history.encoding_options);
  return static_cast<std::uint64_t>(std::max(sent / share, 1.0));
}

}  // namespace

FittedCluster FitCluster(const JobHistory& history) {
  FittedCluster fitted;
  const std::size_t members = history.members.size();
  std::vector<const job::RoundRecord*> rounds;
  for (const job::RoundRecord& round : history.rounds) {
    if (round.round >= kFitWarmUp && Usable(round, members)) rounds.push_back(&round);
  }
  fitted.rounds = rounds.size();
  if (members == 0 || rounds.size() < kFitRoundsMin) {
    fitted.error = "has " + std::to_string(rounds.size()) +
                   " rounds in which all workers took part; needed are " +
                   std::to_string(kFitRoundsMin);
    return fitted;
  }
  std::vector<DeviceModel> devices;
  std::vector<double> batches(members, 0);
  Ratios ratios(members);
  for (std::size_t rank = 0; rank < members; ++rank) {
    const std::vector<Pass> passes = PassesOf(rounds, rank, history.micro_batch);
    devices.push_back(FitDevice(passes));
    for (const Pass& pass : passes) {
      ratios[rank].push_back(pass.seconds / Predicted(devices[rank], pass));
      batches[rank] += pass.batches / static_cast<double>(passes.size());
    }
  }
  const double common = CommonVariance(ratios);
  for (std::size_t rank = 0; rank < members; ++rank) {
    FitNoise(ratios, batches[rank], common, rank, devices[rank]);
    devices[rank].name = history.members[rank].device;
    HostOf(history.members[rank], fitted.cluster).devices.push_back(devices[rank]);
  }
  const Replay replay(rounds, history);
  FitLinks(replay, fitted.cluster);
  for (const job::RoundRecord* round : rounds) {
    fitted.transfer_seconds += TransferOf(*round) / static_cast<double>(rounds.size());
  }
  fitted.parameters = ParametersOf(*rounds.back(), history);
  return fitted;
}

}  // namespace tactus::simulator
