// bench_control_plane: the load generator of bench/control-plane, which says how it is used.

#include <unistd.h>

#include <cstdio>
#include <map>
#include <string>

#include "bench/control_plane/load.h"

namespace tactus::bench {
namespace {

int Main(int argc, char** argv) {
  const std::map<std::string, int (*)(const Arguments&)> modes = {{"sessions", RunSessions},
                                                                  {"echo-server", RunEchoServer},
                                                                  {"echo", RunEchoLoad},
                                                                  {"submit", RunSubmits},
                                                                  {"ready", RunReady}};
  const auto mode = argc < 2 ? modes.end() : modes.find(argv[1]);
  if (mode == modes.end()) {
    std::fprintf(stderr, "usage: %s sessions|echo-server|echo|submit|ready [--name value ...]\n",
                 argv[0]);
    return 64;
  }
  return mode->second(Arguments(argc, argv));
}

}  // namespace
}  // namespace tactus::bench

// Without destructors: thousands of streams are open, and nobody waits for their orderly end.
int main(int argc, char** argv) { ::_exit(tactus::bench::Main(argc, argv)); }
