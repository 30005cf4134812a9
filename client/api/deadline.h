// The deadline of a call of the client, from now on.

#pragma once

#include <grpcpp/client_context.h>

#include <chrono>

#include "base/time.h"

namespace tactus::api {

inline void SetTimeout(Duration timeout, grpc::ClientContext* context) {
  context->set_deadline(std::chrono::system_clock::now() +
                        std::chrono::duration_cast<std::chrono::microseconds>(timeout));
}

}  // namespace tactus::api
