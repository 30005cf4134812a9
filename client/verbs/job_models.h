// A job's model files on their way to the nodes that need them.

#pragma once

#include "absl/status/status.h"
#include "client/api/client.h"
#include "client/render/screen.h"
#include "tactus/v1/spec.pb.h"

namespace tactus::client {

// Uploads the files that model.torchscript and model.loss name, where they are found on this
// machine, and puts sha256:HASH in their place. Names of files that are not here stay: the nodes
// may have them. Says what it uploads. Errors: of the files and of the calls.
absl::Status UploadModels(api::Client& client, const Screen& screen, v1::JobSpec* spec);

}  // namespace tactus::client
