// What of a worker's Start names a file by its content.

#pragma once

#include <string>
#include <vector>

#include "tactus/v1/worker.pb.h"

namespace tactus::agent {

// A field that said "sha256:HASH" and is to say the path of that file.
struct BlobReference {
  std::string field{};   // "model.torchscript", for errors
  std::string sha256{};  // what stood behind "sha256:", unchecked
  void (*set_path)(tactus::v1::Start& start, const std::string& path) = nullptr;
};

// The checkpoint, and of the specification the model and the loss.
std::vector<BlobReference> BlobReferences(const tactus::v1::Start& start);

}  // namespace tactus::agent
