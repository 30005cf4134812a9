#include "client/cli/completion.h"

#include <algorithm>
#include <cstddef>

namespace tactus::client {
namespace {

const OptionWords* FindOption(const VerbWords& verb, const std::string& name) {
  const auto found = std::ranges::find_if(verb.options, [&](const OptionWords& option) {
    return std::ranges::find(option.names, name) != option.names.end();
  });
  return found == verb.options.end() ? nullptr : &*found;
}

const VerbWords* FindVerb(const VerbWords& verb, const std::string& name) {
  const auto found = std::ranges::find(verb.verbs, name, &VerbWords::name);
  return found == verb.verbs.end() ? nullptr : &*found;
}

// Where a command line stands after its whole words.
struct Place {
  std::vector<const VerbWords*> path{};  // the program, its verb, that one's noun
  const OptionWords* option = nullptr;   // whose value comes next
  std::size_t operands = 0;              // given so far
};

const OptionWords* FindInPath(const Place& place, const std::string& name) {
  for (const VerbWords* verb : place.path) {
    if (const OptionWords* option = FindOption(*verb, name)) return option;
  }
  return nullptr;
}

Place Walk(const VerbWords& program, const std::vector<std::string>& words) {
  Place place = {.path = {&program}};
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    const std::string& word = words[i];
    if (place.option != nullptr) {
      place.option = nullptr;
    } else if (word.starts_with("-")) {
      const OptionWords* option = FindInPath(place, word);
      if (option != nullptr && !option->value.empty()) place.option = option;
    } else if (const VerbWords* verb = FindVerb(*place.path.back(), word)) {
      place.path.push_back(verb);
      place.operands = 0;
    } else {
      ++place.operands;
    }
  }
  return place;
}

std::string Described(const std::string& word, const std::string& help) {
  constexpr std::size_t kHelpMax = 60;
  const std::string first = help.substr(0, help.find_first_of(".;:"));
  if (first.empty()) return word;
  return word + "\t" + (first.size() > kHelpMax ? first.substr(0, kHelpMax) + "..." : first);
}

// What stands for an operand or an option's value of this name.
std::string Source(const std::string& name) {
  if (name == "job" || name == "--from") return "@jobs";
  if (name == "node") return "@nodes";
  if (name == "context" || name == "--context") return "@contexts";
  const bool files = name.ends_with("file") || name == "tape" || name == "--to" ||
                     name == "--output" || name == "--tape" || name == "--csv" ||
                     name == "--trace" || name == "--write-cluster";
  return files ? "@files" : "";
}

std::vector<std::string> Values(const std::vector<std::string>& choices, const std::string& name) {
  if (!choices.empty()) return choices;
  const std::string source = Source(name);
  return source.empty() ? std::vector<std::string>() : std::vector<std::string>{source};
}

// What the operand behind so many others can be.
std::vector<std::string> Operands(const VerbWords& verb, std::size_t given) {
  if (verb.operands.empty()) return {};
  const OperandWords& operand = verb.operands[std::min(given, verb.operands.size() - 1)];
  if (given >= verb.operands.size() && !operand.many) return {};
  return Values(operand.choices, operand.name);
}

std::vector<std::string> OptionNames(const Place& place) {
  std::vector<std::string> names;
  for (const VerbWords* verb : place.path) {
    for (const OptionWords& option : verb->options) {
      for (const std::string& name : option.names) {
        const bool known = std::ranges::any_of(
            names, [&](const std::string& other) { return other.starts_with(name + "\t"); });
        if (!known) names.push_back(Described(name, option.help));
      }
    }
  }
  return names;
}

}  // namespace

std::vector<std::string> Complete(const VerbWords& program, const std::vector<std::string>& words) {
  const std::string last = words.empty() ? "" : words.back();
  const Place place = Walk(program, words);
  const VerbWords& verb = *place.path.back();
  std::vector<std::string> candidates;
  if (place.option != nullptr) {
    candidates = Values(place.option->choices, place.option->names.back());
  } else if (last.starts_with("-")) {
    candidates = OptionNames(place);
  } else {
    candidates = Operands(verb, place.operands);
    if (place.operands == 0) {
      for (const VerbWords& below : verb.verbs) {
        candidates.push_back(Described(below.name, below.help));
      }
    }
  }
  std::erase_if(candidates, [&](const std::string& candidate) {
    return !candidate.starts_with(last) && !candidate.starts_with("@");
  });
  return candidates;
}

}  // namespace tactus::client
