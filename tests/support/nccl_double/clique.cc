#include "tests/support/nccl_double/clique.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "tests/support/cuda_double/cuda_double.h"

namespace tactus::nccl_double {
namespace {

const char* NameOf(Kind kind) {
  switch (kind) {
    case Kind::kAllReduce:
      return "ncclAllReduce";
    case Kind::kReduce:
      return "ncclReduce";
    case Kind::kAllGather:
      return "ncclAllGather";
    case Kind::kBroadcast:
      return "ncclBroadcast";
    case Kind::kSend:
      return "ncclSend";
    case Kind::kReceive:
      return "ncclRecv";
  }
  return "";
}

std::string TextOf(Kind kind, std::size_t bytes, int partner) {
  return std::string(NameOf(kind)) + " of " + std::to_string(bytes) + " bytes, partner " +
         std::to_string(partner);
}

bool IsMessage(const Task& task) { return task.kind == Kind::kSend || task.kind == Kind::kReceive; }

std::pair<int, int> WayOf(const Member& member, const Task& task) {
  if (task.kind == Kind::kSend) return {member.rank, task.partner};
  return {task.partner, member.rank};
}

Meeting& MeetingOf(Member& member, const Task& task) {
  if (!IsMessage(task)) return member.clique->collectives[task.number];
  const auto [from, to] = WayOf(member, task);
  return member.clique->messages[{from, to, task.number}];
}

bool AllHaveCome(const Clique& clique, const Meeting& meeting, bool message) {
  if (meeting.come.size() != (message ? 2 : static_cast<std::size_t>(clique.size))) return false;
  for (const auto& [rank, task] : meeting.come) {
    if (clique.members.at(rank)->aborted) return false;
  }
  return true;
}

// Every member's sum in rank order.
void Sum(const Meeting& meeting) {
  std::vector<float> sum(meeting.bytes / sizeof(float));
  bool first = true;
  for (const auto& [rank, task] : meeting.come) {
    std::vector<float> own(sum.size());
    if (!own.empty()) std::memcpy(own.data(), task.from, meeting.bytes);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = first ? own[i] : sum[i] + own[i];
    first = false;
  }
  // Of one at a root the others' memory may hold anything: whoever reads it is found out.
  const std::vector<float> anything(sum.size(), std::numeric_limits<float>::quiet_NaN());
  for (const auto& [rank, task] : meeting.come) {
    const bool gets = meeting.kind == Kind::kAllReduce || rank == meeting.partner;
    if (!sum.empty()) std::memcpy(task.to, (gets ? sum : anything).data(), meeting.bytes);
  }
}

void Gather(const Meeting& meeting) {
  std::vector<std::byte> all;
  for (const auto& [rank, task] : meeting.come) {
    const auto* const own = static_cast<const std::byte*>(task.from);
    all.insert(all.end(), own, own + meeting.bytes);
  }
  for (const auto& [rank, task] : meeting.come) std::memcpy(task.to, all.data(), all.size());
}

void Perform(const Meeting& meeting, bool message) {
  const cuda_double::OpenMemory open;
  if (!message && meeting.kind == Kind::kAllGather) return Gather(meeting);
  if (!message && meeting.kind != Kind::kBroadcast) return Sum(meeting);
  const void* from = nullptr;
  for (const auto& [rank, task] : meeting.come) {
    if (message ? task.kind == Kind::kSend : rank == meeting.partner) from = task.from;
  }
  for (const auto& [rank, task] : meeting.come) {
    if (task.to != nullptr && task.to != from) std::memmove(task.to, from, meeting.bytes);
  }
}

// What an abort in the middle may leave.
void Tear(const Batch& batch) {
  const cuda_double::OpenMemory open;
  for (const Task& task : batch.tasks) {
    if (task.kind != Kind::kAllReduce) continue;
    float* const values = static_cast<float*>(task.to);
    const std::size_t length = task.bytes / sizeof(float);
    const float members = static_cast<float>(batch.member->clique->size);
    for (std::size_t i = length / 2; i < length; ++i) values[i] *= members;
  }
}

// Whether all of a task's memory is registered with its member; to have some of it is an error.
bool IsRegistered(Member& member, const Task& task) {
  const auto known = [&](const void* memory) {
    return std::ranges::any_of(member.registrations, [&](const auto& registration) {
      return registration->Holds(memory, task.bytes);
    });
  };
  const bool from = task.from != nullptr && known(task.from);
  const bool to = task.to != nullptr && known(task.to);
  if (task.from != nullptr && task.to != nullptr && from != to) {
    Complain(member, std::string(NameOf(task.kind)) + " of which one buffer alone is registered");
  }
  return from || to;
}

}  // namespace

World& TheWorld() {
  static World* const world = new World;  // threads may use it to the end of the process
  return *world;
}

void Complain(Member& member, const std::string& what) {
  TheWorld().complaints.push_back("rank " + std::to_string(member.rank) + ": " + what);
  for (const auto& [rank, other] : member.clique->members) {
    if (other->error == ncclSuccess) other->error = ncclInvalidUsage;
  }
}

void Number(Member& member, Task& task) {
  task.number = IsMessage(task) ? member.messages[WayOf(member, task)]++ : member.collectives++;
  Meeting& meeting = MeetingOf(member, task);
  const bool first = meeting.come.empty() && meeting.bytes == 0;
  const Kind kind = IsMessage(task) ? Kind::kSend : task.kind;
  const int partner = IsMessage(task) ? WayOf(member, task).second : task.partner;
  const bool registered = IsRegistered(member, task);
  if (first) {
    meeting.registered = registered;
    meeting.kind = kind;
    meeting.bytes = task.bytes;
    meeting.partner = partner;
  } else if (meeting.kind != kind || meeting.bytes != task.bytes || meeting.partner != partner) {
    Complain(member, TextOf(task.kind, task.bytes, task.partner) + " where another called " +
                         TextOf(meeting.kind, meeting.bytes, meeting.partner));
  } else if (meeting.registered != registered) {
    Complain(member, std::string(NameOf(task.kind)) + " in memory that is " +
                         (registered ? "" : "not ") + "registered, unlike another's");
  }
}

bool Attempt(Batch& batch) {
  Member& member = *batch.member;
  if (member.aborted) {
    if (TheWorld().tears && batch.begun) Tear(batch);
    --member.running;
    return true;
  }
  if (!batch.begun) {
    if (TheWorld().stalled.contains(member.rank)) return false;
    if (batch.tries_left-- > 0) return false;
    batch.begun = true;
    for (const Task& task : batch.tasks) MeetingOf(member, task).come[member.rank] = task;
  }
  if (member.error != ncclSuccess) return false;
  bool done = true;
  for (const Task& task : batch.tasks) {
    Meeting& meeting = MeetingOf(member, task);
    if (!meeting.done && AllHaveCome(*member.clique, meeting, IsMessage(task))) {
      Perform(meeting, IsMessage(task));
      meeting.done = true;
    }
    done = done && meeting.done;
  }
  if (done) --member.running;
  return done;
}

}  // namespace tactus::nccl_double
