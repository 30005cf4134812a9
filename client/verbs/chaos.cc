// `tactus chaos`: kills or stops workers of a job, those on this machine, and says what it cost.
#include <signal.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "client/local/local_workers.h"
#include "client/observe/disturbance.h"
#include "client/observe/event_loop.h"
#include "client/render/error_lines.h"
#include "client/text/text.h"
#include "client/verbs/answers.h"
#include "client/verbs/words.h"
#include "runtime/now.h"

namespace tactus::client {
namespace {

constexpr char kProc[] = "/proc";
constexpr Duration kLook = Seconds(0.05);  // how exact a gap is

struct Wishes {
  WorkersOf of{};
  Duration before{};
  Duration length{};
  Duration every{};                 // on average
  std::optional<Duration> pause{};  // nothing: killed
  Duration recovery{};              // that the job has after the last one
  std::uint64_t seed = 1;
};

// What became of it.
struct Cost {
  Stretch before{};
  Stretch during{};
  std::uint64_t met = 0;  // workers killed, or stopped
  bool recovered = true;  // it trained again in the time that it had for that
  bool interrupted = false;
};

// One job, from the first look to the last.
class Chaos {
 public:
  Chaos(const Wishes& wishes, v1::Job job, api::Client& client, const Screen& screen)
      : wishes_(wishes),
        name_(ShortName(job.name())),
        client_(client),
        screen_(screen),
        rng_(wishes.seed),
        job_(std::move(job)),
        disturbance_(job_, runtime::Now()) {}
  ~Chaos() { GoOn(Instant::max()); }
  Chaos(const Chaos&) = delete;
  Chaos& operator=(const Chaos&) = delete;

  // Errors: of calls; FailedPrecondition, the job is over. A coordinator that does not answer is
  // asked again.
  absl::StatusOr<Cost> Run() {
    absl::Status status = LookUntil([&] { return runtime::Now() >= begin_ + wishes_.before; });
    cost_.before = disturbance_.Take(runtime::Now());
    const Instant end = runtime::Now() + wishes_.length;
    next_ = runtime::Now() + NextWait();
    if (status.ok() && !cost_.interrupted) {
      screen_.Say("from now on workers of job " + Printable(name_) + " are " + What());
      status = LookUntil([&] {
        Disturb();
        return runtime::Now() >= end;
      });
    }
    GoOn(Instant::max());
    if (status.ok() && !cost_.interrupted) status = Recover();
    cost_.during = disturbance_.Take(runtime::Now());
    if (!status.ok()) return status;
    return cost_;
  }

 private:
  struct Stopped {
    LocalWorker worker{};
    Instant until{};
  };

  std::string What() const { return wishes_.pause ? "stopped" : "killed"; }

  Duration NextWait() { return Seconds(-std::log1p(-rng_.Uniform()) * ToSeconds(wishes_.every)); }

  // Until `done` says so or a signal comes.
  absl::Status LookUntil(const std::function<bool()>& done) {
    while (!done()) {
      if (loop_.RunUntil([] { return false; }, kLook) == EventLoop::Outcome::kInterrupted) {
        cost_.interrupted = true;
        return absl::OkStatus();
      }
      if (absl::Status status = Look(); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status Look() {
    const absl::StatusOr<v1::Job> job = client_.GetJob(name_);
    if (absl::IsUnavailable(job.status())) return absl::OkStatus();
    if (!job.ok()) return job.status();
    v1::ListRoundsRequest request;
    request.set_name(name_);
    request.set_first_round(disturbance_.next_round());
    const auto rounds = client_.ListAllRounds(request, kRoundsMax);
    if (absl::IsUnavailable(rounds.status())) return absl::OkStatus();
    if (!rounds.ok()) return rounds.status();
    job_ = *job;
    disturbance_.Look(job_, {rounds->rounds().begin(), rounds->rounds().end()}, runtime::Now());
    if (job_.state() == v1::JOB_STATE_RUNNING || job_.state() == v1::JOB_STATE_STARTING ||
        job_.state() == v1::JOB_STATE_QUEUED || job_.state() == v1::JOB_STATE_SUSPENDING) {
      return absl::OkStatus();
    }
    return absl::FailedPreconditionError("job " + Printable(name_) +
                                         " does not train any more: " + job_.state_reason());
  }

  // Meets one worker when it is time. A job's last worker is left alone: nobody could go on.
  void Disturb() {
    const Instant now = runtime::Now();
    GoOn(now);
    if (now < next_) return;
    next_ = now + NextWait();
    const auto& members = job_.progress().workers();
    std::vector<LocalWorker> here = FindLocalWorkers(kProc, wishes_.of);
    std::erase_if(here, [&](const LocalWorker& worker) {
      return std::ranges::find(members, worker.id, &v1::WorkerProgress::worker_id) == members.end();
    });
    std::erase_if(here, [this](const LocalWorker& worker) { return IsMet(worker.id); });
    const auto well = std::ranges::count_if(
        members, [this](const v1::WorkerProgress& member) { return !IsMet(member.worker_id()); });
    if (here.empty() || well < 2 || job_.state() != v1::JOB_STATE_RUNNING) return;
    const LocalWorker worker = here[rng_.Below(here.size())];
    const absl::Status status =
        SignalWorker(kProc, wishes_.of, worker, wishes_.pause ? SIGSTOP : SIGKILL);
    if (!status.ok()) return screen_.Say(std::string(status.message()));
    ++cost_.met;
    if (wishes_.pause) {
      stopped_.push_back({.worker = worker, .until = now + *wishes_.pause});
    } else {
      killed_.push_back(worker.id);
    }
    screen_.Say("worker " + std::to_string(worker.id) + " " + What());
  }

  // Killed, though its job may not know it yet, or stopped at present.
  bool IsMet(std::uint64_t id) const {
    return std::ranges::find(killed_, id) != killed_.end() ||
           std::ranges::find(stopped_, id, [](const Stopped& stopped) {
             return stopped.worker.id;
           }) != stopped_.end();
  }

  // Lets those go on whose time is over.
  void GoOn(Instant now) {
    std::erase_if(stopped_, [&](const Stopped& stopped) {
      if (stopped.until > now) return false;
      // Who ended meanwhile needs no signal.
      static_cast<void>(SignalWorker(kProc, wishes_.of, stopped.worker, SIGCONT));
      return true;
    });
  }

  // Until it has trained for a moment after all of this, so that the last gap is whole.
  absl::Status Recover() {
    const Instant since = runtime::Now();
    const std::uint64_t from = disturbance_.next_round();
    const auto trains = [&] {
      return runtime::Now() >= since + Seconds(2) && job_.state() == v1::JOB_STATE_RUNNING &&
             disturbance_.next_round() != from;
    };
    absl::Status status =
        LookUntil([&] { return trains() || runtime::Now() >= since + wishes_.recovery; });
    cost_.recovered = trains();
    return status;
  }

  static constexpr std::size_t kRoundsMax = 100'000;  // of one look

  const Wishes wishes_;
  const std::string name_;
  api::Client& client_;
  const Screen& screen_;
  EventLoop loop_{{SIGINT, SIGTERM, SIGHUP}};
  Rng rng_;
  v1::Job job_;
  Disturbance disturbance_;
  const Instant begin_ = runtime::Now();
  Instant next_{};
  std::vector<Stopped> stopped_;
  std::vector<std::uint64_t> killed_;
  Cost cost_{};
};

std::string Milliseconds(Duration gap) {
  return FormatCount(static_cast<std::uint64_t>(std::llround(ToSeconds(gap) * 1e3))) + " ms";
}

std::string CostText(const Cost& cost, const std::string& what) {
  const double before = cost.before.SamplesPerSecond();
  const double during = cost.during.SamplesPerSecond();
  const std::string share = before > 0 ? " (" + FormatPercent(during / before) + ")" : "";
  return FormatTable({{"", "BEFORE", "MEANWHILE"},
                      {"samples/s", FormatRate(before), FormatRate(during) + share},
                      {"longest gap between rounds", Milliseconds(cost.before.longest_gap),
                       Milliseconds(cost.during.longest_gap)}}) +
         CountOf(cost.met, "worker") + " " + what + " in " + FormatSpan(cost.during.length) + ": " +
         CountOf(cost.during.regroups, "regroup") + ", " +
         CountOf(cost.during.restarts, "restart") + ", " +
         CountOf(cost.during.rounds_lost, "round") + " lost\n";
}

nlohmann::ordered_json StretchJson(const Stretch& stretch) {
  return {{"seconds", ToSeconds(stretch.length)},
          {"samples_per_second", stretch.SamplesPerSecond()},
          {"longest_gap_seconds", ToSeconds(stretch.longest_gap)},
          {"rounds", stretch.rounds},
          {"rounds_lost", stretch.rounds_lost},
          {"regroups", stretch.regroups},
          {"restarts", stretch.restarts}};
}

class ChaosVerb : public Verb {
 public:
  void Declare(CLI::App& program) override {
    CLI::App* verb = AddVerb(program, "chaos",
                             "Kill or stop workers of a job, those that run on this machine, at "
                             "random moments, and say what it cost. A job's last worker is left "
                             "alone");
    AddJob(verb, &name_);
    verb->add_flag("--i-know-that-it-kills", sure_, "Needed: training is disturbed for real");
    verb->add_option("--before", before_, "How long the job is looked at before")
        ->check(DurationText())
        ->capture_default_str();
    verb->add_option("--for", length_, "How long workers are met")
        ->check(DurationText())
        ->capture_default_str();
    verb->add_option("--every", every_, "Time between two of them, on average")
        ->check(DurationText())
        ->capture_default_str();
    verb->add_option("--stop", pause_,
                     "Stop each for so long (SIGSTOP), such as 5s. Default: kill it (SIGKILL)")
        ->check(DurationText());
    verb->add_option("--recover-within", recovery_,
                     "How long the job has to train again after the last one; where it does not, "
                     "this is an error")
        ->check(DurationText())
        ->capture_default_str();
    verb->add_option("--agents-coordinator", told_,
                     "What the agents here were told to be their --coordinator, letter by letter. "
                     "Default: the --server of this command");
    verb->add_option("--seed", seed_, "Which ones, and when")->capture_default_str();
    AddOutput(verb, &output_, {"table", "json"});
  }
  std::string Check() override {
    if (sure_) return "";
    return "chaos: it ends or stops processes that train; --i-know-that-it-kills says that this is "
           "meant";
  }
  ExitCode Run(const Means& means) override {
    const Screen& screen = means.screen;
    const absl::StatusOr<v1::Job> job = means.client->GetJob(name_);
    if (!job.ok()) return ReportError(job.status(), screen);
    const WorkersOf of = {.job = ShortName(job->name()),
                          .coordinator = told_.empty() ? means.settings->server.value : told_};
    if (absl::Status status = Refusal(*job, of); !status.ok()) return ReportError(status, screen);
    const Wishes wishes = {.of = of,
                           .before = GivenDuration(before_).value_or(Duration{}),
                           .length = GivenDuration(length_).value_or(Duration{}),
                           .every = GivenDuration(every_).value_or(Duration{}),
                           .pause = GivenDuration(pause_),
                           .recovery = GivenDuration(recovery_).value_or(Duration{}),
                           .seed = seed_};
    const absl::StatusOr<Cost> cost = Chaos(wishes, *job, *means.client, screen).Run();
    if (!cost.ok()) return ReportError(cost.status(), screen);
    if (output_ == "json") {
      const nlohmann::ordered_json json = {{"job", ShortName(job->name())},
                                           {"workers_met", cost->met},
                                           {"recovered", cost->recovered},
                                           {"before", StretchJson(cost->before)},
                                           {"meanwhile", StretchJson(cost->during)}};
      screen.Print(json.dump(2) + "\n");
    } else {
      screen.Print(CostText(*cost, pause_.empty() ? "killed" : "stopped"));
    }
    if (cost->interrupted) return ExitCode::kInterrupted;
    if (cost->recovered) return ExitCode::kOk;
    return ReportError(
        absl::DeadlineExceededError("job " + Printable(ShortName(job->name())) +
                                    " does not train again " + recovery_ +
                                    " after the last one; `tactus describe` says where it stands"),
        screen);
  }

 private:
  // Why there is nothing to do here.
  static absl::Status Refusal(const v1::Job& job, const WorkersOf& of) {
    const std::string name = Printable(ShortName(job.name()));
    if (job.state() != v1::JOB_STATE_RUNNING) {
      return absl::FailedPreconditionError("job " + name +
                                           " does not train: " + Printable(job.state_reason()));
    }
    if (!FindLocalWorkers(kProc, of).empty()) return absl::OkStatus();
    std::string nodes;
    for (const v1::WorkerProgress& worker : job.progress().workers()) {
      if (nodes.find(worker.node()) == std::string::npos) {
        nodes += (nodes.empty() ? "" : ", ") + Printable(worker.node());
      }
    }
    return absl::NotFoundError(
        "no worker of job " + name + " runs on this machine, of this user's, " +
        "by an agent with --coordinator " + Printable(of.coordinator) + "; they are on: " + nodes);
  }

  std::string name_;
  bool sure_ = false;
  std::string before_ = "30s";
  std::string length_ = "5m";
  std::string every_ = "30s";
  std::string pause_;  // empty: killed
  // What a group of those who live takes at most, and a restart with its rest.
  std::string recovery_ = "5m";
  std::string told_;  // empty: as this program
  std::uint64_t seed_ = 1;
  std::string output_ = "table";
};

}  // namespace

std::unique_ptr<Verb> MakeChaos() { return std::make_unique<ChaosVerb>(); }

}  // namespace tactus::client
