// The files that a job's specification names: the fields that spec.proto marks so.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tactus/v1/spec.pb.h"

namespace tactus::runtime {

// What stands before the SHA-256 of a file that was uploaded, in the place of a path.
inline constexpr std::string_view kUploaded = "sha256:";

// Whether a text that may be a word instead, such as the name of a built-in loss, names a file.
bool IsFile(std::string_view text);

// A field that has a path or an uploaded file's hash.
struct NamedFile {
  std::string field;  // "data.numpy.more_inputs[0]"
  std::string file;
};

// In the order of the fields. What is a word there, such as the name of a built-in loss, is not
// among them. Any thread.
std::vector<NamedFile> FilesOf(const v1::JobSpec& spec);

// The field that FilesOf calls so becomes `file`. Requires: there is one.
void SetFile(v1::JobSpec& spec, const std::string& field, const std::string& file);

}  // namespace tactus::runtime
