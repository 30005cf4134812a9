// How fast a member's link is, by the messages that come over it.

#pragma once

#include <cstddef>
#include <vector>

#include "base/time.h"
#include "threads/mutex.h"

namespace tactus::collective {

// What a mesh's thread has measured of each peer, until somebody asks. Any thread.
class LinkMeter {
 public:
  // members: of the mesh, this one among them, of whom nothing comes.
  explicit LinkMeter(std::size_t members) : peers_(members) {}

  // So many bytes of the peer's came in so long a time, > 0, while the member did nothing but wait
  // for bytes, and these of so many peers, >= 1: what had waited for the member says nothing of the
  // link, and those who send at once share it.
  void Add(std::size_t peer, std::size_t bytes, Duration time, std::size_t senders);

  // What the others together can bring the member at once, and forgets what it is from: the middle
  // one of what each of them says, the faster of two. So one peer that is slow to send makes nobody
  // look slow; whoever is behind a slow link itself has it slow from all. 0: of half of the others,
  // or more, nothing is known. [bytes/s]
  double Take();

 private:
  struct Came {
    double bytes = 0;
    double seconds = 0;
  };

  threads::Mutex mutex_;
  std::vector<Came> peers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tactus::collective
