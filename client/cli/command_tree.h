// The words of the command line as plain data: what completion and man pages are made of.

#pragma once

#include <string>
#include <vector>

namespace tactus::client {

struct OptionWords {
  std::vector<std::string> names{};    // "-o", "--output"
  std::string value{};                 // "DURATION"; empty: a flag
  std::vector<std::string> choices{};  // of the value; empty: free
  std::string help{};
  std::string fallback{};  // what it is when not given; empty: nothing, or said in the help
};

struct OperandWords {
  std::string name{};  // "job_file"
  std::vector<std::string> choices{};
  std::string help{};
  bool required = false;
  bool many = false;
};

struct VerbWords {
  std::string name{};
  std::string help{};
  std::string footer{};    // of the program: what holds for all verbs
  std::string examples{};  // of a verb: as ExamplesOf has them
  std::vector<OptionWords> options{};
  std::vector<OperandWords> operands{};
  std::vector<VerbWords> verbs{};
};

// The program: its options are those of all verbs.
VerbWords CommandTree();

}  // namespace tactus::client
