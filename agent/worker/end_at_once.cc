#include "agent/worker/end_at_once.h"

#include <cstdlib>
#include <iostream>

namespace tactus::worker {

void EndAtOnce(const std::string& reason) {
  std::cerr << "tactus-worker: " << reason << std::endl;
  std::_Exit(kExitHung);
}

}  // namespace tactus::worker
