// Agents of many jobs: a report a second each, and then a flood of them.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "bench/control_plane/load.h"
#include "bench/control_plane/sample_job.h"
#include "bench/control_plane/simulated_agent.h"
#include "identity/credentials.h"
#include "tactus/v1/jobs.grpc.pb.h"

namespace tactus::bench {
namespace {

constexpr std::uint64_t kSlots = 1000;      // of a second: agents of one slot report together
constexpr std::uint64_t kSpeedCycles = 15;  // seconds after which half of a job's workers change

struct Member {
  SimulatedAgent* agent = nullptr;
  std::uint32_t rank = 0;
};

// One job; by Jobs' mutex.
struct TrainingJob {
  std::uint64_t number = 0;
  std::uint32_t size = 0;
  std::vector<Member> members{};
  std::uint64_t first_cycle = 0;  // of its round 0; 0: it does not train yet
  v1::Plan plan{}, newest{};
  std::uint32_t holders = 0;   // members that have the newest plan
  std::uint32_t reported = 0;  // in this cycle
  double round_end = 0;        // [s] the last member's last report
};

// The jobs of all agents, and how long plans took.
class Jobs final : public AgentListener {
 public:
  explicit Jobs(std::uint64_t agents) : places_(agents) {}

  void Welcomed() override { ++welcomed_; }

  void Trains(SimulatedAgent& agent, const std::string& name, std::uint32_t rank,
              std::uint32_t size, const v1::Plan& plan) override {
    const std::lock_guard lock(mutex_);
    const auto [found, fresh] = jobs_.try_emplace(name);
    TrainingJob& job = found->second;
    if (fresh) job.number = jobs_.size();
    job.size = size;
    job.plan = job.newest = plan;
    job.members.push_back({.agent = &agent, .rank = rank});
    places_[agent.number()] = {&job, rank};
    if (job.members.size() < size) return;
    job.holders = size;
    job.first_cycle = cycle_ + 1;
    training_ += size;
  }

  void PlanCame(SimulatedAgent& agent, const v1::Plan& plan) override {
    const double now = Now();
    const std::lock_guard lock(mutex_);
    TrainingJob* const job = places_[agent.number()].first;
    if (job == nullptr) return;
    if (plan.version() > job->newest.version()) {
      job->newest = plan;
      job->holders = 0;
      ++plans_;
    }
    if (plan.version() == job->newest.version()) ++job->holders;
    if (measures_ && job->round_end > 0) delays_.push_back(now - job->round_end);
  }

  void Broke(const std::string& why) override {
    if (broken_++ == 0) std::fprintf(stderr, "bench_control_plane: %s\n", why.c_str());
  }

  // A second begins: where all members hold the newest plan, it is in force.
  void BeginCycle(std::uint64_t cycle) {
    const std::lock_guard lock(mutex_);
    cycle_ = cycle;
    for (auto& [name, job] : jobs_) {
      job.reported = 0;
      if (job.holders == job.size) job.plan = job.newest;
    }
  }

  // The agent's turn in this second.
  void Speak(SimulatedAgent& agent) {
    RoundSeen seen;
    {
      const std::lock_guard lock(mutex_);
      TrainingJob* const job = places_[agent.number()].first;
      const bool due = job != nullptr && job->first_cycle > 0 && cycle_ >= job->first_cycle;
      if (due) {
        seen = Seen(*job, places_[agent.number()].second);
        ++reports_;
        if (++job->reported == job->size) job->round_end = Now();
      }
      if (!due) seen.samples = 0;
    }
    if (seen.samples > 0) {
      agent.SayReport(seen);
    } else if ((cycle_ + agent.number()) % 2 == 0) {
      agent.SayHeartbeat();
    }
  }

  RoundSeen SeenBy(const SimulatedAgent& agent) {
    const std::lock_guard lock(mutex_);
    const auto [job, rank] = places_[agent.number()];
    return job == nullptr ? RoundSeen{} : Seen(*job, rank);
  }

  // From now on delays are kept.
  void Measure(bool on) {
    const std::lock_guard lock(mutex_);
    measures_ = on;
    plans_ = reports_ = 0;
    if (on) delays_.clear();
  }

  std::map<std::string, double> Figures() {
    const std::lock_guard lock(mutex_);
    std::sort(delays_.begin(), delays_.end());
    const auto quantile = [&](double share) {
      const auto last = static_cast<double>(delays_.size()) - 1;
      return delays_.empty() ? 0.0 : delays_[static_cast<std::size_t>(share * last)];
    };
    return {{"reports", static_cast<double>(reports_)},
            {"plans", static_cast<double>(plans_)},
            {"arrivals", static_cast<double>(delays_.size())},
            {"p50", quantile(0.5)},
            {"p99", quantile(0.99)},
            {"max", quantile(1)}};
  }

  std::uint64_t welcomed() const { return welcomed_; }
  std::uint64_t training() const { return training_; }
  std::uint64_t broken() const { return broken_; }

 private:
  // Half of a job's workers run at half speed, and every kSpeedCycles it is the other half.
  RoundSeen Seen(const TrainingJob& job, std::uint32_t rank) const {
    const std::uint64_t round = cycle_ - job.first_cycle;
    const bool slow = (rank + (round + job.number) / kSpeedCycles) % 2 == 1;
    const auto size = static_cast<int>(rank) < job.plan.batch_sizes_size()
                          ? job.plan.batch_sizes(static_cast<int>(rank))
                          : 1;
    return {.round = round,
            .plan_version = job.plan.version(),
            .samples = std::max<std::uint32_t>(size, 1),
            .speed = slow ? 50.0 : 100.0};
  }

  std::atomic<std::uint64_t> welcomed_ = 0, training_ = 0, broken_ = 0;
  std::atomic<std::uint64_t> cycle_ = 1;
  std::mutex mutex_;
  // By mutex_:
  std::map<std::string, TrainingJob> jobs_;                     // by id
  std::vector<std::pair<TrainingJob*, std::uint32_t>> places_;  // by agent: job and rank
  bool measures_ = false;
  std::uint64_t plans_ = 0, reports_ = 0;
  std::vector<double> delays_;  // [s]
};

// The run: agents that speak in turn, each in its part of the second.
class Run {
 public:
  explicit Run(const Arguments& arguments)
      : arguments_(arguments),
        count_(arguments.Number("agents", 10'000)),
        job_count_(arguments.Number("jobs", 100)),
        jobs_(count_) {
    for (std::uint64_t i = 0; i < count_; ++i) {
      agents_.push_back(std::make_unique<SimulatedAgent>(i, jobs_));
    }
  }

  int operator()() {
    const double start = Now();
    Connect();
    if (!SpeakUntil([&] { return jobs_.welcomed() == count_; }, 120)) return Fail("connect");
    Say("connected", {{"seconds", Now() - start}});
    const double submitted = Now();
    std::thread submission([&] { Submit(); });
    const bool trains = SpeakUntil([&] { return jobs_.training() == count_; }, 300);
    submission.join();
    if (!trains) return Fail("form all groups");
    Say("training", {{"seconds", Now() - submitted}});
    Steady("apart");
    in_step_ = true;
    Steady("in-step");
    Saturate();
    return jobs_.broken() == 0 ? 0 : 1;
  }

 private:
  int Fail(const char* what) {
    std::fprintf(stderr, "bench_control_plane: could not %s: %llu welcomed, %llu train\n", what,
                 static_cast<unsigned long long>(jobs_.welcomed()),
                 static_cast<unsigned long long>(jobs_.training()));
    return 1;
  }

  std::string TlsOf(const std::string& who) const {
    const std::string folder = arguments_.Text("tls");
    return folder.empty() ? "" : folder + "/" + who;
  }

  void Connect() {
    const std::uint64_t connections = arguments_.Number("connections", 200);
    for (std::uint64_t i = 0; i < connections; ++i) {
      stubs_.push_back(agent::v1::AgentSession::NewStub(
          NewConnection(arguments_.Text("server"), TlsOf(SimulatedAgent::NameOf(i)))));
    }
    const std::uint64_t window = arguments_.Number("window", 300);
    for (std::uint64_t i = 0; i < count_; ++i) {
      agents_[i]->Connect(*stubs_[i * connections / count_], window);
    }
  }

  void Submit() {
    const auto stub = v1::Jobs::NewStub(NewConnection(arguments_.Text("server"), TlsOf("user")));
    for (std::uint64_t i = 0; i < job_count_; ++i) {
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
      v1::CreateJobRequest request;
      *request.mutable_spec() =
          SampleSpec("steady", static_cast<std::uint32_t>(count_ / job_count_));
      v1::Job job;
      const grpc::Status status = stub->CreateJob(&context, request, &job);
      if (!status.ok()) return jobs_.Broke("CreateJob: " + status.error_message());
    }
  }

  // All agents speak once a second until `condition` holds; false: not within `seconds`.
  template <typename Condition>
  bool SpeakUntil(Condition condition, double seconds) {
    const double end = Now() + seconds;
    while (!condition()) {
      if (Now() > end) return false;
      Cycle();
    }
    return true;
  }

  // One second. Neighbours in number are of one job. The members of a job end a round together, and
  // each job at its own time of the second; in step, all jobs end theirs at the second's end.
  void Cycle() {
    jobs_.BeginCycle(++cycle_);
    const double begin = Now();
    const std::uint64_t group = std::max<std::uint64_t>(count_ / job_count_, 1);
    std::vector<std::vector<SimulatedAgent*>> slots(kSlots);
    for (std::uint64_t i = 0; i < count_; ++i) {
      const std::uint64_t place = in_step_ ? i % group * job_count_ + i / group : i;
      slots[place * kSlots / count_ % kSlots].push_back(agents_[i].get());
    }
    for (std::uint64_t slot = 0; slot < kSlots; ++slot) {
      const double due = begin + static_cast<double>(slot) / kSlots;
      std::this_thread::sleep_for(std::chrono::duration<double>(due - Now()));
      for (SimulatedAgent* agent : slots[slot]) jobs_.Speak(*agent);
    }
    late_ = std::max(late_, Now() - begin - 1);
    std::this_thread::sleep_for(std::chrono::duration<double>(begin + 1 - Now()));
  }

  void Steady(const std::string& phase) {
    const std::uint64_t rounds = arguments_.Number("rounds", 60);
    for (int i = 0; i < 3; ++i) Cycle();
    jobs_.Measure(true);
    late_ = 0;
    Say(phase + "-begin");
    const double begin = Now();
    for (std::uint64_t i = 0; i < rounds; ++i) Cycle();
    const double took = Now() - begin;
    std::map<std::string, double> figures = jobs_.Figures();
    figures["reports_per_second"] = figures["reports"] / took;
    figures["late"] = late_;
    Say(phase + "-end", figures);
    jobs_.Measure(false);
  }

  void Saturate() {
    const auto seconds = static_cast<double>(arguments_.Number("saturate", 10));
    for (const auto& agent : agents_) {
      RoundSeen seen = jobs_.SeenBy(*agent);
      ++seen.round;
      agent->Flood(seen);
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(std::min(seconds, 5.0)));
    const auto acknowledged = [&] {
      std::uint64_t sum = 0;
      for (const auto& agent : agents_) sum += agent->acknowledged();
      return static_cast<double>(sum);
    };
    Say("saturate-begin");
    const double begin = Now(), before = acknowledged();
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    Say("saturate-end", {{"reports_per_second", (acknowledged() - before) / (Now() - begin)},
                         {"message_bytes", static_cast<double>(SampleReport().ByteSizeLong())}});
  }

  const Arguments arguments_;
  const std::uint64_t count_, job_count_;
  Jobs jobs_;
  std::vector<std::unique_ptr<SimulatedAgent>> agents_;
  std::vector<std::unique_ptr<agent::v1::AgentSession::Stub>> stubs_;
  std::uint64_t cycle_ = 0;
  bool in_step_ = false;
  double late_ = 0;  // [s] by which a second's last turn came too late, at most
};

}  // namespace

std::shared_ptr<grpc::Channel> NewConnection(const std::string& server,
                                             const std::string& tls_dir) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  if (tls_dir.empty()) {
    return grpc::CreateCustomChannel(server, grpc::InsecureChannelCredentials(), arguments);
  }
  const auto credentials = identity::MakeChannelCredentials(tls_dir);
  if (!credentials.ok()) {
    std::fprintf(stderr, "bench_control_plane: %s\n", credentials.status().ToString().c_str());
    std::exit(1);
  }
  return grpc::CreateCustomChannel(server, *credentials, arguments);
}

int RunSessions(const Arguments& arguments) {
  static Run run(arguments);  // outlives the streams, which nobody ends
  return run();
}

}  // namespace tactus::bench
