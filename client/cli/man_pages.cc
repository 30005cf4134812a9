#include "client/cli/man_pages.h"

#include <cctype>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "client/render/error_lines.h"
#include "client/verbs/words.h"
#include "runtime/process.h"

namespace tactus::client {
namespace {

// Text as groff prints it: no escapes, no requests, hyphens that can be copied.
std::string Plain(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool line_start = out.empty() || out.back() == '\n';
    if (line_start && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out;
}

std::string Quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\\(dq") : std::string(1, c);
  return out + "\"";
}

std::string Upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

std::string Synopsis(const std::string& command, const VerbWords& verb) {
  std::string text = ".B " + Plain(command) + "\n";
  if (!verb.verbs.empty() && verb.operands.empty()) text += ".I verb\n";
  for (const OperandWords& operand : verb.operands) {
    const std::string name = Upper(operand.name) + (operand.many ? "..." : "");
    text += operand.required ? ".I " + Plain(name) + "\n" : Plain("[" + name + "]") + "\n";
  }
  return text + "[options]\n";
}

std::string Entry(const std::string& head, const std::string& help) {
  return ".TP\n" + head + "\n" + Plain(help.empty() ? "See --help." : help) + "\n";
}

std::string Choices(const std::vector<std::string>& choices) {
  std::string text;
  for (const std::string& choice : choices) text += (text.empty() ? "" : ", ") + choice;
  return text.empty() ? "" : ". One of: " + text;
}

std::string OptionEntries(const VerbWords& verb) {
  std::string text;
  for (const OptionWords& option : verb.options) {
    std::string head = ".B ";
    for (std::size_t i = 0; i < option.names.size(); ++i) {
      head += (i > 0 ? ", " : "") + Plain(option.names[i]);
    }
    if (!option.value.empty()) head += " " + Plain(option.value);
    std::string help = option.help + Choices(option.choices);
    if (!option.fallback.empty()) help += ". Default: " + option.fallback;
    text += Entry(head, help);
  }
  return text;
}

std::string OperandEntries(const VerbWords& verb) {
  std::string text;
  for (const OperandWords& operand : verb.operands) {
    text += Entry(".I " + Plain(Upper(operand.name)), operand.help + Choices(operand.choices));
  }
  return text;
}

// What a reader needs of a verb, its nouns below it.
std::string Body(const std::string& command, const VerbWords& verb) {
  std::string text = OperandEntries(verb) + OptionEntries(verb);
  for (const VerbWords& noun : verb.verbs) {
    const std::string name = command + " " + noun.name;
    text += ".SS " + Quoted(Plain(name)) + "\n" + Plain(noun.help) + ".\n.PP\n";
    text += Synopsis(name, noun) + Body(name, noun);
  }
  return text;
}

// Lines as they are.
std::string Verbatim(const std::string& title, const std::string& lines) {
  return ".SH " + title + "\n.nf\n" + Plain(lines) + ".fi\n";
}

std::string Head(const std::string& name, const std::string& help) {
  return ".TH " + Quoted(Plain(Upper(name))) +
         " 1 \"\" \"tactus " TACTUS_VERSION "\" \"User Commands\"\n.SH NAME\n" + Plain(name) +
         " \\- " + Plain(help.substr(0, help.find('.'))) + "\n";
}

std::string VerbPage(const VerbWords& verb, const std::string& footer) {
  const std::string command = "tactus " + verb.name;
  std::string text = Head("tactus-" + verb.name, verb.help);
  text += ".SH SYNOPSIS\n" + Synopsis(command, verb);
  text += ".SH DESCRIPTION\n" + Plain(verb.help) + ".\n.SH OPTIONS\n" + Body(command, verb);
  text += Verbatim("NOTES", footer) + Verbatim("EXAMPLES", verb.examples);
  return text +
         ".SH SEE ALSO\n.BR tactus (1),\nwhich has the options of all verbs and the exit "
         "codes.\n";
}

std::string ProgramPage(const VerbWords& program) {
  std::string text = Head("tactus", program.help);
  text += ".SH SYNOPSIS\n" + Synopsis("tactus", program);
  text += ".SH DESCRIPTION\n" + Plain(program.help) + "\n.SH VERBS\n";
  for (const VerbWords& verb : program.verbs) {
    text += Entry(".BR " + Plain("tactus-" + verb.name) + " (1)", verb.help);
  }
  text += ".SH OPTIONS\n" + OptionEntries(program);
  return text + Verbatim("\"EXIT CODES AND SETTINGS\"", program.footer);
}

}  // namespace

std::vector<ManPage> ManPages(const VerbWords& program) {
  std::vector<ManPage> pages = {{"tactus.1", ProgramPage(program)}};
  for (const VerbWords& verb : program.verbs) {
    pages.push_back({"tactus-" + verb.name + ".1", VerbPage(verb, program.footer)});
  }
  return pages;
}

absl::StatusOr<std::vector<std::string>> WriteManPages(const VerbWords& program,
                                                       const std::string& folder) {
  if (const absl::Status made = runtime::MakeWritableFolder(folder); !made.ok()) return made;
  std::vector<std::string> paths;
  for (const ManPage& page : ManPages(program)) {
    const std::string path = (std::filesystem::path(folder) / page.file).string();
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    out << page.text;
    out.close();
    if (!out) return runtime::FileError(errno, path, "cannot be written");
    paths.push_back(path);
  }
  return paths;
}

namespace {

class ManVerb : public Verb {
 public:
  void Declare(CLI::App& program) override {
    AddVerb(program, "man", "Write the manual pages")
        ->add_option("--to", folder_, "Folder to write to, such as ~/.local/share/man/man1")
        ->required();
  }
  Need need() const override { return Need::kNothing; }
  ExitCode Run(const Means& means) override {
    const auto paths = WriteManPages(CommandTree(), folder_);
    if (!paths.ok()) return ReportError(OfLocalFile(paths.status()), means.screen);
    for (const std::string& path : *paths) means.screen.Print(path + "\n");
    return ExitCode::kOk;
  }

 private:
  std::string folder_;
};

}  // namespace

std::unique_ptr<Verb> MakeMan() { return std::make_unique<ManVerb>(); }

}  // namespace tactus::client
