// The present, for the worker's shell. The engine below never asks for it.

#pragma once

#include "base/time.h"

namespace tactus::worker {

Instant Now();

// Seconds since 1970, for files that people read.
double WallSeconds();

// CPU time that the calling thread has used.
Duration ThreadCpuTime();

}  // namespace tactus::worker
