#include "client/cli/examples.h"

#include <vector>

#include "client/text/text.h"

namespace tactus::client {
namespace {

constexpr Example kExamples[] = {
    {"tactus run job.yaml --output result/"},
    {"tactus run job.yaml --speeds 1,1,0.5,0.25", "four workers, as if on unequal devices"},
    {"tactus demo", "a first job, within a minute"},
    {"tactus demo --seconds 60 --output result/", "and keep what was trained"},
    {"tactus simulate examples/cluster.yaml examples/demo.yaml"},
    {"tactus simulate --from shakespeare-1 --add 2xspeed=0.5", "two more, half as fast"},
    {"tactus replay run.tape", "that run --tape run.tape wrote"},
    {"tactus submit job.yaml --follow"},
    {"tactus submit job.yaml --label team=vision --priority 5", "prints the job's name"},
    {"tactus submit job.yaml --from shakespeare-3", "begins with that job's result"},
    {"tactus layouts job.yaml --device 4@old:0.5:8GB --device 1@new:4:24GB",
     "whole, 1-D or 2-D, before anything is bought or begun"},
    {"tactus sweep job.yaml --over learning_rate=0.01,0.03,0.1"},
    {"tactus sweep job.yaml --over learning_rate=0.01,0.1 --over seed=1,2,3 --dry-run",
     "six jobs, which are only checked"},
    {"tactus get sweep shakespeare-1f0c2a", "the best first"},
    {"tactus get sweep shakespeare-1f0c2a -o name", "the best first, for download"},
    {"tactus get jobs --filter 'state=RUNNING AND labels.team=vision'"},
    {"tactus get nodes --watch", "goes on with the lines that change"},
    {"tactus get validations shakespeare-1", "the curve of the validation loss"},
    {"tactus describe job shakespeare-1", "everything, down to the job file"},
    {"tactus describe node node-3"},
    {"tactus explain shakespeare-1 --last 5 --axis batch"},
    {"tactus explain shakespeare-1 --since 10m", "of training"},
    {"tactus explain shakespeare-1 --value-of-devices", "and what one more would add"},
    {"tactus watch shakespeare-1"},
    {"tactus wait shakespeare-1 --for state=RUNNING --timeout 10m"},
    {"tactus logs shakespeare-1 --rank 0 --follow"},
    {"tactus update shakespeare-1 --set spec.stop.epochs=30"},
    {"tactus update shakespeare-1 --freeze batch --label team=speech"},
    {"tactus revert shakespeare-1 12-batch", "until update --unfreeze batch"},
    {"tactus cancel shakespeare-1", "keeps the result that there is"},
    {"tactus cancel shakespeare-1 --discard"},
    {"tactus delete shakespeare-1 shakespeare-2"},
    {"tactus delete node node-3", "that was taken away"},
    {"tactus pause shakespeare-1"},
    {"tactus resume shakespeare-1"},
    {"tactus download shakespeare-1 --to result/"},
    {"tactus verify result/ --ca ca.pem", "who made it, and that it is whole"},
    {"tactus top"},
    {"tactus top --once"},
    {"tactus plot shakespeare-1 --output loss.svg"},
    {"tactus trace shakespeare-1 --rounds 100:200 > trace.json"},
    {"tactus cordon node-3"},
    {"tactus drain node-3 --wait --timeout 10m"},
    {"tactus uncordon node-3"},
    {"tactus admin backup tactus.db"},
    {"tactus admin log-level debug --node node-3", "until that agent is started again"},
    {"tactus admin integrity-check"},
    {"tactus admin init-ca --out ca"},
    {"tactus admin init-ca --out ca --login HOST:7070", "and be its admin there"},
    {"tactus admin rotate-ca --ca ca", "over two weeks, by itself"},
    {"tactus admin issue --coordinator --ca ca --out coordinator-tls"},
    {"tactus admin issue --node gpu-7 --ca ca --out gpu-7-tls"},
    {"tactus admin issue --user alice --ca ca --out alice-tls"},
    {"tactus admin token --node gpu-7", "for tactus-agent --join"},
    {"tactus admin token --user alice --hours 8", "for tactus login"},
    {"tactus admin revoke --node gpu-7 --in /etc/tactus/tls", "on the coordinator's machine"},
    {"tactus admin audit --state-dir /var/lib/tactus --verify"},
    {"tactus chaos shakespeare-1 --for 5m --every 30s --i-know-that-it-kills",
     "on a machine with workers"},
    {"tactus chaos shakespeare-1 --stop 10s --i-know-that-it-kills", "stopped, not killed"},
    {"tactus login --server HOST:7070 --token TOKEN", "as whom the token names"},
    {"tactus login --server HOST:7070 --token-file token --name lab"},
    {"tactus slurm job.yaml --nodes 4 --partition gpu --gres gpu:4 --time 8h --submit"},
    {"tactus slurm job.yaml --partition a100 --gres gpu:4 --group "
     "partition=v100,nodes=8,gres=gpu:2",
     "unequal nodes"},
    {"tactus slurm --server HOST:7070 --nodes 2 --time 4h", "nodes for a coordinator's jobs"},
    {"tactus doctor", "a line a finding"},
    {"tactus doctor --local", "without a coordinator"},
    {"tactus clean", "shows what it would remove, and asks"},
    {"tactus clean --results --yes"},
    {"tactus config show"},
    {"tactus config get-contexts"},
    {"tactus config use-context lab"},
    {"tactus completion bash", "in ~/.bashrc: source <(tactus completion bash)"},
    {"tactus completion fish > ~/.config/fish/completions/tactus.fish"},
    {"tactus man --to ~/.local/share/man/man1"},
    {"tactus version"},
};

}  // namespace

std::span<const Example> AllExamples() { return kExamples; }

std::string ExamplesOf(const std::string& words) {
  constexpr std::size_t kRowsMax = 3;
  const std::string begin = "tactus " + words + " ";
  std::vector<std::vector<std::string>> rows;
  for (const Example& example : kExamples) {
    const std::string line = example.line;
    if (!(line + " ").starts_with(begin)) continue;
    if (rows.size() == kRowsMax) break;  // of a group of many verbs, the first
    const std::string note = example.note;
    rows.push_back({line, note.empty() ? "" : "# " + note});
  }
  const std::size_t noun = words.rfind(' ');
  if (rows.empty() && noun != std::string::npos) return ExamplesOf(words.substr(0, noun));
  return FormatTable(rows);
}

}  // namespace tactus::client
