// SIGTERM to a worker: from its agent it is the end, from anybody else a wish.

#pragma once

#include <cstdint>

namespace tactus::worker {

// Until then SIGTERM ends the process. From now on it does so only when the parent sends it, who
// has its reasons; of others it is kept, for the one who asks. Service managers and schedulers send
// it to all processes of a unit or a step at once, also to those whose parent would end them in
// order.
void KeepSigterm();

// How many were kept. Of several workers in one process each asks what came since it began: one
// that comes later is not asked to end by what others were told. Any thread.
std::uint32_t SigtermsKept();

}  // namespace tactus::worker
