#include "client/render/story.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <vector>

#include "client/render/progress_view.h"
#include "client/render/tables.h"
#include "client/text/text.h"
#include "coordinator/spec/adapt_checks.h"
#include "policies/catalogue.h"

namespace tactus::client {
namespace {

// "a", "a and b", "a, b and c".
std::string Listed(const std::vector<std::string>& parts) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text += i + 1 == parts.size() ? " and " : ", ";
    text += parts[i];
  }
  return text;
}

// A sentence out of somebody else's text: printable, with a stop.
std::string Sentence(const std::string& text) {
  std::string sentence = Printable(text);
  if (!sentence.empty() && std::string(".!?").find(sentence.back()) == std::string::npos) {
    sentence += '.';
  }
  return sentence;
}

// Three significant digits at least.
std::string Figure(double value) {
  if (!std::isfinite(value) || std::abs(value) >= 0.995) return FormatRate(value);
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3g", value);
  return text.data();
}

// ---- What the job is

std::string ModelText(const v1::Model& model) {
  if (model.source_case() == v1::Model::kBuiltin) return Printable(model.builtin());
  return "the TorchScript model " + Printable(model.torchscript());
}

std::string ProgressWorkers(const v1::JobProgress& progress) {
  constexpr int kNamedMax = 8;
  if (progress.workers().empty()) return "no worker yet";
  std::string text = std::to_string(progress.workers_size()) +
                     (progress.workers_size() == 1 ? " worker" : " workers");
  if (progress.workers_size() > kNamedMax) return text;
  std::vector<std::string> names;
  for (const v1::WorkerProgress& worker : progress.workers()) {
    std::string name = Printable(worker.node() + " " + worker.device());
    if (worker.emulated_speed() > 0) name += " at " + FormatRate(worker.emulated_speed());
    names.push_back(name);
  }
  return text + " (" + Listed(names) + ")";
}

// "batch proportional (shares follow the measured speeds); synchronization ...".
std::string PoliciesText(const policies::PlannerOptions& adapt) {
  std::string text;
  for (const policies::Axis axis : policies::kAxes) {
    const bool frozen = std::ranges::find(adapt.frozen, axis) != adapt.frozen.end();
    text += (text.empty() ? "" : "; ") + policies::NameOf(axis) + " " +
            policies::PolicyOf(adapt, axis) + " (" + policies::SentenceOf(adapt, axis) +
            (frozen ? "; frozen, so that it stays as it is)" : ")");
  }
  return text;
}

// "python3 train.py --epochs 3"
std::string CommandText(const v1::Program& program) {
  std::string text;
  for (const std::string& word : program.command()) text += (text.empty() ? "" : " ") + word;
  return Printable(text);
}

std::string Opening(const v1::Job& job) {
  const policies::PlannerOptions adapt = spec::PlannerOptionsOf(spec::Resolve(job.spec()));
  const std::string what = job.spec().has_program()
                               ? "by the program " + CommandText(job.spec().program())
                               : ModelText(job.spec().model()) + " with " + adapt.optimizer;
  return Printable(ShortName(job.name())) + " trains " + what + " on " +
         ProgressWorkers(job.progress()) + ". Its policies: " + PoliciesText(adapt) + ".";
}

// ---- A decision

std::string When(const v1::Decision& decision) {
  const Duration time = FromProto(decision.train_time());
  if (decision.round() == 0 && time == Duration(0)) return "At the start";
  return "After round " + FormatCount(decision.round()) + ", " + FormatSpan(time) +
         " into training (decision " + Printable(ShortName(decision.name())) + "),";
}

std::string What(const v1::Decision& decision) {
  const std::string axis = "the " + AxisName(decision.axis());
  const std::string to = Printable(decision.to());
  if (decision.from().empty()) return axis + " was set to " + to;
  return axis + " went from " + Printable(decision.from()) + " to " + to;
}

std::string SeenText(const v1::Decision& decision) {
  if (decision.inputs().empty()) return "";
  std::vector<std::string> parts;
  for (const v1::Quantity& input : decision.inputs()) {
    std::string part = Printable(input.name()) + " " + Figure(input.value());
    if (!input.unit().empty()) part += " " + Printable(input.unit());
    parts.push_back(part);
  }
  return " It was decided from: " + Listed(parts) + ".";
}

std::string PredictedText(const v1::Decision& decision) {
  std::vector<std::string> others;
  for (const v1::Alternative& other : decision.alternatives()) {
    others.push_back(Printable(other.value()) + " " + FormatGain(other.predicted_gain()));
  }
  std::string text;
  if (!decision.metric().empty()) {
    text = " Predicted: " + FormatGain(decision.predicted_gain()) + " " +
           Printable(decision.metric()) + ".";
  }
  if (!others.empty()) text += " The alternatives: " + Listed(others) + ".";
  return text;
}

// `running`: its plan is the newest, and the job goes on.
std::string MeasuredText(const v1::Decision& decision, bool running) {
  if (decision.metric().empty()) return "";
  if (decision.has_measured_gain()) {
    return " Measured: " + FormatGain(decision.measured_gain()) + " " +
           Printable(decision.metric()) + ".";
  }
  return running ? " It is not measured yet." : " It was not in force for long enough to measure.";
}

// Without the value where it repeats it: "periodic 48: as the job asks".
std::string ReasonOf(const v1::Decision& decision) {
  const std::string prefix = decision.to() + ": ";
  const bool repeats = decision.reason().starts_with(prefix);
  return repeats ? decision.reason().substr(prefix.size()) : decision.reason();
}

std::string Told(const v1::Decision& decision, bool running) {
  return When(decision) + " " + What(decision) + ": " + Sentence(ReasonOf(decision)) +
         SeenText(decision) + PredictedText(decision) + MeasuredText(decision, running);
}

// ---- Where it stands

// How much is known of what the decisions were worth: the measured gains of each metric,
// multiplied.
std::string EffectText(const v1::ListDecisionsResponse& decisions) {
  std::map<std::string, double> factors;
  int measured = 0;
  for (const v1::Decision& decision : decisions.decisions()) {
    if (!decision.has_measured_gain()) continue;
    ++measured;
    factors.try_emplace(decision.metric(), 1).first->second *= 1 + decision.measured_gain();
  }
  std::vector<std::string> effects;
  for (const auto& [metric, factor] : factors) {
    effects.push_back(FormatGain(factor - 1) + " " + Printable(metric));
  }
  const int made = decisions.decisions_size();
  std::string text = std::to_string(made) + (made == 1 ? " decision was" : " decisions were") +
                     " made; " + (measured == 0 ? "none" : std::to_string(measured)) +
                     (measured == 1 || made == 1 ? " is" : " are") + " measured";
  if (effects.empty()) return text + ".";
  return text + ", multiplied " + Listed(effects) +
         (measured == made ? "." : "; what is not measured is not in that.");
}

std::string ResultText(const v1::JobResult& result) {
  const double seconds = ToSeconds(FromProto(result.train_time()));
  const double rate = seconds > 0 ? static_cast<double>(result.samples()) / seconds : 0;
  std::string text = " after " + FormatCount(result.rounds()) + " rounds in " +
                     FormatSpan(FromProto(result.train_time())) + ", at " + FormatRate(rate) +
                     " samples/s, with a training loss of " + FormatLoss(result.train_loss());
  if (result.validation().samples() > 0) {
    text += " and a validation loss of " + FormatLoss(result.validation().loss());
  }
  return text;
}

// " 12 validations took 3.1 s: the best loss was 1.79 after 900 rounds, the newest 1.82 ...".
std::string ValidationStory(const v1::ValidationProgress& validation) {
  if (validation.count() == 0) return "";
  std::string text = " " + FormatCount(validation.count()) +
                     (validation.count() == 1 ? " validation took " : " validations took ") +
                     FormatSpan(Seconds(validation.seconds()));
  std::vector<std::string> losses;
  const auto add = [&losses](const char* which, const v1::ValidationPoint& point) {
    losses.push_back(which + FormatLoss(point.loss()) + " after " +
                     CountOf(point.rounds(), "round"));
  };
  if (validation.has_best()) add("the best loss was ", validation.best());
  if (validation.has_newest()) add("the newest ", validation.newest());
  return losses.empty() ? text + "." : text + ": " + Listed(losses) + ".";
}

// "It is running", "It succeeded", "It was cancelled".
std::string StateText(v1::JobState state) {
  const bool itself = state == v1::JOB_STATE_SUCCEEDED || state == v1::JOB_STATE_FAILED;
  const std::string verb = state == v1::JOB_STATE_CANCELLED ? "was " : itself ? "" : "is ";
  return "It " + verb + StateName(state);
}

// How the group changed under way, and what training was taken back.
std::string GroupStory(const v1::Job& job) {
  std::string text;
  if (job.regroups() > 0) {
    text += " Its workers went on without one that was lost " + TimesText(job.regroups()) +
            ", the last time because " + Printable(job.regroup_reason()) + ".";
  }
  if (job.resizes() > 0) {
    text += " Its group was changed without a stop " + TimesText(job.resizes()) + ", last " +
            Printable(job.resize_reason()) + ".";
  }
  if (job.rollback_samples() > 0) {
    text += " It went back, and passed over " + CountOf(job.rollback_samples(), "sample") +
            ", as " + Printable(job.rollback_reason()) + ".";
  }
  return text;
}

std::string Closing(const v1::Job& job, const v1::ListDecisionsResponse& decisions) {
  const v1::JobProgress& progress = job.progress();
  std::string text = StateText(job.state());
  if (job.has_result()) {
    text += ResultText(job.result());
  } else if (progress.rounds() > 0) {
    text += " after " + FormatCount(progress.rounds()) + " rounds in " +
            FormatSpan(FromProto(progress.elapsed())) + ", at " +
            FormatRate(progress.samples_per_second()) + " samples/s and a training loss of " +
            FormatLoss(progress.loss());
  }
  if (!job.state_reason().empty()) text += ": " + Printable(job.state_reason());
  text = Sentence(text) + GroupStory(job) + ValidationStory(progress.validation());
  for (auto& [name, what] : Shortfalls(progress)) {
    name.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(name.front())));
    text += " " + name + ": " + what + ".";
  }
  if (!decisions.decisions().empty()) return text + " " + EffectText(decisions);
  return text + " No decision was made yet.";
}

// ---- All together

// "batch 100, of which 80 are measured: +3.1 % on average, 20 below 0".
std::string CountText(v1::Axis axis, const v1::ListDecisionsResponse& decisions) {
  int made = 0;
  int measured = 0;
  int below = 0;
  double gains = 0;
  for (const v1::Decision& decision : decisions.decisions()) {
    if (decision.axis() != axis) continue;
    ++made;
    if (!decision.has_measured_gain()) continue;
    ++measured;
    gains += decision.measured_gain();
    if (decision.measured_gain() < 0) ++below;
  }
  if (made == 0) return "";
  const std::string text = AxisName(axis) + " " + std::to_string(made);
  if (measured == 0) return text;
  return text + ", of which " + std::to_string(measured) + (measured == 1 ? " is" : " are") +
         " measured: " + FormatGain(gains / measured) + " on average, " + std::to_string(below) +
         " below 0";
}

// Where there are so many that nobody reads them all. Empty: there are not.
std::string Counts(const v1::ListDecisionsResponse& decisions, int told) {
  if (decisions.decisions_size() <= kDecisionsUncounted) return "";
  std::string text =
      FormatCount(static_cast<std::uint64_t>(decisions.decisions_size())) + " decisions were made";
  for (int axis = v1::AXIS_UNSPECIFIED + 1; axis < v1::Axis_ARRAYSIZE; ++axis) {
    const std::string count = CountText(static_cast<v1::Axis>(axis), decisions);
    if (!count.empty()) text += "; " + count;
  }
  if (told == decisions.decisions_size()) {
    return text + ". --last, --axis and --since choose among them.";
  }
  return text + ". Told of are " + FormatCount(static_cast<std::uint64_t>(told)) + ".";
}

}  // namespace

v1::ListDecisionsResponse Chosen(const v1::ListDecisionsResponse& decisions,
                                 const DecisionChoice& choice) {
  std::vector<const v1::Decision*> chosen;
  for (const v1::Decision& decision : decisions.decisions()) {
    const bool of_axis = !choice.axis || decision.axis() == *choice.axis;
    if (of_axis && FromProto(decision.train_time()) >= choice.since) chosen.push_back(&decision);
  }
  v1::ListDecisionsResponse result;
  for (std::size_t i = chosen.size() - std::min(chosen.size(), choice.last); i < chosen.size();
       ++i) {
    *result.add_decisions() = *chosen[i];
  }
  return result;
}

std::string Story(const v1::Job& job, const v1::ListDecisionsResponse& decisions,
                  std::size_t columns, const DecisionChoice& choice) {
  const std::size_t width = std::min(columns, kStoryColumnsMax);
  std::uint64_t newest = 0;
  for (const v1::Decision& decision : decisions.decisions()) {
    newest = std::max(newest, decision.plan_version());
  }
  const v1::ListDecisionsResponse told = Chosen(decisions, choice);
  std::string text = Wrap(Opening(job), width);
  const std::string counts = Counts(decisions, told.decisions_size());
  if (!counts.empty()) text += "\n" + Wrap(counts, width);
  for (const v1::Decision& decision : told.decisions()) {
    const bool running = decision.plan_version() == newest && !IsOver(job.state());
    text += "\n" + Wrap(Told(decision, running), width);
  }
  return text + "\n" + Wrap(Closing(job, decisions), width);
}

std::string DevicesStory(const v1::DeviceValues& values, std::size_t columns) {
  std::string text = "The group teaches " + FormatRate(values.useful_samples_per_second()) +
                     " useful samples/s, and exchanges for " + Figure(values.transfer_seconds()) +
                     " s a round. ";
  if (values.more().empty()) {
    text += "What one more would bring is not known: a group of one has no exchange to measure.";
  } else {
    text +=
        "Each line compares that with a forecast of the best shares of the same samples a "
        "step. The exchange is taken to follow the bytes of a member, 2 (n - 1) / n of the "
        "parameters, over links like these: " +
        Figure(values.transfer_seconds_less()) + " s with one device less, " +
        Figure(values.transfer_seconds_more()) +
        " s with one more. Latencies are not known apart from that.";
  }
  return Wrap(text, std::min(columns, kStoryColumnsMax));
}

}  // namespace tactus::client
