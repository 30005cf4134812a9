#include "client/render/progress_view.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>

#include "client/render/plan_rows.h"
#include "client/render/tables.h"
#include "client/text/names.h"
#include "client/text/text.h"

namespace tactus::client {
namespace {

constexpr const char* kBold = "1";
constexpr const char* kGreen = "32";
constexpr const char* kYellow = "33";
constexpr double kIdleShown = 0.1;  // idle above this is worth a colour
constexpr std::size_t kBarWidth = 20;

std::string JobLine(const v1::JobProgress& progress) {
  std::string line = "epoch " + std::to_string(progress.epoch());
  line += " (" + FormatPercent(progress.epoch_fraction()) + ")";
  line += "  round " + FormatCount(progress.rounds());
  line += "  loss " + FormatLoss(progress.loss());
  line += "  " + FormatRate(progress.samples_per_second()) + " samples/s";
  line += "  elapsed " + FormatSpan(FromProto(progress.elapsed()));
  if (progress.has_eta()) line += "  ETA " + FormatSpan(FromProto(progress.eta()));
  if (progress.skipped_rounds() > 0) line += "  skipped " + FormatCount(progress.skipped_rounds());
  return line;
}

std::string PlainWorkers(const v1::JobProgress& progress) {
  std::string batches;
  std::string idle;
  for (const v1::WorkerProgress& worker : progress.workers()) {
    batches += (batches.empty() ? "" : ",") + std::to_string(worker.batch_size());
    idle += (idle.empty() ? "" : ",") + std::to_string(std::lround(100 * worker.idle_ratio()));
  }
  return batches.empty() ? "" : "  batch " + batches + "  idle " + idle + " %";
}

std::size_t BarLength(double speed, double speed_max) {
  if (!(speed > 0) || !(speed_max > 0) || !std::isfinite(speed_max)) return 0;
  const double share = std::min(1.0, speed / speed_max);
  return static_cast<std::size_t>(std::lround(share * static_cast<double>(kBarWidth)));
}

// "periodic 8", "average", "constant".
std::vector<std::string> ChoicesOf(const v1::Plan& plan) {
  std::vector<std::string> choices = policies::ChoicesOf(RowsOf(plan));
  for (std::string& choice : choices) choice = Printable(choice);
  return choices;
}

}  // namespace

std::string ProgressView::Show(const v1::JobEvent& event, Instant now, std::size_t columns) {
  if (options_.style == ProgressViewOptions::Style::kJson) {
    return event.has_bookmark() ? "" : JsonLine(event) + "\n";
  }
  std::string text;
  switch (event.event_case()) {
    case v1::JobEvent::kJob:
      text = ShowJob(event.job());
      break;
    case v1::JobEvent::kProgress:
      text = ShowProgress(event.progress(), now);
      break;
    case v1::JobEvent::kDecision:
      text = ShowDecision(event.decision());
      break;
    case v1::JobEvent::kBookmark:
    case v1::JobEvent::EVENT_NOT_SET:
      break;
  }
  return options_.style == ProgressViewOptions::Style::kBlock ? Redraw(text, columns) : text;
}

std::string ProgressView::ShowJob(const v1::Job& job) {
  const bool same = state_ == job.state() && state_reason_ == job.state_reason();
  name_ = Printable(ShortName(job.name()));
  state_ = job.state();
  state_reason_ = job.state_reason();
  if (job.has_progress()) progress_ = job.progress();
  const std::string validation = ShowValidation(progress_.validation());
  // Why it failed is an error, which ends the program's messages.
  if (same || state_ == v1::JOB_STATE_FAILED) return validation;
  const bool held = state_ == v1::JOB_STATE_SUSPENDING || state_ == v1::JOB_STATE_PAUSED;
  const char* code = state_ == v1::JOB_STATE_SUCCEEDED ? kGreen : held ? kYellow : kBold;
  const std::string reason = state_reason_.empty() ? "" : ": " + Printable(state_reason_);
  return validation + "job " + name_ + " " + Coloured(StateName(state_), code) + reason + "\n";
}

std::string ProgressView::ShowValidation(const v1::ValidationProgress& validation) {
  if (validation.count() == validations_) return "";
  validations_ = validation.count();
  if (!validation.has_newest()) return "";
  const v1::ValidationPoint& newest = validation.newest();
  const bool best = validation.has_best() && validation.best().rounds() == newest.rounds();
  std::string line = Coloured("validation:", kBold) + " loss " + ValidationText(newest) +
                     ", after " + CountOf(newest.rounds(), "round");
  if (best) line += ", the best so far";
  return line + "; took " + FormatSpan(Seconds(newest.seconds())) + "\n";
}

std::string ProgressView::ShowDecision(const v1::Plan& plan) {
  const std::vector<std::uint32_t> now(plan.batch_sizes().begin(), plan.batch_sizes().end());
  const bool news = plan.version() != plan_version_ || now != batch_sizes_;
  std::string changes;
  const std::vector<std::string> choices = ChoicesOf(plan);
  for (std::size_t i = 0; i < std::min(choices.size(), choices_.size()); ++i) {
    if (choices[i] != choices_[i]) changes += ", " + choices_[i] + " → " + choices[i];
  }
  std::string line = Coloured("decision:", kYellow);
  if (changes.empty() || batch_sizes_ != now) {
    line += " batch ";
    if (!batch_sizes_.empty() && batch_sizes_ != now) line += JoinNumbers(batch_sizes_) + " → ";
    line += JoinNumbers(now) + changes;
  } else {
    line += changes.substr(1);
  }
  if (!plan.reason().empty()) line += ": " + Printable(plan.reason());
  batch_sizes_ = now;
  choices_ = choices;
  plan_version_ = plan.version();
  return news ? line + "\n" : "";
}

std::string ProgressView::ShowProgress(const v1::JobProgress& progress, Instant now) {
  progress_ = progress;
  if (batch_sizes_.empty()) {
    batch_sizes_.assign(progress.plan().batch_sizes().begin(), progress.plan().batch_sizes().end());
    choices_ = ChoicesOf(progress.plan());
    plan_version_ = progress.plan().version();
  }
  const std::string validation = ShowValidation(progress.validation());
  if (options_.style == ProgressViewOptions::Style::kBlock) return validation;
  if (line_shown_ && now - line_time_ < options_.line_interval) return validation;
  line_shown_ = true;
  line_time_ = now;
  return validation + JobLine(progress) + PlainWorkers(progress) + "\n";
}

// Up to the block's first line, everything from there erased, `above` scrolling by, the block
// again.
std::string ProgressView::Redraw(const std::string& above, std::size_t columns) {
  std::string text;
  if (block_lines_ > 0) text += "\x1b[" + std::to_string(block_lines_) + "A\r\x1b[J";
  text += above;
  block_lines_ = 0;
  const bool paused = state_ == v1::JOB_STATE_PAUSED;
  if (progress_.rounds() == 0 || paused || IsOver(state_)) return text;
  double speed_max = 0;
  for (const v1::WorkerProgress& worker : progress_.workers()) {
    speed_max = std::max(speed_max, worker.samples_per_second());
  }
  for (const v1::WorkerProgress& worker : progress_.workers()) {
    const std::string line = Cut(WorkerLine(worker, speed_max), columns - 1);
    text += worker.idle_ratio() > kIdleShown ? Coloured(line, kYellow) : line;
    text += "\n";
    ++block_lines_;
  }
  text += Coloured(Cut(JobLine(progress_), columns - 1), kBold) + "\n";
  ++block_lines_;
  return text;
}

std::string ProgressView::WorkerLine(const v1::WorkerProgress& worker, double speed_max) const {
  std::string device = Printable(worker.node() + " " + worker.device());
  if (worker.emulated_speed() > 0) device += " at " + FormatRate(worker.emulated_speed());
  std::string line = PadLeft(std::to_string(worker.rank()), 3) + " " + PadRight(device, 20);
  line += PadLeft(FormatRate(worker.samples_per_second()), 8) + " samples/s";
  line += "  batch " + PadLeft(std::to_string(worker.batch_size()), 5);
  line += "  idle " + PadLeft(FormatPercent(worker.idle_ratio()), 7);
  const std::size_t bar = BarLength(worker.samples_per_second(), speed_max);
  return line + "  " + std::string(bar, '#') + std::string(kBarWidth - bar, '.');
}

std::string ProgressView::Coloured(const std::string& text, const char* code) const {
  return options_.colour ? std::string("\x1b[") + code + "m" + text + "\x1b[0m" : text;
}

std::string StateName(v1::JobState state) {
  const auto* value = v1::JobState_descriptor()->FindValueByNumber(state);
  return value == nullptr ? "unknown" : EnumValueName(*value);
}

bool IsOver(v1::JobState state) {
  return state == v1::JOB_STATE_SUCCEEDED || state == v1::JOB_STATE_FAILED ||
         state == v1::JOB_STATE_CANCELLED;
}

std::string JsonLine(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string text;
  const auto status = google::protobuf::util::MessageToJsonString(message, &text, options);
  return status.ok() ? text : "{}";
}

Duration FromProto(const google::protobuf::Duration& duration) {
  constexpr std::int64_t kSecondsMax = 9'000'000'000;  // what nanoseconds in 64 bits can hold
  const std::int64_t seconds = std::clamp(duration.seconds(), -kSecondsMax, kSecondsMax);
  return std::chrono::seconds(seconds) + std::chrono::nanoseconds(duration.nanos());
}

}  // namespace tactus::client
