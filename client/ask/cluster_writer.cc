#include "client/ask/cluster_writer.h"

#include "client/ask/durations.h"
#include "client/ask/fault_fields.h"
#include "client/yaml/message_writer.h"

namespace tactus::client {
namespace {

// To any of the three messages of a link.
template <typename Link>
void WriteLink(const simulator::LinkModel& model, Link* link) {
  link->set_rate(model.bytes_per_second);
  *link->mutable_latency() = DurationOf(model.latency_seconds);
  if (model.burst_bytes > 0) link->set_burst(model.burst_bytes);
}

void WriteNoise(const simulator::NoiseModel& model, sim::v1::Noise* noise) {
  noise->set_sigma(model.log_sigma);
  if (model.slow_factor <= 1) return;
  noise->set_slow_factor(model.slow_factor);
  *noise->mutable_slow_mean() = DurationOf(model.slow_seconds);
  *noise->mutable_fast_mean() = DurationOf(model.fast_seconds);
}

void WriteDevice(const simulator::DeviceModel& model, sim::v1::Device* device) {
  device->set_name(model.name);
  device->set_samples_per_second(1 / model.sample_seconds);
  if (model.batch_seconds > 0) *device->mutable_batch_time() = DurationOf(model.batch_seconds);
  if (model.noise != simulator::NoiseModel()) WriteNoise(model.noise, device->mutable_noise());
  if (model.drift_per_hour != 0) device->set_drift_per_hour(model.drift_per_hour);
  if (model.samples_max > 0) device->set_samples_max(model.samples_max);
}

void WriteHost(const simulator::HostModel& model, sim::v1::Host* host) {
  host->set_name(model.name);
  host->set_group(model.group);
  WriteLink(model.link, host->mutable_link());
  for (const simulator::DeviceModel& device : model.devices) {
    WriteDevice(device, host->add_devices());
  }
}

void WriteControl(const simulator::ControlModel& model, sim::v1::Control* control) {
  *control->mutable_delay() = DurationOf(model.delay_seconds);
  if (model.jitter_seconds > 0) *control->mutable_jitter() = DurationOf(model.jitter_seconds);
  if (model.duplicate_share > 0) control->set_duplicate_share(model.duplicate_share);
  *control->mutable_persist_time() = DurationOf(model.persist_seconds);
}

}  // namespace

std::string WriteClusterFile(const simulator::ClusterModel& model, const SimulatedWork& work) {
  sim::v1::Cluster cluster;
  for (const simulator::HostModel& host : model.hosts) WriteHost(host, cluster.add_hosts());
  for (const simulator::GroupLink& pair : model.between) {
    sim::v1::GroupLink& between = *cluster.add_between();
    between.add_groups(pair.a);
    between.add_groups(pair.b);
    WriteLink(pair.link, &between);
  }
  WriteLink(model.local, cluster.mutable_local());
  cluster.set_collective(static_cast<sim::v1::Collective>(static_cast<int>(model.algorithm) + 1));
  WriteControl(model.control, cluster.mutable_control());
  *cluster.mutable_model() = work.model;
  *cluster.mutable_loss() = work.loss;
  for (const simulator::Fault& fault : model.faults) WriteFault(fault, cluster.add_faults());
  return WriteMessage(cluster);
}

}  // namespace tactus::client
