#include "client/verbs/replay.h"

#include <nlohmann/json.hpp>

#include "client/render/error_lines.h"
#include "client/text/text.h"
#include "client/verbs/words.h"

namespace tactus::client {
namespace {

const char* EndWord(const tape::Replayed& replayed) {
  if (!replayed.end) return replayed.difference ? "not reached" : "cut";
  switch (*replayed.end) {
    case tape::EndReason::kClean:
      return "clean";
    case tape::EndReason::kFull:
      return "full";
  }
  return "";
}

std::string SecondsText(Duration time) { return FormatRate(ToSeconds(time)) + " s"; }

std::string ReplayTable(const tape::Replayed& replayed) {
  std::string text = FormatTable({{"EVENTS", FormatCount(replayed.events)},
                                  {"ACTIONS", FormatCount(replayed.actions)},
                                  {"JOBS", FormatCount(replayed.jobs)},
                                  {"ROUNDS", FormatCount(replayed.rounds)},
                                  {"PLANS ADOPTED", FormatCount(replayed.plans_adopted)},
                                  {"LENGTH", FormatSpan(replayed.length)},
                                  {"END", EndWord(replayed)},
                                  {"WRITTEN BY", Printable(replayed.header.program_version)},
                                  {"DIFFERENCE", replayed.difference ? "yes" : "none"}});
  if (!replayed.difference) return text;
  const tape::ReplayDifference& at = *replayed.difference;
  text += "\nevent " + FormatCount(at.event) + " at " + SecondsText(at.time) + " (" +
          Printable(at.words) + ")\n" + Printable(at.difference.place) + "\n";
  return text + FormatTable({{"EXPECTED", Printable(at.difference.expected)},
                             {"FOUND", Printable(at.difference.found)}});
}

nlohmann::json DifferenceJson(const tape::ReplayDifference& at) {
  return {{"event", at.event},
          {"seconds", ToSeconds(at.time)},
          {"words", at.words},
          {"place", at.difference.place},
          {"expected", at.difference.expected},
          {"found", at.difference.found}};
}

std::string ReplayJson(const tape::Replayed& replayed) {
  const nlohmann::json object = {
      {"program_version", replayed.header.program_version},
      {"events", replayed.events},
      {"actions", replayed.actions},
      {"jobs", replayed.jobs},
      {"rounds", replayed.rounds},
      {"plans_adopted", replayed.plans_adopted},
      {"length_seconds", ToSeconds(replayed.length)},
      {"end", EndWord(replayed)},
      {"difference", replayed.difference ? DifferenceJson(*replayed.difference) : nullptr}};
  return object.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string ReplayText(const tape::Replayed& replayed, OutputFormat format) {
  return format == OutputFormat::kJson ? ReplayJson(replayed) : ReplayTable(replayed);
}

namespace {

class ReplayVerb : public Verb {
 public:
  void Declare(CLI::App& program) override {
    CLI::App* verb = AddVerb(
        program, "replay",
        "Give the events of a coordinator's tape to the core of this program and compare what it "
        "answers; needs no coordinator");
    verb->add_option("tape", tape_, "The tape")->required();
    verb->add_flag("--allow-cut", allow_cut_,
                   "Replay what is whole of a tape without end, as a killed coordinator leaves it");
    AddOutput(verb, &output_, {"table", "json"});
  }
  Need need() const override { return Need::kNothing; }
  // kOk: no difference. kGeneric: a difference. kUsage: no tape there, or one that is cut or
  // damaged.
  ExitCode Run(const Means& means) override {
    const Screen& screen = means.screen;
    const absl::StatusOr<tape::Replayed> replayed = tape::Replay(tape_, {.allow_cut = allow_cut_});
    if (!replayed.ok()) {
      const bool cut = absl::IsOutOfRange(replayed.status()) && !allow_cut_;
      screen.Say(std::string(replayed.status().message()) +
                 (cut ? "; --allow-cut replays what is whole" : ""));
      return ExitCode::kUsage;
    }
    screen.Print(ReplayText(*replayed, ParseOutputFormat(output_)));
    if (!replayed->difference) return ExitCode::kOk;
    if (replayed->header.program_version != TACTUS_VERSION) {
      screen.Say("the tape was written by version " + Printable(replayed->header.program_version) +
                 ", this is " TACTUS_VERSION ": their cores may rightly differ");
    }
    return ExitCode::kGeneric;
  }

 private:
  std::string tape_;
  bool allow_cut_ = false;
  std::string output_ = "table";
};

}  // namespace

std::unique_ptr<Verb> MakeReplay() { return std::make_unique<ReplayVerb>(); }

}  // namespace tactus::client
