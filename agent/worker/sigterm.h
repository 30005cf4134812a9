// SIGTERM to a worker: from its agent it is the end, from anybody else a wish.

#pragma once

namespace tactus::worker {

// Until then SIGTERM ends the process. From now on it does so only when the parent sends it, who
// has its reasons; of others it is kept, for the one who asks. Service managers and schedulers send
// it to all processes of a unit or a step at once, also to those whose parent would end them in
// order.
void KeepSigterm();

// One was kept. Any thread.
bool SigtermKept();

}  // namespace tactus::worker
