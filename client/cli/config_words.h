// The words about the program itself: its settings, completion, man pages, version.

#pragma once

#include <string>

#include "client/cli/words.h"

namespace tactus::client {

class ConfigWords : public WordFamily {
 public:
  void Declare(Words& words) override;

 private:
  void DeclareConfig(Words& words);

  std::string shell_;
  std::string output_show_ = "table";
  std::string output_contexts_ = "table";
  ConfigCommand config_;
  CompletionCommand completion_;
  ManCommand man_;
};

}  // namespace tactus::client
