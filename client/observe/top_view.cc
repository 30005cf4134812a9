#include "client/observe/top_view.h"

#include <algorithm>
#include <map>
#include <sstream>
#include <utility>
#include <vector>

#include "client/render/progress_view.h"
#include "client/render/tables.h"
#include "client/text/text.h"

namespace tactus::client {
namespace {

constexpr char kEscape = '\x1b';
constexpr std::size_t kStatusColumn = 1;

// The worker on each device: by node and device.
using Workers = std::map<std::pair<std::string, std::string>, const v1::WorkerProgress*>;

Workers WorkersOf(const v1::ListJobsResponse& jobs) {
  Workers workers;
  for (const v1::Job& job : jobs.jobs()) {
    if (job.state() != v1::JOB_STATE_RUNNING) continue;
    for (const v1::WorkerProgress& worker : job.progress().workers()) {
      workers[{worker.node(), worker.device()}] = &worker;
    }
  }
  return workers;
}

std::string OrDash(const std::string& text) { return text.empty() ? "-" : Printable(text); }

std::vector<std::string> DeviceRow(const v1::Node& node, const v1::Device& device,
                                   const Workers& workers) {
  const std::string name = ShortName(node.name());
  std::vector<std::string> row = {Printable(name), NodeStatus(node), Printable(device.name()),
                                  OrDash(device.model()), JobsText(device)};
  const auto found = workers.find({name, device.name()});
  if (found == workers.end() || device.job().empty()) {
    row.insert(row.end(), {"-", "-", "-"});
  } else {
    const v1::WorkerProgress& worker = *found->second;
    row.insert(row.end(),
               {std::to_string(worker.batch_size()), FormatRate(worker.samples_per_second()),
                FormatPercent(worker.idle_ratio())});
  }
  row.push_back(OrDash(device.fault()));
  return row;
}

std::string DevicesText(const v1::ListJobsResponse& jobs, const v1::ListNodesResponse& nodes,
                        bool colour) {
  const Workers workers = WorkersOf(jobs);
  std::vector<std::vector<std::string>> rows = {
      {"NODE", "STATUS", "DEVICE", "MODEL", "JOB", "BATCH", "SAMPLES/S", "IDLE", "FAULT"}};
  for (const v1::Node& node : nodes.nodes()) {
    for (const v1::Device& device : node.devices()) {
      rows.push_back(DeviceRow(node, device, workers));
    }
    if (node.devices().empty()) {
      rows.push_back(
          {Printable(ShortName(node.name())), NodeStatus(node), "-", "-", "-", "-", "-", "-", "-"});
    }
  }
  return FormatTable(rows, [&](std::size_t row, std::size_t column) {
    return colour && row > 0 && column == kStatusColumn ? StateCode(rows[row][column]) : "";
  });
}

std::string MoreThan(bool more) { return more ? "more than " : ""; }

std::string JobsSummary(const LiveJobs& live) {
  std::map<v1::JobState, std::uint64_t> states;
  double rate = 0;
  for (const v1::Job& job : live.jobs.jobs()) {
    ++states[job.state()];
    if (job.state() == v1::JOB_STATE_RUNNING) rate += job.progress().samples_per_second();
  }
  std::string text = MoreThan(live.more_queued) +
                     CountOf(static_cast<std::uint64_t>(live.jobs.jobs_size()), "job");
  for (const auto& [state, count] : states) {
    text += ", " + MoreThan(live.more_queued && state == v1::JOB_STATE_QUEUED) +
            FormatCount(count) + " " + StateName(state);
  }
  if (rate > 0) text += "; " + FormatRate(rate) + " samples/s";
  return text;
}

std::string JobsText(const LiveJobs& live, bool colour) {
  v1::ListJobsResponse shown;
  const int count = std::min(live.jobs.jobs_size(), kTopJobsShown);
  for (int i = 0; i < count; ++i) *shown.add_jobs() = live.jobs.jobs(i);
  std::string text = Render(shown, {OutputFormat::kTable, colour});
  const auto hidden = static_cast<std::uint64_t>(live.jobs.jobs_size() - count);
  if (hidden > 0)
    text += "... and " + MoreThan(live.more_queued) + CountOf(hidden, "other job") + "\n";
  return text;
}

std::string NodesSummary(const v1::ListNodesResponse& nodes) {
  std::size_t connected = 0;
  std::size_t devices = 0;
  std::size_t busy = 0;
  std::size_t faulty = 0;
  for (const v1::Node& node : nodes.nodes()) {
    if (!node.connected()) continue;
    ++connected;
    for (const v1::Device& device : node.devices()) {
      ++devices;
      busy += device.job().empty() ? 0 : 1;
      faulty += device.fault().empty() ? 0 : 1;
    }
  }
  const auto total = static_cast<std::size_t>(nodes.nodes_size());
  std::string text = CountOf(connected, "node");
  if (total > connected) text += " and " + FormatCount(total - connected) + " gone";
  text += ", " + FormatCount(busy) + " of " + CountOf(devices, "device") + " busy";
  if (faulty > 0) text += ", " + FormatCount(faulty) + " at fault";
  return text;
}

// The first `columns` characters, and the colours' escape codes, which take no room.
std::string CutLine(const std::string& line, std::size_t columns) {
  std::string out;
  std::size_t seen = 0;
  bool coloured = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == kEscape) {
      const std::size_t end = line.find('m', i);
      if (end == std::string::npos) break;
      out += line.substr(i, end + 1 - i);
      coloured = true;
      i = end;
      continue;
    }
    const bool starts = (static_cast<unsigned char>(line[i]) & 0xc0) != 0x80;
    if (starts && seen++ == columns) break;
    out += line[i];
  }
  return coloured ? out + "\x1b[0m" : out;
}

}  // namespace

std::string TopText(const LiveJobs& live, const v1::ListNodesResponse& nodes, bool colour) {
  return NodesSummary(nodes) + "; " + JobsSummary(live) + "\n\n" + JobsText(live, colour) + "\n" +
         DevicesText(live.jobs, nodes, colour);
}

std::string Frame(const std::string& text, const FrameSize& size) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  if (lines.size() > size.rows) {
    const std::size_t hidden = lines.size() - size.rows + 1;
    lines.resize(size.rows - 1);
    lines.push_back("... " + CountOf(hidden, "line") + " more");
  }
  // Erased before it is written: behind a line that fills its row some terminals' cursors still
  // stand on its last character.
  std::string frame = "\x1b[H";
  for (std::size_t i = 0; i + 1 < lines.size(); ++i) {
    frame += "\x1b[K" + CutLine(lines[i], size.columns) + "\r\n";
  }
  return frame + "\x1b[J" + (lines.empty() ? "" : CutLine(lines.back(), size.columns));
}

}  // namespace tactus::client
