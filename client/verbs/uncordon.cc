// `tactus uncordon`.
#include "client/verbs/answers.h"

namespace tactus::client {

std::unique_ptr<Verb> MakeUncordon() {
  return MakeCall("uncordon", "Take cordon and drain back", &api::Client::UncordonNode);
}

}  // namespace tactus::client
