// What a module's forward gives, where that is more than one tensor. Private to this folder.

#pragma once

#include <torch/script.h>

#include <stdexcept>
#include <string>

namespace tactus::model {

// The outputs have no such member; what they have is said.
class NoSuchOutput : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The member of a dict by its key, of a named tuple by its field, of a tuple or list by its place,
// from 0. Throws NoSuchOutput.
c10::IValue OutputOf(const c10::IValue& outputs, const std::string& name);

// The same with every bfloat16 tensor as float32, in tuples, lists and dicts of them, too.
c10::IValue InFloat32(const c10::IValue& outputs);

// For a person: "float32 [2, 3]", "a tuple of 2", "a dict of logits, hidden", "a None".
std::string DescribeOutputs(const c10::IValue& outputs);

}  // namespace tactus::model
