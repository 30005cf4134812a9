// The words of what is done with jobs.

#pragma once

#include <string>
#include <vector>

#include "client/cli/words.h"

namespace tactus::client {

class JobWords : public WordFamily {
 public:
  void Declare(Words& words) override;

 private:
  void DeclareSubmit(Words& words);
  void DeclareGet(Words& words);
  void DeclareNoun(CLI::App* get, Words& words, const std::string& word, GetCommand::Noun noun);
  void DeclareListOptions(CLI::App* verb, GetCommand::Noun noun);
  void DeclareDescribe(Words& words);
  void DeclareShowing(Words& words);
  void DeclareWait(Words& words);
  void DeclareLogs(Words& words);
  void DeclareUpdate(Words& words);
  void DeclareEnding(Words& words);
  void DeclarePausing(Words& words);
  void DeclareDownload(Words& words);
  void AddPriority(CLI::App* verb);

  std::vector<std::string> set_;
  std::vector<std::string> labels_;
  std::string priority_;
  std::string grace_;
  std::string timeout_;
  std::string condition_ = "state=SUCCEEDED";
  std::string lines_ = "text";
  std::string output_submit_ = "name";
  std::string output_get_;
  std::string output_explain_ = "table";
  SubmitCommand submit_;
  GetCommand get_;
  DescribeCommand describe_;
  ExplainCommand explain_;
  WatchCommand watch_;
  WaitCommand wait_;
  LogsCommand logs_;
  UpdateCommand update_;
  CancelCommand cancel_;
  PauseCommand pause_;
  ResumeCommand resume_;
  DeleteCommand delete_;
  DownloadCommand download_;
};

}  // namespace tactus::client
