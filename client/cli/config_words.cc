#include "client/cli/config_words.h"

namespace tactus::client {

void ConfigWords::Declare(Words& words) {
  DeclareConfig(words);

  CLI::App* completion = words.app.add_subcommand(
      "completion", "Print a script that completes the words of tactus in a shell");
  completion->add_option("shell", shell_, "The shell")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  completion->footer(
      "To load it:\n"
      "  bash: source <(tactus completion bash)\n"
      "  zsh:  tactus completion zsh > \"${fpath[1]}/_tactus\"\n"
      "  fish: tactus completion fish > ~/.config/fish/completions/tactus.fish\n");
  completion->callback([this, &words] {
    completion_.shell = shell_ == "zsh"    ? CompletionCommand::Shell::kZsh
                        : shell_ == "fish" ? CompletionCommand::Shell::kFish
                                           : CompletionCommand::Shell::kBash;
    words.line.command = completion_;
  });

  CLI::App* man = words.app.add_subcommand("man", "Write the manual pages");
  man->add_option("--to", man_.folder, "Folder to write to, such as ~/.local/share/man/man1")
      ->required();
  man->callback([this, &words] { words.line.command = man_; });

  words.app.add_subcommand("version", "Print the version")->callback([&words] {
    words.line.command = VersionCommand{};
  });
}

void ConfigWords::DeclareConfig(Words& words) {
  CLI::App* config =
      words.app.add_subcommand("config", "Show or change what tactus remembers for all commands");
  config->require_subcommand(1);
  config->fallthrough();
  CLI::App* show = config->add_subcommand("show", "The settings in force and where each came from");
  AddOutput(show, &output_show_, {"table", "json", "yaml"});
  show->callback([this, &words] {
    config_.action = ConfigCommand::Action::kShow;
    config_.output = ParseOutputFormat(output_show_);
    words.line.command = config_;
  });
  CLI::App* contexts =
      config->add_subcommand("get-contexts", "The coordinators that the configuration file names");
  AddOutput(contexts, &output_contexts_, {"table", "name"});
  contexts->callback([this, &words] {
    config_.action = ConfigCommand::Action::kGetContexts;
    config_.output = ParseOutputFormat(output_contexts_);
    words.line.command = config_;
  });
  CLI::App* use = config->add_subcommand("use-context", "Use this coordinator from now on");
  use->add_option("context", config_.context, "Its name in the configuration file")->required();
  use->callback([this, &words] {
    config_.action = ConfigCommand::Action::kUseContext;
    words.line.command = config_;
  });
}

}  // namespace tactus::client
