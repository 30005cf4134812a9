// `tactus run`.
#include "client/local/run.h"

#include "client/text/flag_checks.h"
#include "client/verbs/words.h"

namespace tactus::client {
namespace {

class RunVerb : public CommandVerb<RunCommand> {
 public:
  void Declare(CLI::App& program) override {
    CLI::App* verb = AddVerb(
        program, "run",
        "Train one job on this machine: starts coordinator, agent and workers, and ends them");
    verb->add_option("job_file", command_.job_file,
                     "Job file; - is the standard input. Not needed for a program: what stands "
                     "behind -- is one, and its arguments (docs/python.md)");
    verb->add_option(
            "--workers", command_.workers,
            "Worker processes. Default: one a speed, else workers.max of the job file, else 2")
        ->check(WholeNumber(1, 256));
    verb->add_option("--speeds", command_.speeds,
                     "Emulate unequal devices: one speed a worker, such as 1,1,0.5,0.25")
        ->delimiter(',')
        ->allow_extra_args(false)
        ->check(CLI::Validator(CheckSpeed, "SPEED"));
    verb->add_option(
        "--output", command_.output_folder,
        "Folder for the result. Default: in the run's folder below ~/.local/state/tactus");
    verb->add_flag("--overwrite", command_.overwrite,
                   "The result of a former run in --output is replaced; else it is refused")
        ->needs(verb->get_option("--output"));
    verb->add_option("--tape", command_.tape,
                     "File for the coordinator's tape of events, for tactus replay");
    verb->add_flag("--keep", command_.keep, "Keep the run's folder with its databases and logs");
    AddLines(verb, &lines_);
    AddOverrides(verb, &set_);
  }
  bool TakeProgram(const std::vector<std::string>& words) override {
    command_.program = words;
    return !words.empty();
  }
  std::string Check() override {
    if (command_.job_file.empty() && command_.program.empty()) {
      return "job_file is required, or a program behind --, such as tactus run -- python3 train.py";
    }
    command_.json = lines_ == "json";
    return ReadOverrides(set_, &command_.overrides);
  }
  Need need() const override { return Need::kNothing; }
  ExitCode Run(const Means& means) override {
    return client::Run(command_, means.surroundings, means.screen);
  }

 private:
  std::vector<std::string> set_;
  std::string lines_ = "text";
};

}  // namespace

std::unique_ptr<Verb> MakeRun() { return std::make_unique<RunVerb>(); }

}  // namespace tactus::client
