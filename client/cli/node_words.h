// The words of what is done with nodes and with the coordinator itself.

#pragma once

#include <string>

#include "client/cli/words.h"

namespace tactus::client {

class NodeWords : public WordFamily {
 public:
  void Declare(Words& words) override;

 private:
  CLI::App* DeclareNode(Words& words, const std::string& word, const std::string& help,
                        NodeCommand::Action action);
  void DeclareAdmin(Words& words);

  std::string timeout_;
  std::string output_integrity_ = "table";
  NodeCommand node_;
  BackupCommand backup_;
  LogLevelCommand log_level_;
  IntegrityCommand integrity_;
};

}  // namespace tactus::client
