// `tactus pause`.
#include "client/verbs/answers.h"

namespace tactus::client {

std::unique_ptr<Verb> MakePause() {
  return MakeCall("pause", "Take a job's devices at the next round's edge; it keeps a checkpoint",
                  &api::Client::PauseJob);
}

}  // namespace tactus::client
