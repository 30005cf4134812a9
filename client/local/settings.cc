#include "client/local/settings.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "client/api/options.h"
#include "client/render/exit_code.h"
#include "client/text/flag_checks.h"
#include "client/text/names.h"
#include "client/text/text.h"
#include "client/yaml/message_reader.h"
#include "client/yaml/yaml_file.h"
#include "runtime/process.h"
#include "tactus/cli/v1/config.pb.h"

namespace tactus::client {
namespace {

namespace fs = std::filesystem;

constexpr char kDefault[] = "default";

const std::vector<std::string> kFormats = {"table", "wide", "json", "yaml", "name"};

struct ConfigFile {
  GivenSettings given{};
  std::vector<Context> contexts{};
  std::string text{};
};

absl::StatusOr<ConfigFile> ReadConfig(const std::string& path) {
  ConfigFile config;
  std::error_code ignored;
  if (path.empty() || !fs::exists(path, ignored)) return config;
  FileText file = ReadYamlText(path, "a file");
  if (!file.error.empty()) return absl::InvalidArgumentError(path + ": " + file.error);
  config.text = std::move(file.text);
  const YamlDocument document = ParseYaml(config.text);
  if (!document.error.empty()) return absl::InvalidArgumentError(path + ": " + document.error);
  if (document.root.kind == YamlValue::Kind::kNull) return config;  // an empty file
  cli::v1::Config message;
  const std::vector<std::string> errors = ErrorTexts(ReadMessage(document.root, &message));
  if (!errors.empty()) return absl::InvalidArgumentError(path + ": " + errors.front());
  config.given = {.server = message.server(),
                  .context = message.context(),
                  .request_timeout = message.request_timeout(),
                  .output = message.output(),
                  .tls_dir = message.tls_dir(),
                  .insecure = message.insecure() ? kYes : ""};
  if (message.contexts().empty()) return config;
  for (const YamlEntry& entry : FindYamlKey(document.root, "contexts")->entries) {  // in order
    const cli::v1::Context& context = message.contexts().at(entry.key);
    const std::string& server = context.server();
    if (server.empty()) {
      return absl::InvalidArgumentError(path + ": contexts." + entry.key +
                                        ".server: is missing; give HOST:PORT (line " +
                                        std::to_string(entry.line) + ")");
    }
    config.contexts.push_back({.name = entry.key,
                               .server = server,
                               .tls_dir = context.tls_dir(),
                               .insecure = context.insecure()});
  }
  return config;
}

absl::StatusOr<Setting> CheckedServer(const Setting& setting) {
  if (api::IsHostPort(setting.value)) return setting;
  return absl::InvalidArgumentError(setting.source + ": '" + Printable(setting.value) +
                                    "' is not an address; allowed: HOST:PORT, such as " +
                                    api::kServerDefault);
}

std::vector<std::string> ContextNames(const std::vector<Context>& contexts) {
  std::vector<std::string> names;
  for (const Context& context : contexts) names.push_back(context.name);
  return names;
}

std::string UnknownContext(const std::string& name, const std::vector<Context>& contexts) {
  const std::vector<std::string> names = ContextNames(contexts);
  const std::optional<std::string> nearest = NearestName(name, names);
  return "'" + Printable(name) + "' is not a context" +
         (nearest ? "; did you mean '" + *nearest + "'?" : ";") +
         " allowed: " + (names.empty() ? "none, the file has no contexts" : JoinNames(names));
}

const Context* FindContext(const std::vector<Context>& contexts, const std::string& name) {
  const auto found = std::ranges::find(contexts, name, &Context::name);
  return found == contexts.end() ? nullptr : &*found;
}

// The first that was given; the last has to be.
Setting Strongest(std::initializer_list<Setting> settings) {
  for (const Setting& setting : settings) {
    if (!setting.value.empty()) return setting;
  }
  return {};
}

absl::Status ResolveServer(const SettingSources& sources, const ConfigFile& config,
                           Settings* settings) {
  const std::string file = "file " + sources.config_path;
  const auto use = [&](const Setting& server) -> absl::Status {
    const absl::StatusOr<Setting> checked = CheckedServer(server);
    if (checked.ok()) settings->server = *checked;
    return checked.status();
  };
  const auto use_context = [&](const Setting& context) -> absl::Status {
    const Context* found = FindContext(config.contexts, context.value);
    if (found == nullptr) {
      return absl::InvalidArgumentError(context.source + ": " +
                                        UnknownContext(context.value, config.contexts));
    }
    settings->context = context;
    return use({found->server, "context " + found->name + " (" + context.source + ")"});
  };
  const GivenSettings& flags = sources.flags;
  const GivenSettings& environment = sources.environment;
  if (!flags.server.empty()) return use({flags.server, "flag --server"});
  if (!flags.context.empty()) return use_context({flags.context, "flag --context"});
  if (!environment.server.empty()) return use({environment.server, "environment TACTUS_SERVER"});
  if (!environment.context.empty()) {
    return use_context({environment.context, "environment TACTUS_CONTEXT"});
  }
  if (!config.given.context.empty()) return use_context({config.given.context, file});
  if (!config.given.server.empty()) return use({config.given.server, file});
  return use({api::kServerDefault, kDefault});
}

// Of the context, if the server is its; of the file, if the server is that or the default; else
// neither is meant.
void ResolveSecurity(const SettingSources& sources, const ConfigFile& config, Settings* settings) {
  const Context* const context = FindContext(config.contexts, settings->context.value);
  const std::string file = "file " + sources.config_path;
  const bool of_file = settings->server.source == file || settings->server.source == kDefault;
  Setting tls_dir;
  Setting insecure;
  if (context != nullptr) {
    tls_dir = {.value = context->tls_dir, .source = "context " + context->name};
    insecure = {.value = context->insecure ? kYes : "", .source = "context " + context->name};
  } else if (of_file) {
    tls_dir = {.value = config.given.tls_dir, .source = file};
    insecure = {.value = config.given.insecure, .source = file};
  }
  settings->tls_dir = Strongest({{sources.flags.tls_dir, "flag --tls-dir"},
                                 {sources.environment.tls_dir, "environment TACTUS_TLS_DIR"},
                                 tls_dir});
  settings->insecure = Strongest({{sources.flags.insecure, "flag --insecure"},
                                  {sources.environment.insecure, "environment TACTUS_INSECURE"},
                                  insecure});
  if (settings->tls_dir.value.empty()) settings->tls_dir.source = kDefault;
  if (settings->insecure.value.empty()) settings->insecure.source = kDefault;
}

nlohmann::json ToJson(const Setting& setting) {
  return {{"value", setting.value}, {"source", setting.source}};
}

std::vector<std::pair<std::string, const Setting*>> All(const Settings& settings) {
  return {{"server", &settings.server},
          {"context", &settings.context},
          {"tls_dir", &settings.tls_dir},
          {"insecure", &settings.insecure},
          {"request_timeout", &settings.request_timeout},
          {"output", &settings.output},
          {"colour", &settings.colour}};
}

// The file's text with the line of its key `context` replaced, or a new first line of the document.
std::string WithContext(const std::string& text, const std::string& name) {
  const std::string line = "context: " + YamlScalar(name);
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    if (text.compare(begin, 8, "context:") == 0) {
      return text.substr(0, begin) + line + text.substr(end);
    }
    begin = end + 1;
  }
  const std::size_t marker = text.starts_with("---") ? text.find('\n') : std::string::npos;
  const std::size_t first = marker == std::string::npos ? 0 : marker + 1;
  return text.substr(0, first) + line + "\n" + text.substr(first);
}

// The file's text with another context: below the line of its contexts, or as its last lines.
std::string WithAnother(const std::string& text, const Context& context) {
  const std::string line = YamlScalar(context.name) + ": {server: " + YamlScalar(context.server) +
                           ", tls_dir: " + YamlScalar(context.tls_dir) + "}\n";
  constexpr std::string_view kContexts = "contexts:\n";
  std::size_t at = text.starts_with(kContexts) ? 0 : text.find("\n" + std::string(kContexts));
  if (at == std::string::npos) {
    const std::string end = text.empty() || text.back() == '\n' ? "" : "\n";
    return text + end + std::string(kContexts) + "  " + line;
  }
  at = text.find(kContexts, at) + kContexts.size();
  // As far in as what follows is.
  const std::size_t width = std::min(text.find_first_not_of(' ', at), text.size()) - at;
  return text.substr(0, at) + std::string(width == 0 ? 2 : width, ' ') + line + text.substr(at);
}

absl::Status Replace(const std::string& path, const std::string& text) {
  const std::string part = path + ".part";
  // Beside, and then renamed: whoever reads meanwhile finds one of the two, whole.
  std::ofstream out(part, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  if (!out) return OfLocalFile(runtime::FileError(errno, part, "cannot be written"));
  std::error_code error;
  fs::rename(part, path, error);
  if (!error) return absl::OkStatus();
  return OfLocalFile(runtime::FileError(error.value(), path, "cannot be written"));
}

}  // namespace

absl::StatusOr<Settings> ResolveSettings(const SettingSources& sources) {
  const absl::StatusOr<ConfigFile> config = ReadConfig(sources.config_path);
  if (!config.ok()) return config.status();
  Settings settings;
  settings.config_path = sources.config_path;
  settings.contexts = config->contexts;
  settings.context.source = "default";
  if (const absl::Status status = ResolveServer(sources, *config, &settings); !status.ok()) {
    return status;
  }
  ResolveSecurity(sources, *config, &settings);
  if (!settings.insecure.value.empty() && settings.insecure.value != kYes) {
    return absl::InvalidArgumentError(settings.insecure.source + ": insecure: found \"" +
                                      Printable(settings.insecure.value) + "\", allowed is true");
  }
  const std::string file = "file " + sources.config_path;
  settings.request_timeout =
      Strongest({{sources.flags.request_timeout, "flag --request-timeout"},
                 {sources.environment.request_timeout, "environment TACTUS_REQUEST_TIMEOUT"},
                 {config->given.request_timeout, file},
                 {"10s", "default"}});
  settings.output = Strongest({{sources.flags.output, "flag --output"},
                               {sources.environment.output, "environment TACTUS_OUTPUT"},
                               {config->given.output, file},
                               {"table", "default"}});
  const std::string wrong = CheckDuration(settings.request_timeout.value);
  if (!wrong.empty()) {
    return absl::InvalidArgumentError(settings.request_timeout.source +
                                      ": request_timeout: " + wrong);
  }
  if (std::ranges::find(kFormats, settings.output.value) == kFormats.end()) {
    return absl::InvalidArgumentError(settings.output.source + ": output: found \"" +
                                      Printable(settings.output.value) +
                                      "\", allowed is one of: " + JoinNames(kFormats));
  }
  return settings;
}

absl::Status UseContext(const std::string& config_path, const std::string& name) {
  const absl::StatusOr<ConfigFile> config = ReadConfig(config_path);
  if (!config.ok()) return config.status();
  if (FindContext(config->contexts, name) == nullptr) {
    return absl::NotFoundError(config_path + ": " + UnknownContext(name, config->contexts));
  }
  const std::string text = WithContext(config->text, name);
  // A file may hold more than a map in YAML's plain form: a directive, a comment before its marker.
  if (const YamlDocument document = ParseYaml(text); !document.error.empty()) {
    return absl::FailedPreconditionError(config_path +
                                         ": no line can be added to it as it is written; give it "
                                         "the line context: " +
                                         YamlScalar(name));
  }
  return Replace(config_path, text);
}

absl::Status AddContext(const std::string& config_path, const Context& context) {
  const absl::StatusOr<ConfigFile> config = ReadConfig(config_path);
  if (!config.ok()) return config.status();
  const Context* const found = FindContext(config->contexts, context.name);
  if (found != nullptr) {
    if (found->server == context.server && found->tls_dir == context.tls_dir) {
      return absl::OkStatus();
    }
    return absl::AlreadyExistsError(config_path + ": contexts." + context.name +
                                    ": is there already, for " + found->server);
  }
  std::error_code error;
  fs::create_directories(fs::path(config_path).parent_path(), error);
  if (error) return OfLocalFile(runtime::FileError(error.value(), config_path, "cannot be made"));
  const std::string text = WithAnother(config->text, context);
  // Contexts in braces, say, or a line that only looks like theirs.
  cli::v1::Config message;
  const YamlDocument document = ParseYaml(text);
  const bool read = document.error.empty() && ReadMessage(document.root, &message).empty() &&
                    message.contexts().size() == config->contexts.size() + 1;
  if (read) return Replace(config_path, text);
  return absl::FailedPreconditionError(
      config_path + ": no line can be added to it as it is written; give its contexts " +
      YamlScalar(context.name) + ": {server: " + YamlScalar(context.server) +
      ", tls_dir: " + YamlScalar(context.tls_dir) + "}");
}

std::string RenderSettings(const Settings& settings, OutputFormat format) {
  if (format == OutputFormat::kJson) {
    nlohmann::json out = {{"config_file", settings.config_path}};
    for (const auto& [name, setting] : All(settings)) out[name] = ToJson(*setting);
    return out.dump(2) + "\n";
  }
  std::vector<std::vector<std::string>> rows = {{"SETTING", "VALUE", "FROM"}};
  std::string yaml = "config_file: " + YamlScalar(settings.config_path) + "\n";
  for (const auto& [name, setting] : All(settings)) {
    rows.push_back({name, setting->value.empty() ? "-" : setting->value, setting->source});
    yaml += name + ":\n  value: " + YamlScalar(setting->value) +
            "\n  source: " + YamlScalar(setting->source) + "\n";
  }
  if (format == OutputFormat::kYaml) return yaml;
  return FormatTable(rows) + "\nconfiguration file: " + settings.config_path + "\n";
}

std::string RenderContexts(const Settings& settings, OutputFormat format) {
  std::vector<std::vector<std::string>> rows = {{"IN USE", "NAME", "SERVER"}};
  if (format == OutputFormat::kName) rows.clear();
  for (const Context& context : settings.contexts) {
    if (format == OutputFormat::kName) {
      rows.push_back({context.name});
    } else {
      const std::string mark = context.name == settings.context.value ? "*" : "";
      rows.push_back({mark, context.name, context.server});
    }
  }
  return FormatTable(rows);
}

}  // namespace tactus::client
