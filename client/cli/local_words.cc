#include "client/cli/local_words.h"

#include <limits>

#include "client/text/flag_checks.h"

namespace tactus::client {

void LocalWords::Declare(Words& words) {
  DeclareRun(words);
  DeclareSimulate(words);
  DeclareReplay(words);
}

void LocalWords::DeclareOverrides(CLI::App* verb) {
  verb->add_option("--set", set_, "Replace a value of the job file: --set adapt.batch.policy=fixed")
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
}

void LocalWords::DeclareRun(Words& words) {
  CLI::App* verb = words.app.add_subcommand(
      "run", "Train one job on this machine: starts coordinator, agent and workers, and ends them");
  verb->add_option("job_file", run_.job_file, "Job file; - is the standard input")->required();
  verb->add_option(
          "--workers", run_.workers,
          "Worker processes. Default: one a speed, else workers.max of the job file, else 2")
      ->check(WholeNumber(1, 256));
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
  AddLines(verb, &lines_);
  DeclareOverrides(verb);
  verb->callback([this, &words] {
    run_.overrides = ReadOverrides(set_, words);
    run_.json = lines_ == "json";
    words.line.command = run_;
  });
}

void LocalWords::DeclareReplay(Words& words) {
  CLI::App* verb = words.app.add_subcommand(
      "replay",
      "Give the events of a coordinator's tape to the core of this program and compare what it "
      "answers; needs no coordinator");
  verb->add_option("tape", replay_.tape, "The tape")->required();
  verb->add_flag("--allow-cut", replay_.allow_cut,
                 "Replay what is whole of a tape without end, as a killed coordinator leaves it");
  AddOutput(verb, &output_replay_, {"table", "json"});
  verb->callback([this, &words] {
    replay_.output = ParseOutputFormat(output_replay_);
    words.line.command = replay_;
  });
}

void LocalWords::DeclareSimulate(Words& words) {
  CLI::App* verb = words.app.add_subcommand(
      "simulate",
      "Say how a job would run on a cluster that a file describes, or that is fitted to a job's "
      "history: the cores that decide are this program's, the rest is modelled");
  verb->add_option("cluster_file", simulate_.cluster_file, "Cluster file");
  verb->add_option("job_file", simulate_.job_file, "Job file; - is the standard input");
  DeclareWhatIf(verb);
  verb->add_option("--seed", simulate_.seed, "Of all that is random in the cluster")
      ->check(WholeNumber(0, std::numeric_limits<std::uint64_t>::max()))
      ->capture_default_str();
  verb->add_option("--count", simulate_.count,
                   "Simulate so many seeds from --seed on, and show their median and spread")
      ->check(WholeNumber(1, 100'000))
      ->capture_default_str();
  verb->add_option("--loss", simulate_.loss,
                   "Replace the loss model of the cluster file: noisy_quadratic, perceptron or "
                   "'{curve: {file: FILE}}'");
  verb->add_option("--target-loss", simulate_.target_loss,
                   "Report the time to this loss. Default: stop.train_loss of the job file")
      ->check(CLI::Validator(CheckNumber, "NUMBER"));
  DeclareFiles(verb);
  AddOutput(verb, &output_simulate_, {"table", "json"});
  DeclareOverrides(verb);
  verb->callback([this, &words] {
    if (const std::string wrong = CheckSimulate(simulate_); !wrong.empty()) words.Complain(wrong);
    simulate_.overrides = ReadOverrides(set_, words);
    simulate_.output = ParseOutputFormat(output_simulate_);
    words.line.command = simulate_;
  });
}

// They are of one simulation.
void LocalWords::DeclareWhatIf(CLI::App* verb) {
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

void LocalWords::DeclareFiles(CLI::App* verb) {
  CLI::Option* count = verb->get_option("--count");
  verb->add_option("--csv", simulate_.curve_file, "File for the loss over time")->excludes(count);
  verb->add_option("--trace", simulate_.trace_file,
                   "File for a trace of all workers, for ui.perfetto.dev or chrome://tracing")
      ->excludes(count);
  verb->add_option("--tape", simulate_.tape_file,
                   "File for the coordinator's tape of events, for tactus replay")
      ->excludes(count);
}

}  // namespace tactus::client
