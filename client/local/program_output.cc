#include "client/local/program_output.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <vector>

#include "client/text/text.h"

namespace tactus::client {
namespace {

namespace fs = std::filesystem;

// The folders of one; none where it is not there, or goes just now.
std::vector<fs::path> Within(const fs::path& folder) {
  std::error_code ignored;
  std::vector<fs::path> paths;
  for (fs::directory_iterator at(folder, ignored), end; !ignored && at != end;
       at.increment(ignored)) {
    paths.push_back(at->path());
  }
  return paths;
}

// "worker-3.log" is of worker 3; empty: it is of none.
std::string WorkerOf(const fs::path& path) {
  const std::string stem = path.stem().string();
  const bool log = path.extension() == ".log" && stem.starts_with("worker-");
  return log ? stem.substr(sizeof("worker-") - 1) : "";
}

std::string LastState(const std::string& line) {
  const std::string shown = line.ends_with('\r') ? line.substr(0, line.size() - 1) : line;
  return shown.substr(shown.rfind('\r') + 1);
}

}  // namespace

std::string ProgramOutput::TakeLines(bool all) {
  std::string lines;
  for (const fs::path& job : Within(fs::path(folder_) / "jobs")) {
    for (const fs::path& path : Within(job)) {
      const std::string worker = WorkerOf(path);
      if (worker.empty()) continue;
      Log& log = logs_[path.string()];
      std::ifstream file(path, std::ios::binary);
      file.seekg(static_cast<std::streamoff>(log.read));
      const std::string text((std::istreambuf_iterator<char>(file)),
                             std::istreambuf_iterator<char>());
      log.read += text.size();
      log.rest += text;
      if (all && !log.rest.empty() && !log.rest.ends_with('\n')) log.rest += '\n';
      for (std::size_t end = log.rest.find('\n'); end != std::string::npos;
           end = log.rest.find('\n')) {
        lines += "worker " + worker + " | " + Printable(LastState(log.rest.substr(0, end))) + "\n";
        log.rest.erase(0, end + 1);
      }
    }
  }
  return lines;
}

}  // namespace tactus::client
