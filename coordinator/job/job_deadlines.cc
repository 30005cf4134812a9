#include "coordinator/job/job_deadlines.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tactus::job {

Duration RoundMultiple::Of(double round_seconds) const {
  const double seconds = std::ceil(std::min(rounds * round_seconds, ToSeconds(most)));
  return std::clamp(Duration(Seconds(seconds)), least, most);
}

Duration ValidationTime(const ValidationProgress& made) {
  const double mean = made.count > 0 ? made.seconds / static_cast<double>(made.count) : 0;
  return Seconds(std::ceil(std::max(mean, made.newest ? made.newest->seconds : 0)));
}

Duration EdgeTime(const JobRecord& record) {
  constexpr double kSelectionMost = 24 * 3600;
  const double selection = std::min(std::max(record.selection_seconds, 0.0), kSelectionMost);
  return ValidationTime(record.progress.validation) + Seconds(std::ceil(selection));
}

std::vector<Rung> LadderOf(const JobDeadlines& deadlines, const LadderFacts& facts) {
  const auto observed = [&](std::string name, const RoundMultiple& of, std::string guards) {
    return Rung{.name = std::move(name),
                .value = of.Of(facts.round_seconds),
                .round_seconds = facts.round_seconds,
                .of = of,
                .guards = std::move(guards)};
  };
  Rung silence =
      observed("silence", deadlines.silence,
               "members whose node is not heard, while others are and no newer round came nor a "
               "validation; one, and a choice of samples, has its time besides: lost");
  silence.value += facts.edge;
  return {
      observed("look", deadlines.look,
               "no newer round: all members are asked who waits for whom, and who stands still is "
               "named"),
      observed("regroup", deadlines.regroup,
               "a member of a group that fell apart which says nothing: ended, and the others go "
               "on without it"),
      {.name = "unheard",
       .value = facts.unheard,
       .guards = "an agent that is not heard: its node gets no new work, its workers train on"},
      std::move(silence),
      observed("still", deadlines.still,
               "a member that is known to stand still: lost, and its process is ended"),
      {.name = "start",
       .value = deadlines.start,
       .guards = "workers that load model and data and form a group"},
      observed("stall", deadlines.stall,
               "a member that gets nothing done, or a link through which nothing comes: lost"),
      {.name = "hold", .value = facts.hold, .guards = "a job of which no node is heard: lost"},
  };
}

}  // namespace tactus::job
