// `tactus completion`, the scripts that shells load: each asks `tactus __complete` and fills in
// what stands behind an @.
#include "client/cli/completion.h"
#include "client/verbs/words.h"

namespace tactus::client {
namespace {

constexpr const char* kBash = R"(# Completion of tactus for bash: source <(tactus completion bash)
_tactus() {
  local cur=${COMP_WORDS[COMP_CWORD]} line names
  COMPREPLY=();
  while IFS= read -r line; do
    line=${line%%$'\t'*}
    case $line in
      @jobs | @nodes) names=$(tactus get "${line#@}" -o name --request-timeout 2s 2>/dev/null) ;;
      @contexts) names=$(tactus config get-contexts -o name 2>/dev/null) ;;
      @files)
        compopt -o filenames 2>/dev/null
        mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$cur")
        continue
        ;;
      *) names=$line ;;
    esac
    mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -W "$names" -- "$cur")
  done < <(tactus __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _tactus tactus
)";

constexpr const char* kZsh = R"(#compdef tactus
# Completion of tactus for zsh: tactus completion zsh > "${fpath[1]}/_tactus"
_tactus() {
  local line
  local -a names plain
  for line in "${(@f)$(tactus __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    case $line in
      ('') ;;
      (@jobs|@nodes)
        names=("${(@f)$(tactus get "${line#@}" -o name --request-timeout 2s 2>/dev/null)}")
        compadd -a names
        ;;
      (@contexts)
        names=("${(@f)$(tactus config get-contexts -o name 2>/dev/null)}")
        compadd -a names
        ;;
      (@files) _files ;;
      (*) plain+=("${line%%$'\t'*}") ;;
    esac
  done
  compadd -a plain
}
if [[ $funcstack[1] == _tactus ]]; then
  _tactus "$@"
else
  compdef _tactus tactus
fi
)";

constexpr const char* kFish = R"(# Completion of tactus for fish
function __tactus_complete
    set -l words (commandline -opc) (commandline -ct)
    for line in (command tactus __complete $words[2..-1] 2>/dev/null)
        switch $line
            case @jobs
                command tactus get jobs -o name --request-timeout 2s 2>/dev/null
            case @nodes
                command tactus get nodes -o name --request-timeout 2s 2>/dev/null
            case @contexts
                command tactus config get-contexts -o name 2>/dev/null
            case @files
                __fish_complete_path (commandline -ct)
            case '*'
                echo $line
        end
    end
end
complete -c tactus -f -a '(__tactus_complete)'
)";

class CompletionVerb : public Verb {
 public:
  void Declare(CLI::App& program) override {
    CLI::App* verb = AddVerb(program, "completion",
                             "Print a script that completes the words of tactus in a shell");
    verb->add_option("shell", shell_, "The shell")
        ->required()
        ->check(CLI::IsMember({"bash", "zsh", "fish"}));
    verb->footer(
        "To load it:\n"
        "  bash: source <(tactus completion bash)\n"
        "  zsh:  tactus completion zsh > \"${fpath[1]}/_tactus\"\n"
        "  fish: tactus completion fish > ~/.config/fish/completions/tactus.fish\n");
  }
  Need need() const override { return Need::kNothing; }
  ExitCode Run(const Means& means) override {
    means.screen.Print(CompletionScript(shell_));
    return ExitCode::kOk;
  }

 private:
  std::string shell_;
};

}  // namespace

std::string CompletionScript(const std::string& shell) {
  return shell == "zsh" ? kZsh : shell == "fish" ? kFish : kBash;
}

std::unique_ptr<Verb> MakeCompletion() { return std::make_unique<CompletionVerb>(); }

}  // namespace tactus::client
