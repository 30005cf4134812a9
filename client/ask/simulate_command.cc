#include "client/ask/simulate_command.h"

#include <filesystem>
#include <set>

#include "client/ask/curve_file.h"
#include "client/text/text.h"

namespace tactus::client {
namespace {

std::string CheckPaths(const SimulateCommand& command) {
  std::vector<std::string> paths = {command.cluster_file, command.job_file,
                                    command.curve_file,   command.trace_file,
                                    command.tape_file,    command.cluster_output};
  if (!command.cluster_output.empty()) paths.push_back(CurvePathBeside(command.cluster_output));
  std::set<std::string> seen;
  for (const std::string& path : paths) {
    if (path.empty()) continue;
    if (seen.insert(std::filesystem::path(path).lexically_normal().string()).second) continue;
    return "simulate: found " + Printable(path) + " twice, allowed are different files";
  }
  return "";
}

}  // namespace

std::string CheckSimulate(const SimulateCommand& command) {
  const bool files = !command.cluster_file.empty();
  const bool other = command.random || !command.from.empty();
  if (files && other) return "simulate: found files and --from or --random, allowed is one";
  if (!other && command.job_file.empty()) {
    return "simulate: allowed are CLUSTER_FILE JOB_FILE, --from JOB, or --random";
  }
  if (command.validate_every && command.output != OutputFormat::kJson) {
    return "simulate: --validate-every needs -o json, which alone has the losses";
  }
  return CheckPaths(command);
}

}  // namespace tactus::client
