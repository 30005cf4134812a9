// The environment that a worker finds.

#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace tactus::agent {

// Where a worker runs, as far as it is known at its start: its rank is not.
struct WorkerPlace {
  std::string job_id{};
  std::string control_socket{};
  std::size_t local_rank = 0;        // position of its device in the agent's list
  std::size_t local_world_size = 1;  // devices of the agent
  bool program = false;  // of the user's: of a group as torchrun has it all is said, or nothing
  unsigned threads = 0;  // for matrix products on the host; 0: leave it to the libraries
  std::string blas_kernels{};  // of OpenBLAS, unless OPENBLAS_CORETYPE is inherited; empty: its own
  std::string device{};        // as it calls it: "cpu", "cuda:0"
  std::string gpu_uuid{};      // of its GPU, the only one that it is to see; empty: none
  std::string
      network_interface{};  // towards other workers, for NCCL; empty: it is to choose by itself
  std::string scratch{};    // a folder for what it throws away; empty: the system's
};

// Of `inherited` ("NAME=value") what programs are known to live by (paths, languages, CUDA, NCCL,
// PyTorch, threads: kInherited) and what `more` names, a name or with a * behind its beginning; of
// the former none whose name says that it is secret. With the place under TACTUS_ and, but for a
// program, the names that torchrun uses. A GPU is given by CUDA_VISIBLE_DEVICES, so that it is
// cuda:0 to the worker whatever order CUDA has the host's in. The interface is told to NCCL unless
// NCCL_SOCKET_IFNAME is inherited.
std::vector<std::string> WorkerEnvironment(const std::vector<std::string>& inherited,
                                           const std::vector<std::string>& more,
                                           const WorkerPlace& place);

}  // namespace tactus::agent
