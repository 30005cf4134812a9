// Which system calls a worker may make, in lists.

#pragma once

#include <span>
#include <string_view>

namespace tactus::box {

// What programs, Python, libtorch, CUDA and NCCL live by. Names that this architecture or library
// does not know are passed over. What is in neither list is answered ENOSYS, by which libraries
// know to do without a newer call.
std::span<const std::string_view> AllowedCalls();

// What reaches beyond the process: other processes, the kernel's own state, the tree of files,
// namespaces, keys. Answered EPERM, as one without rights would be.
std::span<const std::string_view> RefusedCalls();

}  // namespace tactus::box
