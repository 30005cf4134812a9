// The words of looking at jobs and their history.

#pragma once

#include <string>

#include "client/cli/words.h"

namespace tactus::client {

class HistoryWords : public WordFamily {
 public:
  void Declare(Words& words) override;

 private:
  void DeclareTop(Words& words);
  void DeclareTrace(Words& words);
  void DeclarePlot(Words& words);

  std::string rounds_;
  std::string axis_ = "time";
  TopCommand top_;
  PlotCommand plot_;
  TraceCommand trace_;
};

}  // namespace tactus::client
