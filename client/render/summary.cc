#include "client/render/summary.h"

#include <algorithm>

#include "client/render/progress_view.h"
#include "client/render/tables.h"
#include "client/text/text.h"

namespace tactus::client {
namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string Validation(const v1::Evaluated& validation) {
  if (validation.samples() == 0) return "none";
  std::string text = FormatLoss(validation.loss());
  if (validation.accuracy() >= 0) text += ", accuracy " + FormatPercent(validation.accuracy());
  return text + " (" + FormatCount(validation.samples()) + " samples)";
}

// Of a result that is not what training ended with.
std::string ParametersText(const v1::JobResult& result) {
  const std::uint64_t rounds = result.validation().rounds();
  if (result.validation().samples() == 0 || rounds == 0 || rounds == result.rounds()) return "";
  return "of round " + FormatCount(rounds) + ", which had the least validation loss";
}

std::string Overview(const v1::Job& job) {
  const v1::JobResult& result = job.result();
  const Duration time = FromProto(result.train_time());
  const double seconds = ToSeconds(time);
  const double rate = seconds > 0 ? static_cast<double>(result.samples()) / seconds : 0;
  Rows rows = {
      {"  time", FormatSpan(time)},
      {"  rounds",
       FormatCount(result.rounds()) + ", epochs completed " + FormatCount(result.epochs())},
      {"  samples", FormatCount(result.samples()) + ", " + FormatRate(rate) + " samples/s"},
      {"  train loss", FormatLoss(result.train_loss()) + " (mean of the last rounds)"},
      {"  validation loss", Validation(result.validation())},
      {"  utilisation",
       FormatPercent(result.utilisation()) + " of the workers' own speeds together"}};
  if (const std::string parameters = ParametersText(result); !parameters.empty()) {
    rows.push_back({"  parameters", parameters});
  }
  for (const auto& [name, text] : Shortfalls(job.progress())) rows.push_back({"  " + name, text});
  return FormatTable(rows);
}

std::string Shares(const v1::JobProgress& progress) {
  if (progress.workers().empty()) return "";
  std::uint64_t samples = 0;
  for (const v1::WorkerProgress& worker : progress.workers()) samples += worker.samples();
  Rows rows = {{"  worker", "device", "batch", "samples", "share", "own speed", "idle"}};
  for (const v1::WorkerProgress& worker : progress.workers()) {
    const double share =
        samples == 0 ? 0 : static_cast<double>(worker.samples()) / static_cast<double>(samples);
    std::string device = Printable(worker.node() + " " + worker.device());
    if (worker.emulated_speed() > 0) device += " at " + FormatRate(worker.emulated_speed());
    rows.push_back({"  " + std::to_string(worker.rank()), device,
                    std::to_string(worker.batch_size()), FormatCount(worker.samples()),
                    FormatPercent(share), FormatRate(worker.samples_per_second()) + " samples/s",
                    FormatPercent(worker.idle_ratio())});
  }
  return "\n" + FormatTable(rows);
}

// A Python string literal.
std::string PythonText(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

std::string Files(const std::vector<std::string>& paths) {
  std::string text;
  for (const std::string& path : paths) text += "  " + Printable(path) + "\n";
  const auto model = std::find_if(paths.begin(), paths.end(),
                                  [](const std::string& path) { return path.ends_with(".pt"); });
  if (model != paths.end()) {
    text += "load it in Python:\n  model = torch.jit.load(" + PythonText(Printable(*model)) + ")\n";
  }
  return text.empty() ? "" : "\nresult:\n" + text;
}

}  // namespace

std::string Summary(const v1::Job& job, const std::vector<std::string>& paths) {
  const std::string reason = job.has_result() && !job.result().stop_reason().empty()
                                 ? job.result().stop_reason()
                                 : job.state_reason();
  std::string text = "job " + Printable(ShortName(job.name())) + " " + StateName(job.state());
  text += reason.empty() ? "\n" : ": " + Printable(reason) + "\n";
  if (job.has_result()) text += Overview(job);
  text += Shares(job.progress());
  if (IsEmulated(job)) text += std::string("  ") + kEmulationNote + "\n";
  return text + Files(paths);
}

bool IsEmulated(const v1::Job& job) {
  return std::any_of(job.progress().workers().begin(), job.progress().workers().end(),
                     [](const v1::WorkerProgress& worker) { return worker.emulated_speed() > 0; });
}

}  // namespace tactus::client
