#include "client/ask/what_if.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "client/ask/cluster_file.h"
#include "client/text/quantity.h"
#include "client/text/text.h"
#include "coordinator/spec/adapt_checks.h"
#include "coordinator/spec/engine_options.h"
#include "coordinator/spec/field_rules.h"
#include "policies/encodings.h"
#include "simulator/fit.h"

namespace tactus::client {
namespace {

constexpr double kSpeedMin = 1e-3;  // of an added device, of the fastest one's
constexpr double kSpeedMax = 1e3;

const char* const kAddForm = "[N x]speed=F, such as 2xspeed=0.5: two devices half as fast";
const char* const kRemoveForm = "worker-N, rank-N, NODE/DEVICE or NODE of the job";

// That the newest rounds ran with; dense where an older coordinator does not tell.
policies::Encoding EncodingOf(const v1::Job& job) {
  return ValueNamed<policies::Encoding>(job.progress().plan().encoding())
      .value_or(policies::Encoding::kDense);
}

simulator::JobHistory HistoryOf(const v1::Job& job, const v1::ListRoundsResponse& rounds,
                                double backward_share) {
  const spec::ResolvedSpec resolved = spec::Resolve(job.spec());
  const engine::EngineOptions options = spec::EngineOptionsOf(resolved);
  simulator::JobHistory history{.micro_batch = options.micro_batch,
                                .bucket_bytes = options.bucket_bytes,
                                .backward_share = backward_share,
                                .encoding = EncodingOf(job),
                                .encoding_options = spec::PlannerOptionsOf(resolved).encoding};
  for (const v1::WorkerProgress& worker : job.progress().workers()) {
    history.members.push_back(
        {.worker = {worker.worker_id()}, .node = worker.node(), .device = worker.device()});
  }
  for (const v1::Round& round : rounds.rounds()) {
    job::RoundRecord record{.round = round.round(),
                            .samples = round.samples(),
                            .loss = round.loss(),
                            .seconds = round.seconds(),
                            .bytes = round.bytes(),
                            .steps = round.steps(),
                            .transfer_seconds = round.transfer_seconds()};
    record.worker_samples.assign(round.worker_samples().begin(), round.worker_samples().end());
    record.worker_compute_seconds.assign(round.worker_compute_seconds().begin(),
                                         round.worker_compute_seconds().end());
    record.worker_blocked_seconds.assign(round.worker_blocked_seconds().begin(),
                                         round.worker_blocked_seconds().end());
    history.rounds.push_back(std::move(record));
  }
  return history;
}

// The ledger's count over the passes that it makes.
std::uint64_t EpochSamples(const v1::JobProgress& progress) {
  const double passes = static_cast<double>(progress.epoch()) + progress.epoch_fraction();
  if (passes <= 0) return 1;
  const double samples = std::round(static_cast<double>(progress.samples()) / passes);
  return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(samples));
}

std::size_t Devices(const simulator::ClusterModel& cluster) {
  std::size_t count = 0;
  for (const simulator::HostModel& host : cluster.hosts) count += host.devices.size();
  return count;
}

simulator::DeviceModel Fastest(const simulator::ClusterModel& cluster) {
  const simulator::DeviceModel* fastest = nullptr;
  for (const simulator::HostModel& host : cluster.hosts) {
    for (const simulator::DeviceModel& device : host.devices) {
      if (fastest == nullptr || device.sample_seconds < fastest->sample_seconds) fastest = &device;
    }
  }
  return *fastest;
}

struct Addition {
  std::size_t count = 1;
  double speed = 1;
};

std::optional<Addition> ParseAddition(const std::string& text) {
  Addition addition;
  std::string rest = text;
  const std::size_t times = text.find('x');
  if (times != std::string::npos && !text.starts_with("speed")) {
    const std::optional<double> count = ParseNumber(text.substr(0, times));
    const auto most = static_cast<double>(kSimulatedDevicesMax);
    if (!count || *count < 1 || *count > most || *count != std::floor(*count)) return {};
    addition.count = static_cast<std::size_t>(*count);
    rest = text.substr(times + 1);
  }
  constexpr std::string_view kKey = "speed=";
  if (!rest.starts_with(kKey)) return {};
  const std::optional<double> speed = ParseNumber(rest.substr(kKey.size()));
  if (!speed || *speed < kSpeedMin || *speed > kSpeedMax) return {};
  addition.speed = *speed;
  return addition;
}

std::string Wrong(const char* option, const std::string& found, const char* allowed) {
  return std::string("--") + option + ": found \"" + Printable(found) + "\", allowed is " + allowed;
}

// Each on a host of its own, with a link as the others have. `fastest`: before any change.
void Add(const Addition& addition, const simulator::DeviceModel& fastest,
         simulator::ClusterModel* cluster) {
  simulator::DeviceModel device = fastest;
  device.name = device.name.substr(0, device.name.find(':')) + ":0";
  device.sample_seconds /= addition.speed;
  device.batch_seconds /= addition.speed;
  const simulator::LinkModel link = cluster->hosts.front().link;
  std::set<std::string> names;
  for (const simulator::HostModel& host : cluster->hosts) names.insert(host.name);
  int number = 1;
  for (std::size_t i = 0; i < addition.count; ++i) {
    while (names.contains("added-" + std::to_string(number))) ++number;
    const std::string name = "added-" + std::to_string(number++);
    cluster->hosts.push_back({.name = name, .link = link, .devices = {device}});
  }
}

// "NODE/DEVICE" of a worker that is named by number or rank; else the text itself.
std::string PlaceOf(const std::string& text, const v1::Job& job) {
  for (const v1::WorkerProgress& worker : job.progress().workers()) {
    if (text == "worker-" + std::to_string(worker.worker_id()) ||
        text == "rank-" + std::to_string(worker.rank())) {
      return worker.node() + "/" + worker.device();
    }
  }
  return text;
}

bool Remove(const std::string& place, simulator::ClusterModel* cluster) {
  std::size_t removed = 0;
  for (simulator::HostModel& host : cluster->hosts) {
    removed += std::erase_if(host.devices, [&](const simulator::DeviceModel& device) {
      return place == host.name || place == host.name + "/" + device.name;
    });
  }
  std::erase_if(cluster->hosts,
                [](const simulator::HostModel& host) { return host.devices.empty(); });
  return removed > 0;
}

}  // namespace

FittedJob FitJob(const v1::Job& job, const v1::ListRoundsResponse& history) {
  FittedJob fitted;
  sim::v1::Model& model = fitted.work.model;
  spec::FillDefaults("", &model);
  const simulator::FittedCluster models =
      simulator::FitCluster(HistoryOf(job, history, model.backward_share()));
  fitted.error = models.error;
  if (!models.error.empty()) return fitted;
  fitted.cluster = models.cluster;
  fitted.transfer_seconds = models.transfer_seconds;
  if (models.parameters > 0) model.set_parameters(models.parameters);
  model.set_train_samples(EpochSamples(job.progress()));
  double samples = 0;
  double seconds = 0;
  for (const v1::Round& round : history.rounds()) {
    samples += static_cast<double>(round.samples());
    seconds += round.seconds();
    if (std::isfinite(round.loss())) {
      fitted.work.points.push_back({.samples = samples, .loss = round.loss()});
    }
  }
  fitted.rounds = static_cast<std::uint64_t>(history.rounds_size());
  fitted.samples_per_second = seconds > 0 ? samples / seconds : 0;
  fitted.work.loss.mutable_curve()->set_noise(true);
  if (fitted.work.points.empty()) fitted.error = "has no round with a finite loss";
  return fitted;
}

std::string Change(const WhatIfChanges& changes, const v1::Job& job,
                   simulator::ClusterModel* cluster) {
  const simulator::DeviceModel fastest = Fastest(*cluster);
  for (const std::string& text : changes.add) {
    const std::optional<Addition> addition = ParseAddition(text);
    if (!addition) return Wrong("add", text, kAddForm);
    if (Devices(*cluster) + addition->count > kSimulatedDevicesMax) {
      return "--add: leaves more than " + std::to_string(kSimulatedDevicesMax) + " devices";
    }
    Add(*addition, fastest, cluster);
  }
  for (const std::string& text : changes.remove) {
    // A place as it stands comes first: a node may be called worker-1.
    const bool removed = Remove(text, cluster) || Remove(PlaceOf(text, job), cluster);
    if (!removed) return Wrong("remove", text, kRemoveForm);
  }
  if (cluster->hosts.empty()) return "--remove: leaves no device";
  if (changes.rate.empty()) return "";
  const std::optional<double> rate = ParseRate(changes.rate);
  if (!rate || *rate < kRateMin) {
    return Wrong("rate", changes.rate, "a rate of 1kbit or more, such as 1gbit");
  }
  for (simulator::HostModel& host : cluster->hosts) host.link.bytes_per_second = *rate;
  cluster->local.bytes_per_second = *rate;
  return "";
}

}  // namespace tactus::client
