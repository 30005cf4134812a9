// `tactus simulate`.
#include "client/ask/simulate.h"

#include <limits>

#include "client/text/flag_checks.h"
#include "client/verbs/words.h"

namespace tactus::client {
namespace {

class SimulateVerb : public CommandVerb<SimulateCommand> {
 public:
  void Declare(CLI::App& program) override {
    CLI::App* verb = AddVerb(
        program, "simulate",
        "Say how a job would run on a cluster that a file describes, or that is fitted to a job's "
        "history: the cores that decide are this program's, the rest is modelled");
    verb->add_option("cluster_file", command_.cluster_file, "Cluster file");
    verb->add_option("job_file", command_.job_file, "Job file; - is the standard input");
    DeclareWhatIf(verb);
    verb->add_option("--seed", command_.seed, "Of all that is random in the cluster")
        ->check(WholeNumber(0, std::numeric_limits<std::uint64_t>::max()))
        ->capture_default_str();
    verb->add_option("--count", command_.count,
                     "Simulate so many seeds from --seed on, and show their median and spread")
        ->check(WholeNumber(1, 100'000))
        ->capture_default_str();
    verb->add_option("--loss", command_.loss,
                     "Replace the loss model of the cluster file: noisy_quadratic, perceptron or "
                     "'{curve: {file: FILE}}'");
    verb->add_option("--target-loss", command_.target_loss,
                     "Report the time to this loss. Default: stop.train_loss of the job file")
        ->check(CLI::Validator(CheckNumber, "NUMBER"));
    verb->add_option("--validate-every", validate_every_,
                     "With -o json: the loss on validation samples, so much training apart")
        ->check(DurationText())
        ->excludes(verb->get_option("--count"));
    DeclareFiles(verb);
    AddOutput(verb, &output_, {"table", "json"});
    AddOverrides(verb, &set_);
  }
  std::string Check() override {
    command_.output = ParseOutputFormat(output_);
    command_.validate_every = GivenDuration(validate_every_);
    const std::string problem = CheckSimulate(command_);
    return problem.empty() ? ReadOverrides(set_, &command_.overrides) : problem;
  }
  Need need() const override { return command_.from.empty() ? Need::kNothing : Need::kCoordinator; }
  ExitCode Run(const Means& means) override {
    return command_.from.empty() ? Simulate(command_, means.screen)
                                 : SimulateHistory(command_, *means.client, means.screen);
  }

 private:
  // They are of one simulation.
  void DeclareWhatIf(CLI::App* verb) {
    CLI::Option* from = verb->add_option(
        "--from", command_.from,
        "Instead of files: a running or finished job, whose devices and links are fitted");
    verb->add_option("--add", command_.add,
                     "With --from: add devices, such as 2xspeed=0.5 (of the fastest one's)")
        ->needs(from);
    verb->add_option("--remove", command_.remove,
                     "With --from: remove worker-N, rank-N, NODE/DEVICE or NODE")
        ->needs(from);
    verb->add_option("--rate", command_.rate, "With --from: of every link, such as 1gbit")
        ->needs(from);
    verb->add_option("--write-cluster", command_.cluster_output,
                     "With --from: file for the cluster that is simulated")
        ->needs(from);
    verb->add_flag("--random", command_.random,
                   "Instead of files: a small cluster with jobs and faults drawn from the seed")
        ->excludes(from);
  }

  void DeclareFiles(CLI::App* verb) {
    CLI::Option* count = verb->get_option("--count");
    verb->add_option("--csv", command_.curve_file, "File for the loss over time")->excludes(count);
    verb->add_option("--trace", command_.trace_file,
                     "File for a trace of all workers, for ui.perfetto.dev or chrome://tracing")
        ->excludes(count);
    verb->add_option("--tape", command_.tape_file,
                     "File for the coordinator's tape of events, for tactus replay")
        ->excludes(count);
  }

  std::vector<std::string> set_;
  std::string output_ = "table";
  std::string validate_every_;
};

}  // namespace

std::unique_ptr<Verb> MakeSimulate() { return std::make_unique<SimulateVerb>(); }

}  // namespace tactus::client
