// `tactus slurm`.
#include "client/local/slurm.h"

#include <filesystem>

#include "client/local/settings.h"
#include "client/verbs/words.h"
#include "client/yaml/job_file.h"

namespace tactus::client {
namespace {

class SlurmVerb : public Verb {
 public:
  void Declare(CLI::App& program) override {
    CLI::App* verb = AddVerb(
        program, "slurm",
        "Write a script for sbatch that trains a job on an allocation of Slurm: a coordinator on "
        "its first node, an agent on each, a checkpoint before it ends (docs/slurm.md)");
    verb->add_option("job_file", job_file_,
                     "Job file. Not needed with --server, whose jobs the nodes train then");
    verb->add_flag("--submit", submit_, "Have sbatch submit it; else it is printed");
    verb->add_option("--output", script_.folder,
                     "Folder of state, logs and result, which all nodes share. A script whose "
                     "folder has a paused job goes on with it. Default: JOB_FILE.slurm here");
    verb->add_option("--name", script_.name, "Of Slurm's job. Default: the folder's");
    AddNodes(verb);
    verb->add_option("--time", time_, "Of the allocation, such as 8h. Default: the partition's")
        ->check(DurationText());
    verb->add_option("--notice", notice_,
                     "How long before its end the job is paused with a checkpoint, 1m and more")
        ->check(DurationText())
        ->capture_default_str();
    verb->add_flag("--finish", script_.finish,
                   "The job ends with the allocation, with the result it has, and is not paused");
    verb->add_flag("--requeue", script_.requeue,
                   "An allocation that ends before the job is requeued, and goes on");
    verb->add_option("--agent-tls-dir", script_.agent_tls_dir,
                     "With --server: the agents' --tls-dir; %N is the node's name");
    verb->add_option("--interface", script_.interface,
                     "Network interface by which nodes reach each other. Default: Slurm's own");
    verb->add_option("--scratch", script_.scratch, "Folder on each node's own disk")
        ->capture_default_str();
    AddRepeated(verb, "--sbatch", &script_.lines,
                "One more option for sbatch: --sbatch=--account=vision");
    AddOverrides(verb, &script_.sets);
  }
  std::string Check() override {
    script_.groups = {first_};
    for (const std::string& text : groups_) {
      NodeGroup group;
      if (const absl::Status read = ReadNodeGroup(text, &group); !read.ok()) {
        return "--group: " + std::string(read.message());
      }
      script_.groups.push_back(group);
    }
    script_.time = GivenDuration(time_).value_or(Duration{});
    script_.notice = GivenDuration(notice_).value_or(script_.notice);
    return ReadOverrides(script_.sets, &overrides_);
  }
  Need need() const override { return Need::kSettings; }
  ExitCode Run(const Means& means) override {
    if (!TakeJobFile(means.screen)) return ExitCode::kUsage;
    TakeCoordinator(*means.settings);
    const std::filesystem::path named =
        script_.folder.empty() ? (job_file_.empty() ? "nodes.slurm" : Stem() + ".slurm")
                               : script_.folder;
    script_.folder = std::filesystem::absolute(named).lexically_normal().string();
    if (script_.name.empty()) script_.name = std::filesystem::path(script_.folder).stem().string();
    script_.binary_folder = means.surroundings.binary_folder;
    if (submit_) return SubmitSlurmScript(script_, means.screen);
    const absl::StatusOr<std::string> text = FormatSlurmScript(script_);
    if (!text.ok()) {
      means.screen.Say(std::string(text.status().message()));
      return ExitCode::kUsage;
    }
    means.screen.Print(*text);
    return ExitCode::kOk;
  }

 private:
  void AddNodes(CLI::App* verb) {
    verb->add_option("--nodes", first_.nodes, "How many nodes")
        ->check(WholeNumber(1, 100'000))
        ->capture_default_str();
    verb->add_option("--partition", first_.partition, "Their partition");
    verb->add_option("--gres", first_.gres, "What each of them has, such as gpu:4");
    verb->add_option("--constraint", first_.constraint, "Their features, as sbatch takes them");
    verb->add_option("--memory", first_.memory, "Of each node, as sbatch takes it: 64G");
    verb->add_option("--cpus", first_.cpus,
                     "Of each node. Default: whole nodes, where --gres does not say what to take")
        ->check(WholeNumber(1, 4096));
    verb->add_option("--workers", first_.workers, "On each node that has no GPUs")
        ->check(WholeNumber(1, 256))
        ->capture_default_str();
    AddRepeated(verb, "--group", &groups_,
                "More nodes of another kind, by the names above: "
                "partition=v100,nodes=8,gres=gpu:2");
  }

  std::string Stem() const { return std::filesystem::path(job_file_).stem().string(); }

  // A job file that is wrong is found before it has waited for nodes. False: what is wrong was
  // said.
  bool TakeJobFile(const Screen& screen) {
    if (job_file_.empty()) return true;
    if (job_file_ == "-") {
      screen.Say("job_file: found \"-\", allowed is a file, which the allocation reads");
      return false;
    }
    const JobFile file = ReadJobFile(job_file_, overrides_);
    for (const std::string& error : file.errors) screen.Say(job_file_ + ": " + error);
    script_.job_file = std::filesystem::absolute(job_file_).lexically_normal().string();
    return file.errors.empty();
  }

  // A coordinator is gone to where the command line names it; what a user has set for all commands
  // is no wish to have these nodes there.
  void TakeCoordinator(const Settings& settings) {
    script_.insecure = !settings.insecure.value.empty();
    if (!settings.server.source.starts_with("flag")) return;
    script_.server = settings.server.value;
    if (settings.tls_dir.value.empty()) return;
    script_.tls_dir = std::filesystem::absolute(settings.tls_dir.value).string();
  }

  SlurmScript script_;
  NodeGroup first_;
  std::vector<std::string> groups_;
  std::vector<Override> overrides_;
  std::string job_file_;
  std::string time_;
  std::string notice_ = "2m";
  bool submit_ = false;
};

}  // namespace

std::unique_ptr<Verb> MakeSlurm() { return std::make_unique<SlurmVerb>(); }

}  // namespace tactus::client
