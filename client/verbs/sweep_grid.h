// The jobs of a sweep: one for each combination of values that a job file's fields are to have.

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "client/yaml/yaml_file.h"
#include "tactus/v1/spec.pb.h"

namespace tactus::client {

inline constexpr std::size_t kSweepJobsMax = 256;

// A field and the values that it takes, in YAML. A name without dots may be the last word of a
// path: see FindField.
struct SweptField {
  std::string path{};
  std::vector<std::string> values{};
};

// "optimizer.sgd.learning_rate=0.01,0.03": commas within brackets, braces and quotes are the
// value's. Returns what is wrong, a line; empty: nothing.
std::string ParseSwept(const std::string& text, SweptField* swept);

// Makes the path whole: of a name without dots that is no field of a job itself, but the last word
// of the path of exactly one that the file sets. Returns what is wrong, a line; empty: nothing.
std::string FindField(const v1::JobSpec& spec, SweptField* swept);

// Every combination, the last field's values the fastest. Requires: each has one value or more.
std::vector<std::vector<Override>> Grid(const std::vector<SweptField>& fields);

// A value as a label may have it: what it may not have becomes "_", and it ends after 63
// characters.
std::string LabelOf(const std::string& value);

}  // namespace tactus::client
