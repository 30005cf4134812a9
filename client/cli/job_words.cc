#include "client/cli/job_words.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>

#include "client/text/names.h"
#include "client/text/text.h"
#include "policies/axes.h"

namespace tactus::client {
namespace {

const std::vector<std::string> kAxes(policies::kAxisFields.begin(), policies::kAxisFields.end());

std::optional<std::int32_t> ParsePriority(const std::string& text) {
  std::int32_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || rest != end || number < -1000 || number > 1000) return std::nullopt;
  return number;
}

std::string CheckPriority(const std::string& text) {
  if (ParsePriority(text)) return "";
  return "found \"" + Printable(text) + "\", allowed is a whole number from -1000 to 1000";
}

std::string UpperCase(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

// The state of "state=SUCCEEDED"; nothing for another text.
std::optional<v1::JobState> ParseCondition(const std::string& text) {
  if (!text.starts_with("state=")) return std::nullopt;
  v1::JobState state = v1::JOB_STATE_UNSPECIFIED;
  const bool known = v1::JobState_Parse("JOB_STATE_" + UpperCase(text.substr(6)), &state);
  if (!known || state == v1::JOB_STATE_UNSPECIFIED) return std::nullopt;
  return state;
}

std::string CheckCondition(const std::string& text) {
  if (ParseCondition(text)) return "";
  return "found \"" + Printable(text) + "\", allowed is state=STATE with one of: " +
         UpperCase(JoinNames(EnumValueNames(*v1::JobState_descriptor())));
}

bool OfAJob(GetCommand::Noun noun) {
  return noun == GetCommand::Noun::kRounds || noun == GetCommand::Noun::kDecisions;
}

}  // namespace

void JobWords::Declare(Words& words) {
  DeclareSubmit(words);
  DeclareGet(words);
  DeclareDescribe(words);
  DeclareShowing(words);
  DeclareWait(words);
  DeclareLogs(words);
  DeclareUpdate(words);
  DeclareEnding(words);
  DeclarePausing(words);
  DeclareDownload(words);
}

void JobWords::AddPriority(CLI::App* verb) {
  verb->add_option("--priority", priority_,
                   "Jobs of higher priority come first and may take devices: -1000 to 1000")
      ->check(CLI::Validator(CheckPriority, "PRIORITY"));
}

void JobWords::DeclareSubmit(Words& words) {
  CLI::App* verb = words.app.add_subcommand(
      "submit", "Submit a job; a model or loss that is a file here is uploaded");
  verb->add_option("job_file", submit_.job_file, "Job file; - is the standard input")->required();
  verb->add_flag("--dry-run", submit_.dry_run, "Only have it checked by the coordinator");
  verb->add_flag("--follow", submit_.follow, "Show its progress until it ends; Ctrl-C detaches");
  verb->add_option("--label", labels_, "Add a label: --label team=vision")->expected(1)->take_all();
  AddPriority(verb);
  AddOutput(verb, &output_submit_, {"name", "json", "yaml", "table"});
  verb->add_option("--set", set_, "Replace a value of the job file: --set adapt.batch.policy=fixed")
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  verb->callback([this, &words] {
    submit_.overrides = ReadOverrides(set_, words);
    submit_.labels = ReadLabels(labels_, words);
    submit_.priority = ParsePriority(priority_);
    submit_.output = ParseOutputFormat(output_submit_);
    words.line.command = submit_;
  });
}

void JobWords::DeclareListOptions(CLI::App* verb, GetCommand::Noun noun) {
  const bool jobs = noun == GetCommand::Noun::kJobs;
  if (jobs || OfAJob(noun)) {
    verb->add_option("--limit", get_.count_max, "At most so many, the first ones")
        ->check(WholeNumber(1, 1'000'000))
        ->capture_default_str();
  }
  if (jobs) {
    verb->add_option("--filter", get_.filter,
                     "Only these: comparisons of state, name, priority, create_time or labels.KEY "
                     "joined by AND, such as 'state=RUNNING AND labels.team=vision'");
    verb->add_option("--order-by", get_.order_by,
                     "create_time, name, priority or update_time, with ' desc' for the largest "
                     "first. Default: the newest first");
  }
  if (jobs || noun == GetCommand::Noun::kNodes) {
    verb->add_flag("-w,--watch", get_.watch, "Go on and show what changes; Ctrl-C ends it");
  }
}

void JobWords::DeclareNoun(CLI::App* get, Words& words, const std::string& word,
                           GetCommand::Noun noun) {
  const bool all = noun == GetCommand::Noun::kJobs || noun == GetCommand::Noun::kNodes;
  const bool node = noun == GetCommand::Noun::kNode;
  CLI::App* verb = get->add_subcommand(word, all            ? "All of them"
                                             : OfAJob(noun) ? "Of one job"
                                                            : "One of them");
  if (!all && !node) AddJob(verb, &get_.name);
  if (node) verb->add_option("node", get_.name, "The node's name")->required();
  DeclareListOptions(verb, noun);
  verb->add_option("-o,--output", output_get_,
                   "Format on standard output. Default: table, or as the settings say")
      ->check(CLI::IsMember({"table", "wide", "json", "yaml", "name"}));
  verb->callback([this, &words, noun] {
    get_.noun = noun;
    if (!output_get_.empty()) get_.output = ParseOutputFormat(output_get_);
    words.line.command = get_;
  });
}

void JobWords::DeclareGet(Words& words) {
  CLI::App* get = words.app.add_subcommand(
      "get", "Show jobs, nodes, one of them, or a job's rounds or decisions");
  get->require_subcommand(1);
  get->fallthrough();
  DeclareNoun(get, words, "jobs", GetCommand::Noun::kJobs);
  DeclareNoun(get, words, "job", GetCommand::Noun::kJob);
  DeclareNoun(get, words, "nodes", GetCommand::Noun::kNodes);
  DeclareNoun(get, words, "node", GetCommand::Noun::kNode);
  DeclareNoun(get, words, "rounds", GetCommand::Noun::kRounds);
  DeclareNoun(get, words, "decisions", GetCommand::Noun::kDecisions);
}

void JobWords::DeclareDescribe(Words& words) {
  CLI::App* verb = words.app.add_subcommand("describe", "Say all that is known of a job or a node");
  verb->require_subcommand(1);
  verb->fallthrough();
  CLI::App* job = verb->add_subcommand("job", "A job, with its plan and its job file");
  AddJob(job, &describe_.name);
  job->callback([this, &words] {
    describe_.noun = DescribeCommand::Noun::kJob;
    words.line.command = describe_;
  });
  CLI::App* node = verb->add_subcommand("node", "A node, with its devices");
  node->add_option("node", describe_.name, "The node's name")->required();
  node->callback([this, &words] {
    describe_.noun = DescribeCommand::Noun::kNode;
    words.line.command = describe_;
  });
}

void JobWords::DeclareShowing(Words& words) {
  CLI::App* explain = words.app.add_subcommand(
      "explain",
      "Tell the story of a job's decisions: what was changed, why, what was expected of it and "
      "what came of it");
  AddJob(explain, &explain_.name);
  AddOutput(explain, &output_explain_, {"table", "json", "yaml"});
  explain->callback([this, &words] {
    explain_.output = ParseOutputFormat(output_explain_);
    words.line.command = explain_;
  });

  CLI::App* watch =
      words.app.add_subcommand("watch", "Show a job's progress until it ends; Ctrl-C detaches");
  AddJob(watch, &watch_.name);
  AddLines(watch, &lines_);
  watch->callback([this, &words] {
    watch_.json = lines_ == "json";
    words.line.command = watch_;
  });
}

void JobWords::DeclareWait(Words& words) {
  CLI::App* verb = words.app.add_subcommand(
      "wait",
      "Wait until a job has a state. Ends with 0 when it has, 7 when the time is over, 8 "
      "when the job ended otherwise");
  AddJob(verb, &wait_.name);
  verb->add_option("--for", condition_, "What is waited for: state=STATE")
      ->check(CLI::Validator(CheckCondition, "CONDITION"))
      ->capture_default_str();
  verb->add_option("--timeout", timeout_, "At most so long, such as 30m. Default: for ever")
      ->check(DurationText());
  verb->callback([this, &words] {
    wait_.state = ParseCondition(condition_).value_or(v1::JOB_STATE_SUCCEEDED);
    wait_.timeout = GivenDuration(timeout_);
    words.line.command = wait_;
  });
}

void JobWords::DeclareLogs(Words& words) {
  CLI::App* verb =
      words.app.add_subcommand("logs", "Print what a job's workers wrote; Ctrl-C detaches");
  AddJob(verb, &logs_.name);
  verb->add_option("--rank", logs_.ranks, "Only of this worker; may be given again. Default: all")
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all()
      ->check(WholeNumber(0, 65535));
  verb->add_flag("-f,--follow", logs_.follow, "Go on with what comes until the job is over");
  verb->add_option("--tail", logs_.tail, "Begin with so many of each worker's last lines")
      ->check(WholeNumber(1, std::numeric_limits<std::uint32_t>::max()));
  verb->callback([this, &words] { words.line.command = logs_; });
}

void JobWords::DeclareUpdate(Words& words) {
  CLI::App* verb = words.app.add_subcommand(
      "update", "Change what may change of a job that is not over; the rest is refused");
  AddJob(verb, &update_.name);
  verb->add_option("--set", set_,
                   "Replace a value: --set spec.stop.epochs=5; stop, policies and bounds of adapt, "
                   "the learning rate, workers.min and workers.max may change")
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  verb->add_option("--label", labels_, "Set a label, or remove one: --label team=vision, team-")
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  AddPriority(verb);
  verb->add_option("--freeze", update_.freeze, "Keep this axis of the plan as it is")
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all()
      ->check(CLI::IsMember(kAxes));
  verb->add_option("--unfreeze", update_.unfreeze, "Let the policy of this axis decide again")
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all()
      ->check(CLI::IsMember(kAxes));
  verb->add_option("--if-etag", update_.etag, "Only if the job's etag is this one still");
  verb->add_flag("--dry-run", update_.dry_run, "Only have it checked by the coordinator");
  verb->callback([this, &words] {
    std::vector<std::string> set;
    for (const std::string& text : labels_) {
      const bool removed =
          text.size() > 1 && text.back() == '-' && text.find('=') == std::string::npos;
      if (removed) {
        update_.labels_removed.push_back(text.substr(0, text.size() - 1));
      } else {
        set.push_back(text);
      }
    }
    update_.labels = ReadLabels(set, words);
    update_.overrides = ReadOverrides(set_, words);
    update_.priority = ParsePriority(priority_);
    words.line.command = update_;
  });
}

void JobWords::DeclareEnding(Words& words) {
  CLI::App* cancel = words.app.add_subcommand(
      "cancel", "End a job at the next round's edge, with the result it has by then");
  AddJob(cancel, &cancel_.name);
  cancel->add_flag("--discard", cancel_.discard, "At once and without a result");
  cancel
      ->add_option("--grace", grace_,
                   "How long its workers may take before they are killed. Default: 5m, with "
                   "--discard 30s")
      ->check(DurationText());
  cancel->callback([this, &words] {
    cancel_.grace = GivenDuration(grace_);
    words.line.command = cancel_;
  });

  CLI::App* remove = words.app.add_subcommand(
      "delete", "Forget jobs that are over, with their history, logs and files");
  remove->add_option("job", delete_.names, "The jobs' names")->required();
  remove->add_flag("--yes", delete_.yes, "Do not ask; needed where there is no terminal");
  remove->callback([this, &words] { words.line.command = delete_; });
}

void JobWords::DeclarePausing(Words& words) {
  CLI::App* pause = words.app.add_subcommand(
      "pause", "Take a job's devices at the next round's edge; it keeps a checkpoint");
  AddJob(pause, &pause_.name);
  pause->callback([this, &words] { words.line.command = pause_; });

  CLI::App* resume = words.app.add_subcommand(
      "resume", "Put a paused job back into the queue; it goes on from its checkpoint");
  AddJob(resume, &resume_.name);
  resume->callback([this, &words] { words.line.command = resume_; });
}

void JobWords::DeclareDownload(Words& words) {
  CLI::App* verb = words.app.add_subcommand("download", "Fetch the files of a job's result");
  AddJob(verb, &download_.name);
  verb->add_option("--to", download_.folder,
                   "Folder to write to. Default: one with the job's name");
  verb->callback([this, &words] { words.line.command = download_; });
}

}  // namespace tactus::client
