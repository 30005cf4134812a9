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
};

// The checkpoint, and the files of the specification.
std::vector<BlobReference> BlobReferences(const tactus::v1::Start& start);

// The reference's field becomes the path.
void SetPath(tactus::v1::Start& start, const BlobReference& reference, const std::string& path);

}  // namespace tactus::agent
