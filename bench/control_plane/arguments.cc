#include "bench/control_plane/arguments.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace tactus::bench {

Arguments::Arguments(int argc, char** argv) {
  for (int i = 2; i < argc; i += 2) {
    const std::string name = argv[i];
    if (name.rfind("--", 0) != 0 || i + 1 == argc) {
      std::fprintf(stderr, "usage: %s MODE [--name value ...]; found %s\n", argv[0], argv[i]);
      std::exit(64);
    }
    values_[name.substr(2)] = argv[i + 1];
  }
}

std::string Arguments::Text(const std::string& name, const std::string& standard) const {
  const auto found = values_.find(name);
  return found == values_.end() ? standard : found->second;
}

std::uint64_t Arguments::Number(const std::string& name, std::uint64_t standard) const {
  const auto found = values_.find(name);
  return found == values_.end() ? standard : std::strtoull(found->second.c_str(), nullptr, 10);
}

void Say(const std::string& phase, const std::map<std::string, double>& values) {
  std::printf("{\"phase\": \"%s\"", phase.c_str());
  for (const auto& [name, value] : values) std::printf(", \"%s\": %.9g", name.c_str(), value);
  std::printf("}\n");
  std::fflush(stdout);
}

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace tactus::bench
