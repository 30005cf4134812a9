#include "coordinator/job/schedule.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

namespace tactus::job {
namespace {

bool Tolerates(const std::vector<std::string>& tolerations, const std::string& taint) {
  const std::string key = taint.substr(0, taint.find('='));
  return std::ranges::any_of(tolerations, [&](const std::string& toleration) {
    return toleration == taint || toleration == key;
  });
}

bool IsUseful(const HeldDevice& device, const JobSettings& settings, DeviceKind standard) {
  return device.usable && device.traits != nullptr &&
         Accepts(settings, device.kind, *device.traits, standard);
}

std::size_t Useful(const std::vector<HeldDevice>& devices, const JobSettings& settings,
                   DeviceKind standard) {
  return static_cast<std::size_t>(std::ranges::count_if(
      devices, [&](const HeldDevice& device) { return IsUseful(device, settings, standard); }));
}

// One making of a schedule.
class Scheduler {
 public:
  explicit Scheduler(const ScheduleView& view)
      : view_(view), taken_(view.free.size()), kept_(view.free.size()), all_(view.free.size()) {
    std::iota(all_.begin(), all_.end(), std::size_t{0});
    gpus_first_ = all_;
    // Not the one of std::ranges, whose result clang 14 cannot read.
    std::stable_partition(gpus_first_.begin(), gpus_first_.end(), [&](std::size_t index) {
      return view.free[index].kind == DeviceKind::kCuda;
    });
  }

  Schedule Run() {
    for (const WaitingJob& job : view_.waiting) {
      Consider(job);
    }
    Extend();
    // Growing may end a group, too: only when nobody is being moved already.
    if (schedule_.displaced.empty() && schedule_.reductions.empty()) Grow();
    return std::move(schedule_);
  }

 private:
  struct Granted {
    const WaitingJob* job = nullptr;
    std::vector<std::size_t> indices{};  // into view.free
    bool may_grow = false;               // not lent: it stands before the head
    std::size_t next = 0;                // no device before this place of its order is left for it
  };

  bool Fits(const JobSettings& settings, std::size_t index) const {
    const FreeDevice& device = view_.free[index];
    return !taken_[index] && Accepts(settings, device.kind, *device.traits, view_.standard);
  }

  // The order in which a job takes free devices.
  const std::vector<std::size_t>& OrderFor(const JobSettings& settings) const {
    return settings.device == DeviceKind::kAny ? gpus_first_ : all_;
  }

  std::vector<std::size_t> Fitting(const JobSettings& settings) const {
    std::vector<std::size_t> fitting;
    for (const std::size_t index : OrderFor(settings)) {
      if (Fits(settings, index)) fitting.push_back(index);
    }
    return fitting;
  }

  void Consider(const WaitingJob& job) {
    std::vector<std::size_t> fitting = Fitting(*job.settings);
    const bool first = schedule_.head.value == 0;
    const bool lends = schedule_.head == view_.patient;
    // Behind the head, what it will have is not lent at all, and what it could use only when it has
    // waited: nodes that join one by one would otherwise be given away one by one, and it starve.
    if (!first) {
      std::erase_if(fitting, [&](std::size_t index) {
        return kept_[index] || (!lends && WantedByHead(index));
      });
    }
    if (fitting.size() >= job.settings->workers_min) {
      fitting.resize(job.settings->workers_min);
      for (const std::size_t index : fitting) taken_[index] = true;
      grants_.push_back({.job = &job, .indices = std::move(fitting), .may_grow = first});
    } else if (first) {
      schedule_.head = job.job;
      MakeRoom(job, fitting);
    }
  }

  // Displaces as few groups as let the head start, the last in the order first: chosen from the end
  // until they suffice, then, from the last chosen on, without those that are not needed after all.
  // Two passes, because a later and larger one may make an earlier one superfluous.
  void MakeRoom(const WaitingJob& head, const std::vector<std::size_t>& fitting) {
    std::size_t coming = fitting.size();
    struct Candidate {
      const GroupedJob* group = nullptr;
      std::size_t devices = 0;  // that the head gets when it is displaced
    };
    std::vector<Candidate> candidates;
    for (const GroupedJob& group : view_.groups) {
      const std::size_t useful = Coming(group, head);
      // These devices come anyway: nobody else is displaced for them.
      if (group.leaving) coming += useful;
      coming += Useful(group.given_back, *head.settings, view_.standard);
      if (group.leaving || useful == 0) continue;
      const std::size_t given = Given(group, head, useful);
      if (given > 0) candidates.push_back({.group = &group, .devices = given});
    }
    const std::size_t wanted = head.settings->workers_min;
    if (coming < wanted) {
      std::ranges::sort(candidates, [](const Candidate& a, const Candidate& b) {
        return ComesBefore(*b.group->settings, b.group->job, *a.group->settings, a.group->job);
      });
      std::size_t sum = coming;
      std::vector<Candidate> chosen;
      for (const Candidate& candidate : candidates) {
        if (sum >= wanted) break;
        sum += candidate.devices;
        chosen.push_back(candidate);
      }
      if (sum < wanted) return;  // nothing is kept: what is free is lent
      for (const Candidate& candidate : std::vector(chosen.rbegin(), chosen.rend())) {
        if (sum - candidate.devices < wanted) continue;
        sum -= candidate.devices;
        std::erase_if(chosen, [&](const Candidate& c) { return c.group == candidate.group; });
      }
      std::size_t missing = wanted - coming;
      for (const Candidate& candidate : chosen) {
        const std::size_t share = std::min(missing, candidate.devices);
        const std::size_t given =
            TakeFrom(*candidate.group, head, share) ? share : candidate.devices;
        missing -= std::min(missing, given);
      }
    }
    for (const std::size_t index : fitting) kept_[index] = true;
  }

  // Of the group's devices that the head could use, those that nobody else keeps from it.
  std::size_t Coming(const GroupedJob& group, const WaitingJob& head) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(group.devices, [&](const HeldDevice& device) {
          return IsUseful(device, *head.settings, view_.standard) &&
                 std::ranges::all_of(device.others,
                                     [&](JobId other) { return GivesWay(other, head); });
        }));
  }

  // A job that shares its device, which comes free only with the last of them.
  bool GivesWay(JobId job, const WaitingJob& head) const {
    const auto group = std::ranges::find(view_.groups, job, &GroupedJob::job);
    if (group == view_.groups.end()) return false;
    return group->leaving ||
           (group->movable && ComesBefore(*head.settings, head.job, *group->settings, group->job));
  }

  // So many devices of a group for the head: of those who would join it first, then of the last
  // members. False: it is displaced, as members enough to go on would not be left.
  bool TakeFrom(const GroupedJob& group, const WaitingJob& head, std::size_t share) {
    const std::string reason = "makes room for job " + head.settings->name;
    const auto members =
        static_cast<std::size_t>(std::ranges::count(group.devices, false, &HeldDevice::joining));
    const std::size_t spare = members - std::min<std::size_t>(members, group.settings->workers_min);
    std::vector<WorkerId> joiners = Last(group, head, true, share);
    std::vector<WorkerId> leavers =
        Last(group, head, false, std::min(spare, share - joiners.size()));
    if (!group.shrinks || joiners.size() + leavers.size() < share) {
      schedule_.displaced.push_back({.job = group.job, .reason = reason});
      return false;
    }
    Schedule::Reduction reduction{
        .job = group.job, .workers = std::move(joiners), .reason = reason};
    reduction.workers.insert(reduction.workers.end(), leavers.begin(), leavers.end());
    schedule_.reductions.push_back(std::move(reduction));
    return true;
  }

  // Workers whose devices the head can use, the last first, `most` at most.
  std::vector<WorkerId> Last(const GroupedJob& group, const WaitingJob& head, bool joining,
                             std::size_t most) const {
    std::vector<WorkerId> workers;
    for (auto device = group.devices.rbegin();
         device != group.devices.rend() && workers.size() < most; ++device) {
      if (device->joining == joining && IsUseful(*device, *head.settings, view_.standard)) {
        workers.push_back(device->worker);
      }
    }
    return workers;
  }

  // Of `useful` devices of a group, those that the head may have.
  std::size_t Given(const GroupedJob& group, const WaitingJob& head, std::size_t useful) {
    if (ComesBefore(*head.settings, head.job, *group.settings, group.job)) {
      return group.movable ? useful : 0;
    }
    // Before the head in the order: elastic ones of the same priority share, higher ones do not.
    if (group.settings->priority != head.settings->priority) return 0;
    // Only what it would get back when it starts again counts as its own.
    const std::size_t own = UsefulDevices(group, *group.settings, view_.standard);
    const std::size_t above_min = own - std::min<std::size_t>(own, group.settings->workers_min);
    const std::size_t given = std::min(useful, above_min);
    if (given > 0 && !group.steady) schedule_.awaits_steady = true;
    return group.steady ? given : 0;
  }

  // What is left goes to those that start, up to their max: first to those of the highest priority,
  // one at a time in turn among equals. What a head waits for is left alone.
  void Extend() {
    for (std::size_t begin = 0; begin < grants_.size();) {
      std::size_t end = begin + 1;
      while (end < grants_.size() && PriorityOf(end) == PriorityOf(begin)) ++end;
      while (ExtendByOne(begin, end)) continue;
      begin = end;
    }
    for (Granted& granted : grants_) {
      LeaveWholeMeshes(granted);
      std::ranges::sort(granted.indices);
      Schedule::Grant grant{.job = granted.job->job};
      for (const std::size_t index : granted.indices) {
        grant.members.push_back(view_.free[index].place);
      }
      schedule_.starts.push_back(std::move(grant));
    }
  }

  // What it was given last goes back where it makes no whole replica; its min are whole ones.
  void LeaveWholeMeshes(Granted& granted) {
    const std::size_t over = granted.indices.size() % granted.job->settings->mesh_devices;
    for (std::size_t i = 0; i < over; ++i) {
      taken_[granted.indices.back()] = false;
      granted.indices.pop_back();
    }
  }

  std::int32_t PriorityOf(std::size_t grant) const {
    return grants_[grant].job->settings->priority;
  }

  // False: none of the grants [begin, end) can have another device.
  bool ExtendByOne(std::size_t begin, std::size_t end) {
    bool any = false;
    for (std::size_t grant = begin; grant < end; ++grant) {
      Granted& granted = grants_[grant];
      const JobSettings& settings = *granted.job->settings;
      if (!granted.may_grow || granted.indices.size() >= settings.workers_max) continue;
      const std::vector<std::size_t>& order = OrderFor(settings);
      while (granted.next < order.size() && !MayExtend(settings, order[granted.next])) {
        ++granted.next;
      }
      if (granted.next == order.size()) continue;
      taken_[order[granted.next]] = true;
      granted.indices.push_back(order[granted.next]);
      any = true;
    }
    return any;
  }

  bool MayExtend(const JobSettings& settings, std::size_t index) const {
    return Fits(settings, index) && !kept_[index] && !WantedByHead(index);
  }

  const JobSettings* Head() const {
    const auto head = std::ranges::find(view_.waiting, schedule_.head, &WaitingJob::job);
    return head == view_.waiting.end() ? nullptr : head->settings;
  }

  bool WantedByHead(std::size_t index) const {
    const JobSettings* const head = Head();
    const FreeDevice& device = view_.free[index];
    return head != nullptr && Accepts(*head, device.kind, *device.traits, view_.standard);
  }

  // One at a time, the first in the order. Whoever would give its devices back for it, and has one
  // that it would not get back, cordoned or at fault since, keeps what it has.
  void Grow() {
    const GroupedJob* chosen = nullptr;
    for (const GroupedJob& group : view_.groups) {
      const bool whole = group.in_place || UsefulDevices(group, *group.settings, view_.standard) ==
                                               group.devices.size();
      const bool wants = !group.leaving && whole && group.devices.size() < MostOf(group) &&
                         Unwanted(*group.settings).size() >= group.settings->mesh_devices;
      if (!wants) continue;
      if (!(group.in_place ? group.grows : group.steady)) {
        schedule_.awaits_steady = true;
      } else if (chosen == nullptr ||
                 ComesBefore(*group.settings, group.job, *chosen->settings, chosen->job)) {
        chosen = &group;
      }
    }
    if (chosen == nullptr) return;
    if (!chosen->in_place) {
      schedule_.displaced.push_back({.job = chosen->job, .reason = "grows onto free devices"});
      return;
    }
    Schedule::Grant growth{.job = chosen->job};
    const std::size_t most = MostOf(*chosen) - chosen->devices.size();
    for (const std::size_t index : Unwanted(*chosen->settings)) {
      if (growth.members.size() < most) growth.members.push_back(view_.free[index].place);
    }
    schedule_.growths.push_back(std::move(growth));
  }

  // Devices that it may hold. Spares are workers that join: a job that takes in none has none.
  static std::size_t MostOf(const GroupedJob& group) {
    const std::size_t members = group.settings->workers_max;
    return members + (group.in_place ? group.settings->spares : 0);
  }

  // The free devices that fit, and that nobody in the queue could use.
  std::vector<std::size_t> Unwanted(const JobSettings& settings) const {
    std::vector<std::size_t> unwanted = Fitting(settings);
    std::erase_if(unwanted, [&](std::size_t index) {
      const FreeDevice& device = view_.free[index];
      return std::ranges::any_of(view_.waiting, [&](const WaitingJob& job) {
        return Accepts(*job.settings, device.kind, *device.traits, view_.standard);
      });
    });
    return unwanted;
  }

  const ScheduleView& view_;
  std::vector<bool> taken_;              // by index into view.free
  std::vector<bool> kept_;               // kept for the head, for which room is being made
  std::vector<std::size_t> all_;         // indices into view.free
  std::vector<std::size_t> gpus_first_;  // the same, in the order of jobs that take either kind
  std::vector<Granted> grants_;
  Schedule schedule_;
};

}  // namespace

bool Accepts(const JobSettings& settings, DeviceKind kind, const NodeTraits& traits,
             DeviceKind standard) {
  const DeviceKind wanted = settings.device == DeviceKind::kStandard ? standard : settings.device;
  if (wanted != DeviceKind::kAny && kind != wanted) return false;
  for (const auto& [key, value] : settings.selector) {
    const auto label = traits.labels.find(key);
    if (label == traits.labels.end() || label->second != value) return false;
  }
  return std::ranges::all_of(traits.taints, [&](const std::string& taint) {
    return Tolerates(settings.tolerations, taint);
  });
}

std::size_t UsefulDevices(const GroupedJob& group, const JobSettings& settings,
                          DeviceKind standard) {
  return Useful(group.devices, settings, standard);
}

std::size_t Attainable(const ScheduleView& view, const JobSettings& settings) {
  auto devices =
      static_cast<std::size_t>(std::ranges::count_if(view.free, [&](const FreeDevice& device) {
        return Accepts(settings, device.kind, *device.traits, view.standard);
      }));
  for (const GroupedJob& group : view.groups) {
    devices += UsefulDevices(group, settings, view.standard) +
               Useful(group.given_back, settings, view.standard);
  }
  return devices;
}

bool ComesBefore(const JobSettings& a_settings, JobId a, const JobSettings& b_settings, JobId b) {
  if (a_settings.priority != b_settings.priority) return a_settings.priority > b_settings.priority;
  return a < b;
}

Schedule MakeSchedule(const ScheduleView& view) { return Scheduler(view).Run(); }

}  // namespace tactus::job
