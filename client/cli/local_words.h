// The words of what needs no coordinator that runs already: run, replay, simulate, version.

#pragma once

#include <string>
#include <vector>

#include "client/cli/words.h"

namespace tactus::client {

class LocalWords : public WordFamily {
 public:
  void Declare(Words& words) override;

 private:
  void DeclareRun(Words& words);
  void DeclareReplay(Words& words);
  void DeclareSimulate(Words& words);
  void DeclareWhatIf(CLI::App* verb);
  void DeclareFiles(CLI::App* verb);
  void DeclareOverrides(CLI::App* verb);

  std::vector<std::string> set_;
  std::string lines_ = "text";
  std::string output_replay_ = "table";
  std::string output_simulate_ = "table";
  RunCommand run_;
  ReplayCommand replay_;
  SimulateCommand simulate_;
};

}  // namespace tactus::client
