// `tactus resume`.
#include "client/verbs/answers.h"

namespace tactus::client {

std::unique_ptr<Verb> MakeResume() {
  return MakeCall("resume", "Put a paused job back into the queue; it goes on from its checkpoint",
                  &api::Client::ResumeJob);
}

}  // namespace tactus::client
