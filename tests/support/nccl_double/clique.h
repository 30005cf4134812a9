// The state of the double of NCCL: communicators of one unique id, and how their calls meet.

#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "tests/support/nccl_double/nccl.h"

namespace tactus::nccl_double {

enum class Kind { kAllReduce, kReduce, kAllGather, kBroadcast, kSend, kReceive };

// One call of a member, in memory that lives until it is done or aborted.
struct Task {
  Kind kind = Kind::kAllReduce;
  const void* from = nullptr;
  void* to = nullptr;
  std::size_t bytes = 0;
  int partner = 0;           // the root, or the peer
  std::uint64_t number = 0;  // collectives of the member before it, or messages between the two
};

// Memory that a member has registered.
struct Registration {
  const std::byte* begin = nullptr;
  std::size_t bytes = 0;

  bool Holds(const void* memory, std::size_t length) const {
    const auto* const first = static_cast<const std::byte*>(memory);
    return first >= begin && first + length <= begin + bytes;
  }
};

struct Member;

// What one kernel does: the calls of one group, at once.
struct Batch {
  std::shared_ptr<Member> member = nullptr;
  cudaStream_t stream = nullptr;
  std::vector<Task> tasks = {};
  int tries_left = 0;
  bool begun = false;
};

// Where the members' calls of one number meet; a message is met by two.
struct Meeting {
  Kind kind = Kind::kAllReduce;
  std::size_t bytes = 0;
  int partner = 0;
  bool registered = false;        // all of the memory is
  std::map<int, Task> come = {};  // by rank
  bool done = false;
};

struct Clique {
  int size = 0;
  std::map<int, std::shared_ptr<Member>> members = {};  // by rank, also those that are freed
  std::map<std::uint64_t, Meeting> collectives = {};
  std::map<std::tuple<int, int, std::uint64_t>, Meeting> messages = {};  // from, to, number
};

struct Member {
  int rank = 0;
  std::shared_ptr<Clique> clique = nullptr;  // a circle, cut by Reset
  ncclResult_t error = ncclSuccess;          // asynchronous
  int polls_left = 0;                        // until it may say that the call is done
  bool met = false;
  bool finalizing = false;
  bool aborted = false;
  std::uint64_t collectives = 0;
  std::map<std::pair<int, int>, std::uint64_t> messages = {};  // from, to
  std::vector<std::shared_ptr<Batch>> unqueued = {};
  int running = 0;  // batches in streams
  std::vector<std::unique_ptr<Registration>> registrations = {};
};

struct Fault {
  int at = 0;  // the call, by the count of calls
  bool hangs = false;
  ncclResult_t error = ncclSuccess;
};

// One for the process; everything under its lock, which is taken after that of the runtime's double
// and never before.
struct World {
  std::mutex mutex{};
  std::condition_variable changed{};
  int version = NCCL_VERSION_CODE;
  int polls = 1;
  std::uint64_t ids = 0;
  std::map<std::string, std::shared_ptr<Clique>> cliques{};  // by unique id
  std::set<ncclComm_t> live{};
  std::vector<std::unique_ptr<ncclComm>> all{};  // freed ones too, so that no address comes twice
  std::map<std::string, int> calls{};
  std::map<std::string, Fault> faults{};
  std::set<int> stalled{};
  std::set<int> hangs_in_abort{};
  std::map<int, int> slow{};
  bool tears = false;
  std::set<int> does_not_register{};
  std::vector<std::string> complaints{};
  int hanging = 0;
  int releases = 0;
  int aborts = 0;          // begun
  int aborts_to_meet = 0;  // before any of them ends
};
World& TheWorld();

// These want the world's lock.

// Notes what was done wrong; the whole clique has an error from then on.
void Complain(Member& member, const std::string& what);

// Gives a task its number. A collective that does not fit what others have called is complained of.
void Number(Member& member, Task& task);

// Goes on with a batch. True: it is done, or was aborted.
bool Attempt(Batch& batch);

}  // namespace tactus::nccl_double

struct ncclComm {
  std::shared_ptr<tactus::nccl_double::Member> member = nullptr;
};
