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

constexpr std::size_t kRestMax = 64 << 10;

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
      std::error_code ignored;
      if (fs::file_size(path, ignored) < log.read && !ignored) log.read = 0;  // it was begun anew
      std::ifstream file(path, std::ios::binary);
      file.seekg(static_cast<std::streamoff>(log.read));
      const std::string text((std::istreambuf_iterator<char>(file)),
                             std::istreambuf_iterator<char>());
      log.read += text.size();
      log.rest += text;
      if (all && !log.rest.empty() && !log.rest.ends_with('\n')) log.rest += '\n';
      std::size_t begin = 0;
      for (std::size_t end = log.rest.find('\n'); end != std::string::npos;
           end = log.rest.find('\n', begin)) {
        const std::string line = LastState(log.rest.substr(begin, end - begin));
        lines += "worker " + worker + " | " + Printable(line) + "\n";
        begin = end + 1;
      }
      log.rest.erase(0, begin);
      // Of what is written over and over without an end, the last states.
      if (log.rest.size() > kRestMax) log.rest.erase(0, log.rest.size() - kRestMax);
    }
  }
  return lines;
}

}  // namespace tactus::client
