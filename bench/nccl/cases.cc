#include "bench/nccl/cases.h"

#include <algorithm>
#include <string>
#include <vector>

namespace tactus::bench::nccl {
namespace {

using cuda::Stream;
using cuda::nccl::Communicator;

constexpr std::size_t kFew = 1024;  // [floats] where a call's own time is measured
constexpr std::size_t kTimes = 100;
constexpr std::size_t kTimesOfMany = 20;
// What NCCL keeps for the life of a process of each group that did not meet, where this process had
// made its id: the thread that awaits the others' addresses, which no abort ends (bootstrapRoot),
// its sockets, and what its communicator had of the device. As measured on an H100 with 2.28.9.
constexpr Held kKept{.threads = 1, .files = 3, .device_bytes = 1.5 * (1 << 20)};
// What the driver may take meanwhile without anybody's leaking: one block of its own.
constexpr double kDeviceBytesSlack = 4 << 20;

// A case's steps, with a failure of any of them as its outcome.
template <class Steps>
Outcome Tried(const Steps& steps) {
  Outcome outcome;
  try {
    steps(outcome);
    outcome.passed = true;
  } catch (const Unexpected& unexpected) {
    outcome.said = unexpected.reason;
  }
  return outcome;
}

Trial::Call Reduction(std::span<float> buffer) {
  return [buffer](Communicator& communicator, Stream stream) {
    return communicator.AllReduceSum(buffer, stream);
  };
}

Trial::Call Broadcasting(std::span<float> buffer) {
  return [buffer](Communicator& communicator, Stream stream) {
    return communicator.Broadcast(buffer, 0, stream);
  };
}

void Add(Outcome& outcome, const std::string& name, const Trial::Took& took) {
  outcome.figures.push_back({name + "_queued_us", took.queued_us});
  outcome.figures.push_back({name + "_done_us", took.done_us});
}

void RequireAll(const std::vector<float>& values, float expected, const std::string& what) {
  for (const float value : values) {
    if (value == expected) continue;
    throw Unexpected{what + " gave " + std::to_string(value) + ", not " + std::to_string(expected)};
  }
}

double MeetingUs(Trial& trial, const Setting& setting) {
  const Instant begun = setting.now();
  trial.Meet();
  return 1e6 * ToSeconds(setting.now() - begun);
}

// Ends as it must where the other member does not come; throws where it does not.
void MeetInVain(const Setting& setting) {
  Trial trial(setting, 1);
  bool met = false;
  try {
    trial.Meet();
    met = true;
  } catch (const Unexpected&) {
    // As it must.
  }
  if (met) throw Unexpected{"a group of two has met without the other"};
  trial.Abort();
}

void RequireNoGrowth(const Held& before, const Held& after, int groups) {
  const auto require = [groups](double was, double is, double kept, double slack,
                                const char* what) {
    if (is <= was + groups * kept + slack) return;
    throw Unexpected{std::string("leaks ") + what + ": " + std::to_string(was) + " before, " +
                     std::to_string(is) + " after " + std::to_string(groups) + " groups"};
  };
  require(before.threads, after.threads, kKept.threads, 0, "threads");
  require(before.files, after.files, kKept.files, 0, "files");
  require(before.device_bytes, after.device_bytes, kKept.device_bytes, kDeviceBytesSlack,
          "device memory");
}

}  // namespace

Outcome Alone(const Setting& setting) {
  return Tried([&](Outcome& outcome) {
    {
      Trial trial(setting, kFew);
      outcome.figures.push_back({"init_us", MeetingUs(trial, setting)});
      trial.Write(std::vector<float>(kFew, 3));
      Add(outcome, "first_all_reduce", trial.Run("all-reduce", Reduction(trial.buffer(kFew))));
      Add(outcome, "all_reduce", trial.Repeat("all-reduce", Reduction(trial.buffer(kFew)), kTimes));
      Add(outcome, "broadcast",
          trial.Repeat("broadcast", Broadcasting(trial.buffer(kFew)), kTimes));
      RequireAll(trial.Read(kFew), 3, "a group of one");
      outcome.figures.push_back({"leave_us", trial.Leave()});
    }
    Setting again = setting;
    const cuda::nccl::MadeUniqueId id = cuda::nccl::MakeUniqueId();
    if (!id.id) throw Unexpected{id.reason};
    again.place.id = *id.id;
    Trial trial(again, kFew);
    outcome.figures.push_back({"second_init_us", MeetingUs(trial, again)});
    outcome.figures.push_back({"abort_us", trial.Abort()});
    outcome.said = "calls of a group of one";
  });
}

Outcome Incomplete(const Setting& setting, const std::function<Held()>& held) {
  return Tried([&](Outcome& outcome) {
    Held before;
    double longest_us = 0;
    for (int i = 0; i < kIncompleteTimes; ++i) {
      if (i == kIncompleteBefore) before = held();
      Setting each = setting;
      const cuda::nccl::MadeUniqueId id = cuda::nccl::MakeUniqueId();
      if (!id.id) throw Unexpected{id.reason};
      each.place.id = *id.id;
      const Instant begun = setting.now();
      MeetInVain(each);
      longest_us = std::max(longest_us, 1e6 * ToSeconds(setting.now() - begun));
    }
    const Held after = held();
    outcome.figures = {{"longest_us", longest_us},
                       {"threads_before", before.threads},
                       {"threads_after", after.threads},
                       {"files_before", before.files},
                       {"files_after", after.files},
                       {"device_bytes_grown", after.device_bytes - before.device_bytes}};
    RequireNoGrowth(before, after, kIncompleteTimes - kIncompleteBefore);
    outcome.said = std::to_string(kIncompleteTimes) + " groups ended by their limit";
  });
}

Outcome Refused(const Setting& setting) {
  return Tried([&](Outcome& outcome) {
    const Instant begun = setting.now();
    std::string reason;
    try {
      Trial trial(setting, 1);
      trial.Meet();
    } catch (const Unexpected& refused) {
      reason = refused.reason;
    }
    const Duration took = setting.now() - begun;
    outcome.figures = {{"refused_us", 1e6 * ToSeconds(took)}};
    if (reason.empty()) throw Unexpected{"two members met on one device"};
    if (took >= setting.limit) throw Unexpected{"refused by its limit alone: " + reason};
    outcome.said = reason;
  });
}

Outcome Pair(const Setting& setting) {
  return Tried([&](Outcome& outcome) {
    const int rank = setting.place.rank;
    const std::size_t many = setting.long_floats;
    Trial trial(setting, many);
    outcome.figures.push_back({"init_us", MeetingUs(trial, setting)});
    trial.Write(std::vector<float>(kFew, static_cast<float>(rank + 1)));
    Add(outcome, "first_all_reduce", trial.Run("all-reduce", Reduction(trial.buffer(kFew))));
    RequireAll(trial.Read(kFew), 3, "the sum of 1 and 2");
    trial.Write(std::vector<float>(kFew, static_cast<float>(rank)));
    Add(outcome, "broadcast", trial.Run("broadcast", Broadcasting(trial.buffer(kFew))));
    RequireAll(trial.Read(kFew), 0, "the broadcast of 0");
    trial.Write({static_cast<float>(10 + rank), -1});
    const std::span<std::byte> bytes = std::as_writable_bytes(trial.buffer(2));
    Add(outcome, "exchange", trial.Run("exchange", [&](Communicator& communicator, Stream stream) {
      return communicator.Exchange(1 - rank, bytes.first(4), bytes.last(4), stream);
    }));
    RequireAll({trial.Read(2)[1]}, static_cast<float>(11 - rank), "the exchange");
    trial.Write(std::vector<float>(many));  // sums of zeros stay finite
    Add(outcome, "all_reduce", trial.Repeat("all-reduce", Reduction(trial.buffer(kFew)), kTimes));
    const Trial::Took took =
        trial.Repeat("all-reduce", Reduction(trial.buffer(many)), kTimesOfMany);
    outcome.figures.push_back(
        {"all_reduce_bytes_per_s", 1e6 * static_cast<double>(many * sizeof(float)) / took.done_us});
    outcome.figures.push_back({"leave_us", trial.Leave()});
    outcome.said = "sums, broadcasts and exchanges are right";
  });
}

Outcome Bereaved(const Setting& setting, const std::function<void()>& kill) {
  return Tried([&](Outcome& outcome) {
    Trial trial(setting, kFew);
    trial.Meet();
    trial.Run("all-reduce", Reduction(trial.buffer(kFew)));
    kill();
    const Instant begun = setting.now();
    try {
      trial.Run("all-reduce", Reduction(trial.buffer(kFew)));
    } catch (const Unexpected& ended) {
      outcome.said = ended.reason;
    }
    if (outcome.said.empty()) throw Unexpected{"a collective with a dead peer was done"};
    outcome.figures.push_back({"noticed_us", 1e6 * ToSeconds(setting.now() - begun)});
    outcome.figures.push_back({"abort_us", trial.Abort()});
  });
}

}  // namespace tactus::bench::nccl
