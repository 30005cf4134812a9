// The part of CoreRunner that answers what users ask of nodes.

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "coordinator/shell/core_runner.h"
#include "coordinator/shell/job_conversion.h"
#include "coordinator/store/job_columns.h"
#include "coordinator/telemetry/scrape_targets.h"
#include "runtime/status.h"

namespace tactus::service {
namespace {

absl::Status NoSuchNode(const std::string& name) {
  return runtime::WithReason(absl::NotFoundError("nodes/" + name + ": no such node"),
                             {.reason = "NODE_NOT_FOUND", .metadata = {{"node", name}}});
}

absl::Status NotGone(const std::string& name, const std::string& why, runtime::ErrorReason reason) {
  reason.metadata["node"] = name;
  return runtime::WithReason(absl::FailedPreconditionError("nodes/" + name + ": " + why), reason);
}

const NodeView* ViewOf(const std::vector<NodeView>& views, const std::string& name) {
  const auto found = std::ranges::lower_bound(views, name, {}, &NodeView::name);
  return found == views.end() || found->name != name ? nullptr : &*found;
}

job::NodeRecord Marked(job::NodeRecord record, NodeMarking marking) {
  record.cordoned = marking != NodeMarking::kUncordon;
  if (marking != NodeMarking::kCordon) record.draining = marking == NodeMarking::kDrain;
  return record;
}

// Of the worker on its device, while computing; 0: not known.
double SpeedOf(const job::JobRecord& record, WorkerId worker) {
  for (std::size_t rank = 0; rank < record.members.size(); ++rank) {
    if (record.members[rank].worker != worker || rank >= record.progress.workers.size()) continue;
    return record.progress.workers[rank].samples_per_second;
  }
  return 0;
}

// Sets what is the same for every call; the membership says more.
void SetRecord(const job::DeviceRecord& record, v1::Device* device) {
  device->set_name(record.name);
  device->set_kind(ToProto(record.kind));
  device->set_model(record.model);
  device->set_emulated_speed(record.emulated_speed);
  device->set_uuid(record.uuid);
  device->set_memory_bytes(record.memory_bytes);
}

// Of the device, as its agent said last.
std::string FaultOf(const job::Membership& membership, const std::string& node,
                    const std::string& device) {
  const auto known = membership.nodes().find(node);
  if (known == membership.nodes().end()) return "";
  const std::vector<job::DeviceRecord>& devices = known->second.devices;
  const auto found = std::ranges::find(devices, device, &job::DeviceRecord::name);
  return found == devices.end() ? "" : found->fault;
}

}  // namespace

// `view` is null for a node that is only known by what users said of it.
v1::Node CoreRunner::NodeFrom(const std::string& name, const NodeView* view) const {
  const job::Membership& membership = cluster_.membership();
  v1::Node node;
  node.set_name("nodes/" + name);
  const job::NodeRecord mark = membership.MarkOf(name);
  node.set_cordoned(mark.cordoned);
  node.set_draining(mark.draining);
  const auto known = membership.nodes().find(name);
  if (known != membership.nodes().end()) {
    node.set_leaving(known->second.leaving);
    const job::NodeTraits& traits = known->second.traits;
    node.mutable_labels()->insert(traits.labels.begin(), traits.labels.end());
    node.mutable_taints()->Add(traits.taints.begin(), traits.taints.end());
  }
  if (view == nullptr) return node;
  node.set_metrics_address(view->metrics_address);
  node.set_connected(view->connected);
  *node.mutable_last_seen_time() = ToTimestamp(view->last_seen);
  node.set_agent_version(view->agent_version);
  for (const job::DeviceRecord& record : view->devices) {
    v1::Device* device = node.add_devices();
    SetRecord(record, device);
    device->set_fault(FaultOf(membership, name, record.name));
    double speed = 0;
    for (const job::Holder& holder : membership.HoldersOf(name, record.name)) {
      device->add_jobs(JobName(holder.job_name));
      const auto job = visible_.find(holder.job);
      if (job != visible_.end()) speed += SpeedOf(job->second, holder.worker);
    }
    if (device->jobs().empty()) continue;
    device->set_job(device->jobs(0));
    device->set_samples_per_second(speed);
  }
  return node;
}

// Of all that are known: by their agents, or by what users said.
std::set<std::string> CoreRunner::NodeNames(const std::vector<NodeView>& views) const {
  std::set<std::string> names;
  for (const NodeView& view : views) names.insert(names.end(), view.name);
  for (const auto& [name, node] : cluster_.membership().nodes()) {
    if (node.cordoned || node.draining) names.insert(name);
  }
  return names;
}

void CoreRunner::ListNodes(int page_size, const std::string& page_token, Answer<NodePage> answer) {
  around_.control.Post([this, page_size, page_token, answer = std::move(answer)] {
    const std::vector<NodeView> views = sessions_.Nodes();
    const std::set<std::string> names = NodeNames(views);
    NodePage page;
    for (auto name = names.upper_bound(page_token); name != names.end(); ++name) {
      if (page.nodes.size() == static_cast<std::size_t>(page_size)) {
        page.next = *std::prev(name);
        break;
      }
      page.nodes.push_back(NodeFrom(*name, ViewOf(views, *name)));
    }
    answer(std::move(page));
  });
}

void CoreRunner::ListScrapeTargets(std::function<void(std::string json)> answer) {
  around_.control.Post([this, answer = std::move(answer)] {
    std::vector<telemetry::AgentAddress> agents;
    for (NodeView& view : sessions_.Nodes()) {
      if (!view.connected) continue;
      agents.push_back({.node = std::move(view.name),
                        .metrics_address = std::move(view.metrics_address),
                        .peer = std::move(view.peer)});
    }
    answer(telemetry::ScrapeTargetsJson(agents));
  });
}

absl::StatusOr<v1::Node> CoreRunner::FindNode(const std::string& name) const {
  const std::vector<NodeView> views = sessions_.Nodes();
  const NodeView* const view = ViewOf(views, name);
  const job::NodeRecord mark = cluster_.membership().MarkOf(name);
  if (view == nullptr && !mark.cordoned && !mark.draining) return NoSuchNode(name);
  return NodeFrom(name, view);
}

void CoreRunner::GetNode(const std::string& name, Answer<v1::Node> answer) {
  around_.control.Post([this, name, answer = std::move(answer)] { answer(FindNode(name)); });
}

void CoreRunner::SetAgentLogLevel(const std::string& node, const std::string& level,
                                  std::function<void(const absl::Status&)> answer) {
  around_.control.Post([this, node, level, answer = std::move(answer)] {
    const absl::StatusOr<v1::Node> found = FindNode(node);
    if (!found.ok()) return answer(found.status());
    if (!found->connected()) {
      return answer(
          absl::FailedPreconditionError("nodes/" + node + ": its agent is not connected"));
    }
    agent::v1::ToAgent message;
    message.mutable_set_log_level()->set_level(level);
    sessions_.Tell(node, std::move(message));
    answer(absl::OkStatus());
  });
}

absl::Status CoreRunner::CheckProbe(const std::string& name, bool while_training) const {
  const absl::StatusOr<v1::Node> node = FindNode(name);
  if (!node.ok()) return node.status();
  if (!node->connected()) {
    return absl::FailedPreconditionError("nodes/" + name + ": its agent is not connected");
  }
  const std::string job = cluster_.JobOn(name);
  if (job.empty() || while_training) return absl::OkStatus();
  return NotGone(name,
                 "job " + job + " has workers there, whose rounds a measurement would disturb",
                 {.reason = "NODE_HAS_WORKERS", .metadata = {{"job", job}}});
}

void CoreRunner::ProbeLink(const LinkQuery& query, Answer<v1::ProbeLinkResponse> answer) {
  around_.control.Post([this, query, answer = std::move(answer)] {
    for (const std::string& name : {query.from, query.to}) {
      const absl::Status may = CheckProbe(name, query.while_training);
      if (!may.ok()) return answer(may);
    }
    links_.Ask(query.from, query.to, answer);
  });
}

void CoreRunner::MarkNode(const std::string& name, NodeMarking marking, Answer<v1::Node> answer) {
  around_.control.Post([this, name, marking, answer = std::move(answer)] {
    absl::StatusOr<v1::Node> node = FindNode(name);
    if (!node.ok()) return answer(std::move(node));
    const absl::Status admitted = AdmitChange();
    if (!admitted.ok()) return answer(admitted);
    job::NodeRecord record = Marked(cluster_.membership().MarkOf(name), marking);
    record.name = name;
    Handle(job::NodeMarked{std::move(record)},
           [this, name, node = *std::move(node), answer](const absl::Status& status) {
             if (!status.ok()) return answer(status);
             absl::StatusOr<v1::Node> after = FindNode(name);
             if (after.ok()) return answer(std::move(after));
             // It was known by its mark alone, which was taken back.
             v1::Node bare = node;
             bare.set_cordoned(false);
             bare.set_draining(false);
             answer(std::move(bare));
           });
  });
}

// Who is not connected may be about to say what it runs: a coordinator that was restarted does not
// know yet.
void CoreRunner::FindNodesBlob(const std::string& node, const std::string& sha256,
                               Answer<bool> answer) {
  around_.control.Post([this, node, sha256, answer = std::move(answer)] {
    const auto& nodes = cluster_.membership().nodes();
    const auto known = nodes.find(node);
    if (known == nodes.end() || !known->second.connected) {
      return answer(absl::UnavailableError("nodes/" + node + ": its agent is not connected"));
    }
    for (const job::DeviceRecord& device : known->second.devices) {
      for (const job::Holder& holder : cluster_.membership().HoldersOf(node, device.name)) {
        const job::JobRecord* const record = cluster_.Find(holder.job);
        if (record == nullptr) continue;
        const std::vector<std::string> blobs = store::BlobsOf(*record);
        if (std::ranges::find(blobs, sha256) != blobs.end()) return answer(true);
      }
    }
    answer(false);
  });
}

absl::Status CoreRunner::CheckNodeGone(const std::string& name) const {
  if (const absl::StatusOr<v1::Node> known = FindNode(name); !known.ok()) return known.status();
  const std::vector<NodeView> views = sessions_.Nodes();
  const NodeView* const view = ViewOf(views, name);
  if (view != nullptr && view->connected) {
    return NotGone(name, "its agent is connected; end it first", {.reason = "NODE_CONNECTED"});
  }
  if (const std::string job = cluster_.JobOn(name); !job.empty()) {
    return NotGone(name,
                   "job " + job +
                       " has workers there, which may train on unheard; cancel it, or wait until "
                       "they are given up",
                   {.reason = "NODE_HAS_WORKERS", .metadata = {{"job", job}}});
  }
  if (awaited_nodes_.Awaits(name) || (view != nullptr && view->expected)) {
    return runtime::WithRetry(
        NotGone(name, "its agent may be back within moments; it is called gone some seconds later",
                {.reason = "NODE_EXPECTED"}),
        std::chrono::seconds(10));
  }
  return absl::OkStatus();
}

void CoreRunner::DeleteNode(const std::string& name,
                            std::function<void(const absl::Status&)> answer) {
  around_.control.Post([this, name, answer = std::move(answer)] {
    absl::Status admitted = CheckNodeGone(name);
    if (admitted.ok()) admitted = AdmitChange();
    if (!admitted.ok()) return answer(admitted);
    sessions_.Forget(name);
    around_.metrics.nodes().Forget(name);
    Handle(job::NodeDeleted{name}, answer);
  });
}

}  // namespace tactus::service
