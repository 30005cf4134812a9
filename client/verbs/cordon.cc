// `tactus cordon`.
#include "client/verbs/answers.h"

namespace tactus::client {

std::unique_ptr<Verb> MakeCordon() {
  return MakeCall("cordon", "Start no new workers on a node; those that run go on",
                  &api::Client::CordonNode);
}

}  // namespace tactus::client
