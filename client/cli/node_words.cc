#include "client/cli/node_words.h"

namespace tactus::client {

void NodeWords::Declare(Words& words) {
  DeclareNode(words, "cordon", "Start no new workers on a node; those that run go on",
              NodeCommand::Action::kCordon);
  CLI::App* drain =
      DeclareNode(words, "drain",
                  "Cordon a node and move its jobs away: each goes on elsewhere from a checkpoint",
                  NodeCommand::Action::kDrain);
  drain->add_flag("--wait", node_.wait, "Wait until no device of the node has a job");
  drain->add_option("--timeout", timeout_, "Of --wait, such as 10m. Default: for ever")
      ->check(DurationText());
  DeclareNode(words, "uncordon", "Take cordon and drain back", NodeCommand::Action::kUncordon);
  DeclareAdmin(words);
}

CLI::App* NodeWords::DeclareNode(Words& words, const std::string& word, const std::string& help,
                                 NodeCommand::Action action) {
  CLI::App* verb = words.app.add_subcommand(word, help);
  verb->add_option("node", node_.name, "The node's name")->required();
  verb->callback([this, &words, action] {
    node_.action = action;
    node_.timeout = GivenDuration(timeout_);
    words.line.command = node_;
  });
  return verb;
}

void NodeWords::DeclareAdmin(Words& words) {
  CLI::App* admin =
      words.app.add_subcommand("admin", "Look after the coordinator, its database and the logs");
  admin->require_subcommand(1);
  admin->fallthrough();
  CLI::App* backup = admin->add_subcommand(
      "backup", "Save a copy that a coordinator can be started from, while this one goes on");
  backup->add_option("file", backup_.file, "A file that does not exist yet")->required();
  backup->callback([this, &words] { words.line.command = backup_; });

  CLI::App* level = admin->add_subcommand(
      "log-level", "How much the coordinator, or a node's agent, logs, until it is started again");
  level->add_option("level", log_level_.level, "trace, debug, info, warn, error or off")
      ->required()
      ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error", "off"}));
  level->add_option("--node", log_level_.node, "The agent of this node, not the coordinator");
  level->callback([this, &words] { words.line.command = log_level_; });

  CLI::App* integrity = admin->add_subcommand(
      "integrity-check", "Look through database and blobs; ends with 1 when something is wrong");
  AddOutput(integrity, &output_integrity_, {"table", "json"});
  integrity->callback([this, &words] {
    integrity_.output = ParseOutputFormat(output_integrity_);
    words.line.command = integrity_;
  });
}

}  // namespace tactus::client
