#include "client/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <limits>
#include <memory>
#include <sstream>

#include "client/exit_code.h"
#include "client/flag_checks.h"
#include "client/names.h"
#include "client/text.h"
#include "runtime/options.h"

namespace tactus::client {
namespace {

// Builds the parser and, when a verb was given, the command. One use.
class Parser {
 public:
  Parser() : app_("Trains models on unequal GPUs.", "tactus") {
    app_.require_subcommand(1);
    app_.footer(ExitCodesHelp());
    app_.failure_message(FailureText);
    app_.fallthrough();
    app_.add_option("--server", line_.server,
                    "The coordinator, HOST:PORT. Else TACTUS_SERVER, else the key server of "
                    "~/.config/tactus/config.yaml, else 127.0.0.1:7070");
    app_.add_option("--request-timeout", timeout_, "How long one call may take, such as 10s")
        ->check(CLI::Validator(CheckDuration, "DURATION"));
    AddRun();
    AddSubmit();
    AddGet();
    AddExplain();
    AddWatch();
    AddCancel();
    AddDownload();
    AddReplay();
    AddSimulate();
    app_.add_subcommand("version", "Print the version")->callback([this] {
      line_.command = VersionCommand{};
    });
  }

  ParsedCommandLine Parse(std::vector<std::string> words) {
    const std::string unknown = UnknownVerb(words);
    if (!unknown.empty()) return {std::nullopt, "", "tactus: " + unknown + "\n"};
    std::reverse(words.begin(), words.end());  // as CLI11 wants them
    try {
      app_.parse(words);
    } catch (const CLI::ParseError& error) {
      std::ostringstream out;
      std::ostringstream err;
      if (app_.exit(error, out, err) == 0) return {std::nullopt, out.str(), ""};
      return {std::nullopt, "", "tactus: " + err.str()};
    }
    if (!problem_.empty()) return {std::nullopt, "", "tactus: " + problem_ + "\n"};
    if (const auto timeout = runtime::ParseDuration(timeout_); timeout.ok()) {
      line_.request_timeout = *timeout;
    }
    return {std::move(line_), "", ""};
  }

 private:
  // What is allowed stands in the message of a value that is not.
  static std::string FailureText(const CLI::App* app, const CLI::Error& error) {
    if (dynamic_cast<const CLI::ValidationError*>(&error) == nullptr) {
      return CLI::FailureMessage::simple(app, error);
    }
    return std::string(error.what()) + "\n";
  }

  // CLI11 says only that a verb is missing. Empty when the first word, or the one after `get`, is
  // known.
  std::string UnknownVerb(const std::vector<std::string>& words) {
    const bool noun = words.size() > 1 && words[0] == "get";
    if (words.empty() || words[noun ? 1 : 0].starts_with("-")) return "";
    CLI::App* parent = noun ? app_.get_subcommand("get") : &app_;
    std::vector<std::string> names;
    for (const CLI::App* verb : parent->get_subcommands(nullptr)) names.push_back(verb->get_name());
    const std::string& word = words[noun ? 1 : 0];
    if (std::find(names.begin(), names.end(), word) != names.end()) return "";
    const std::optional<std::string> nearest = NearestName(word, names);
    return "'" + Printable(word) + "' is unknown; " +
           (nearest ? "did you mean '" + *nearest + "'? " : "") + "allowed: " + JoinNames(names);
  }

  static CLI::Validator Whole(std::uint64_t low, std::uint64_t high) {
    return {[=](const std::string& text) { return CheckWhole(text, {low, high}); }, "WHOLE"};
  }

  void AddOutput(CLI::App* verb, std::string* output, const std::vector<std::string>& formats) {
    verb->add_option("-o,--output", *output, "Format on standard output")
        ->check(CLI::IsMember(formats))
        ->capture_default_str();
  }

  void AddOverrides(CLI::App* verb) {
    verb->add_option("--set", set_,
                     "Replace a value of the job file: --set adapt.batch.policy=fixed")
        ->expected(1)
        ->take_all();
  }

  std::vector<Override> Overrides() {
    std::vector<Override> overrides;
    for (const std::string& text : set_) {
      if (!ParseOverride(text, &overrides.emplace_back())) {
        problem_ =
            "--set: found \"" + text + "\", allowed is KEY=VALUE, such as adapt.batch.policy=fixed";
      }
    }
    return overrides;
  }

  void AddRun() {
    CLI::App* verb = app_.add_subcommand(
        "run",
        "Train one job on this machine: starts coordinator, agent and workers, and ends them");
    verb->add_option("job_file", run_.job_file, "Job file; - is the standard input")->required();
    verb->add_option(
            "--workers", run_.workers,
            "Worker processes. Default: one a speed, else workers.max of the job file, else 2")
        ->check(Whole(1, 256));
    verb->add_option("--speeds", run_.speeds,
                     "Emulate unequal devices: one speed a worker, such as 1,1,0.5,0.25")
        ->delimiter(',')
        ->allow_extra_args(false)
        ->check(CLI::Validator(CheckSpeed, "SPEED"));
    verb->add_option(
        "--output", run_.output_folder,
        "Folder for the result. Default: in the run's folder below ~/.local/state/tactus");
    verb->add_option("--tape", run_.tape,
                     "File for the coordinator's tape of events, for tactus replay");
    verb->add_flag("--keep", run_.keep, "Keep the run's folder with its databases and logs");
    verb->add_option("-o", output_lines_, "text or json: one object an event, a line each")
        ->check(CLI::IsMember({"text", "json"}))
        ->capture_default_str();
    AddOverrides(verb);
    verb->callback([this] {
      run_.overrides = Overrides();
      run_.json = output_lines_ == "json";
      line_.command = run_;
    });
  }

  void AddSubmit() {
    CLI::App* verb = app_.add_subcommand("submit", "Submit a job");
    verb->add_option("job_file", submit_.job_file, "Job file; - is the standard input")->required();
    verb->add_flag("--dry-run", submit_.dry_run, "Only have it checked by the coordinator");
    verb->add_flag("--follow", submit_.follow, "Show its progress until it ends; Ctrl-C detaches");
    AddOutput(verb, &output_submit_, {"name", "json", "yaml", "table"});
    AddOverrides(verb);
    verb->callback([this] {
      submit_.overrides = Overrides();
      submit_.output = ParseOutputFormat(output_submit_);
      line_.command = submit_;
    });
  }

  void AddNoun(CLI::App* get, const std::string& word, GetCommand::Noun noun) {
    const bool of_a_job = noun == GetCommand::Noun::kRounds || noun == GetCommand::Noun::kDecisions;
    const bool named = noun == GetCommand::Noun::kJob || of_a_job;
    CLI::App* verb = get->add_subcommand(word, named ? "Of one job" : "All of them");
    if (named) verb->add_option("job", get_.name, "The job's name")->required();
    const bool counted = noun == GetCommand::Noun::kJobs || of_a_job;
    if (counted) {
      verb->add_option("--limit", get_.count_max, "At most so many, the first ones")
          ->check(Whole(1, 1'000'000))
          ->capture_default_str();
    }
    AddOutput(verb, &output_get_, {"table", "json", "yaml", "name"});
    verb->callback([this, noun] {
      get_.noun = noun;
      get_.output = ParseOutputFormat(output_get_);
      line_.command = get_;
    });
  }

  void AddGet() {
    CLI::App* get =
        app_.add_subcommand("get", "Show jobs, one job, nodes, or a job's rounds or decisions");
    get->require_subcommand(1);
    get->fallthrough();
    AddNoun(get, "jobs", GetCommand::Noun::kJobs);
    AddNoun(get, "job", GetCommand::Noun::kJob);
    AddNoun(get, "nodes", GetCommand::Noun::kNodes);
    AddNoun(get, "rounds", GetCommand::Noun::kRounds);
    AddNoun(get, "decisions", GetCommand::Noun::kDecisions);
  }

  void AddExplain() {
    CLI::App* verb = app_.add_subcommand(
        "explain",
        "Tell the story of a job's decisions: what was changed, why, what was expected of it and "
        "what came of it");
    verb->add_option("job", explain_.name, "The job's name")->required();
    AddOutput(verb, &output_explain_, {"table", "json", "yaml"});
    verb->callback([this] {
      explain_.output = ParseOutputFormat(output_explain_);
      line_.command = explain_;
    });
  }

  void AddWatch() {
    CLI::App* verb =
        app_.add_subcommand("watch", "Show a job's progress until it ends; Ctrl-C detaches");
    verb->add_option("job", watch_.name, "The job's name")->required();
    verb->add_option("-o", output_lines_, "text or json: one object an event, a line each")
        ->check(CLI::IsMember({"text", "json"}))
        ->capture_default_str();
    verb->callback([this] {
      watch_.json = output_lines_ == "json";
      line_.command = watch_;
    });
  }

  void AddCancel() {
    CLI::App* verb = app_.add_subcommand("cancel", "End a job at the next round's edge");
    verb->add_option("job", cancel_.name, "The job's name")->required();
    verb->add_flag("--discard", cancel_.discard, "At once and without a result");
    verb->callback([this] { line_.command = cancel_; });
  }

  void AddDownload() {
    CLI::App* verb = app_.add_subcommand("download", "Fetch the files of a job's result");
    verb->add_option("job", download_.name, "The job's name")->required();
    verb->add_option("--to", download_.folder,
                     "Folder to write to. Default: one with the job's name");
    verb->callback([this] { line_.command = download_; });
  }

  void AddReplay() {
    CLI::App* verb = app_.add_subcommand(
        "replay",
        "Give the events of a coordinator's tape to the core of this program and compare what it "
        "answers; needs no coordinator");
    verb->add_option("tape", replay_.tape, "The tape")->required();
    verb->add_flag("--allow-cut", replay_.allow_cut,
                   "Replay what is whole of a tape without end, as a killed coordinator leaves it");
    AddOutput(verb, &output_replay_, {"table", "json"});
    verb->callback([this] {
      replay_.output = ParseOutputFormat(output_replay_);
      line_.command = replay_;
    });
  }

  void AddSimulate() {
    CLI::App* verb = app_.add_subcommand(
        "simulate",
        "Say how a job would run on a cluster that a file describes, or that is fitted to a job's "
        "history: the cores that decide are this program's, the rest is modelled");
    verb->add_option("cluster_file", simulate_.cluster_file, "Cluster file");
    verb->add_option("job_file", simulate_.job_file, "Job file; - is the standard input");
    AddWhatIf(verb);
    verb->add_option("--seed", simulate_.seed, "Of all that is random in the cluster")
        ->check(Whole(0, std::numeric_limits<std::uint64_t>::max()))
        ->capture_default_str();
    verb->add_option("--count", simulate_.count,
                     "Simulate so many seeds from --seed on, and show their median and spread")
        ->check(Whole(1, 100'000))
        ->capture_default_str();
    verb->add_option("--loss", simulate_.loss,
                     "Replace the loss model of the cluster file: noisy_quadratic, perceptron or "
                     "'{curve: {file: FILE}}'");
    verb->add_option("--target-loss", simulate_.target_loss,
                     "Report the time to this loss. Default: stop.train_loss of the job file")
        ->check(CLI::Validator(CheckNumber, "NUMBER"));
    AddSimulatedFiles(verb);
    AddOutput(verb, &output_simulate_, {"table", "json"});
    AddOverrides(verb);
    verb->callback([this] {
      problem_ = CheckSimulate(simulate_);
      simulate_.overrides = Overrides();
      simulate_.output = ParseOutputFormat(output_simulate_);
      line_.command = simulate_;
    });
  }

  // They are of one simulation.
  void AddWhatIf(CLI::App* verb) {
    CLI::Option* from = verb->add_option(
        "--from", simulate_.from,
        "Instead of files: a running or finished job, whose devices and links are fitted");
    verb->add_option("--add", simulate_.add,
                     "With --from: add devices, such as 2xspeed=0.5 (of the fastest one's)")
        ->needs(from);
    verb->add_option("--remove", simulate_.remove,
                     "With --from: remove worker-N, rank-N, NODE/DEVICE or NODE")
        ->needs(from);
    verb->add_option("--rate", simulate_.rate, "With --from: of every link, such as 1gbit")
        ->needs(from);
    verb->add_option("--write-cluster", simulate_.cluster_output,
                     "With --from: file for the cluster that is simulated")
        ->needs(from);
    verb->add_flag("--random", simulate_.random,
                   "Instead of files: a small cluster with jobs and faults drawn from the seed")
        ->excludes(from);
  }

  void AddSimulatedFiles(CLI::App* verb) {
    CLI::Option* count = verb->get_option("--count");
    verb->add_option("--csv", simulate_.curve_file, "File for the loss over time")->excludes(count);
    verb->add_option("--trace", simulate_.trace_file,
                     "File for a trace of all workers, for ui.perfetto.dev or chrome://tracing")
        ->excludes(count);
    verb->add_option("--tape", simulate_.tape_file,
                     "File for the coordinator's tape of events, for tactus replay")
        ->excludes(count);
  }

  CLI::App app_;
  CommandLine line_;
  std::string problem_;
  std::string timeout_ = "10s";
  std::vector<std::string> set_;
  std::string output_submit_ = "name";
  std::string output_get_ = "table";
  std::string output_explain_ = "table";
  std::string output_lines_ = "text";
  std::string output_replay_ = "table";
  std::string output_simulate_ = "table";
  RunCommand run_;
  SubmitCommand submit_;
  GetCommand get_;
  ExplainCommand explain_;
  WatchCommand watch_;
  CancelCommand cancel_;
  DownloadCommand download_;
  ReplayCommand replay_;
  SimulateCommand simulate_;
};

}  // namespace

ParsedCommandLine ParseCommandLine(const std::vector<std::string>& words) {
  return std::make_unique<Parser>()->Parse(words);
}

}  // namespace tactus::client
