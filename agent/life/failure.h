// What a worker's world answers when something comes to nothing.

#pragma once

#include <string>
#include <variant>

namespace tactus::life {

// It ends the life, whose last word it is, unless it is of the group alone.
struct Failure {
  std::string field{};  // of the job file; empty: of none
  std::string message{};
  bool transient = false;  // a device, a file or a connection failed, not the job
  // The group fell apart, which `message` says the reason of: the life can go on in another one.
  bool of_group = false;
};

template <typename Value>
using OrFailure = std::variant<Value, Failure>;

}  // namespace tactus::life
