// `tactus get`: what there is, once or again and again.
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <optional>
#include <sstream>
#include <thread>
#include <utility>

#include "client/api/cancellation.h"
#include "client/observe/event_loop.h"
#include "client/observe/follow.h"
#include "client/render/error_lines.h"
#include "client/render/progress_view.h"
#include "client/render/sweep_table.h"
#include "client/render/tables.h"
#include "client/verbs/words.h"
#include "runtime/now.h"
#include "runtime/retry.h"

namespace tactus::client {
namespace {

constexpr Duration kListRefresh = Seconds(1);

template <typename Message>
ExitCode ShowAnswer(const absl::StatusOr<Message>& answer, OutputFormat format,
                    const Screen& screen) {
  if (!answer.ok()) return ReportError(answer.status(), screen);
  screen.Print(Render(*answer, {format, screen.has_colour(), screen.table_columns()}));
  return ExitCode::kOk;
}

// What changed since it was last shown: lines of a table, or messages, one a line.
class ListChanges {
 public:
  explicit ListChanges(const Screen& screen) : screen_(screen) {}

  template <typename Items>
  void Show(const Items& items, OutputFormat format,
            const std::function<std::string(Look)>& table) {
    if (format == OutputFormat::kJson) {
      for (const auto& item : items) ShowNew(item.name(), JsonLine(item) + "\n");
    } else if (format == OutputFormat::kYaml) {
      for (const auto& item : items) {
        ShowNew(item.name(), "---\n" + Render(item, OutputFormat::kYaml));
      }
    } else {
      ShowTable(table({format, screen_.has_colour(), screen_.table_columns()}));
    }
  }

 private:
  void ShowNew(const std::string& key, const std::string& text) {
    std::string& shown = shown_[key];
    if (shown == text) return;
    shown = text;
    screen_.Print(text);
  }

  // Lines that were not in the last table. The head is in all of them.
  void ShowTable(const std::string& table) {
    std::istringstream in(table);
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    for (const std::string& line : lines) {
      if (std::ranges::find(lines_, line) == lines_.end()) screen_.Print(line + "\n");
    }
    lines_ = std::move(lines);
  }

  const Screen& screen_;
  std::map<std::string, std::string> shown_;  // by name
  std::vector<std::string> lines_;
};

// The status of `call`, which is made in a thread of its own: a coordinator that does not answer
// must not keep signals waiting. Cancelled: a signal came.
absl::Status RunBeside(api::Client& client, EventLoop& loop,
                       const std::function<absl::Status()>& call) {
  api::Cancellation cancellation;
  client.EndCallsWith(&cancellation);
  std::atomic<bool> done = false;
  absl::Status status;
  std::thread caller([&] {  // `status` is read after the join
    status = call();
    done = true;
  });
  const auto outcome = loop.RunUntil([&] { return done.load(); }, EventLoop::kForever);
  if (outcome == EventLoop::Outcome::kInterrupted) cancellation.Cancel();
  caller.join();
  client.EndCallsWith(nullptr);
  return outcome == EventLoop::Outcome::kInterrupted ? absl::CancelledError("interrupted") : status;
}

class GetVerb : public Verb {
 public:
  void Declare(CLI::App& program) override {
    CLI::App& get = *AddGroup(program, "get",
                              "Show jobs, nodes, one of them, a sweep's jobs, or a job's rounds, "
                              "validations or decisions");
    DeclareNoun(get, "jobs", Noun::kJobs);
    DeclareNoun(get, "job", Noun::kJob);
    DeclareNoun(get, "sweep", Noun::kSweep);
    DeclareNoun(get, "nodes", Noun::kNodes);
    DeclareNoun(get, "node", Noun::kNode);
    DeclareNoun(get, "rounds", Noun::kRounds);
    DeclareNoun(get, "validations", Noun::kValidations);
    DeclareNoun(get, "decisions", Noun::kDecisions);
  }
  ExitCode Run(const Means& means) override {
    const OutputFormat format =
        ParseOutputFormat(output_.empty() ? means.settings->output.value : output_);
    api::Client& client = *means.client;
    const Screen& screen = means.screen;
    if (watch_) return Watch(client, format, screen);
    switch (noun_) {
      case Noun::kJobs:
        return ShowAnswer(FetchJobs(client), format, screen);
      case Noun::kJob:
        return ShowAnswer(client.GetJob(name_), format, screen);
      case Noun::kSweep:
        return ShowSweep(client, format, screen);
      case Noun::kNodes:
        return ShowAnswer(client.ListAllNodes(), format, screen);
      case Noun::kNode:
        return ShowAnswer(client.GetNode(name_), format, screen);
      case Noun::kValidations:
        return ShowAnswer(client.ListValidations(name_), format, screen);
      case Noun::kDecisions:
        return ShowAnswer(client.ListAllDecisions(name_, count_max_), format, screen);
      case Noun::kRounds:
        break;
    }
    return ShowAnswer(client.ListAllRounds(name_, count_max_), format, screen);
  }

 private:
  enum class Noun { kJobs, kJob, kSweep, kNodes, kNode, kRounds, kValidations, kDecisions };

  void DeclareNoun(CLI::App& get, const std::string& word, Noun noun) {
    const bool all = noun == Noun::kJobs || noun == Noun::kNodes;
    const bool in_pages = noun == Noun::kRounds || noun == Noun::kDecisions;
    const bool of_a_job = in_pages || noun == Noun::kValidations;
    const std::string help = all                    ? "All of them"
                             : of_a_job             ? "Of one job"
                             : noun == Noun::kSweep ? "What tactus sweep submitted, the best first"
                                                    : "One of them";
    CLI::App* verb = AddVerb(get, word, help, [this, noun] { noun_ = noun; });
    if (noun == Noun::kNode) AddNode(verb, &name_);
    if (noun == Noun::kSweep) {
      verb->add_option("sweep", name_, "As tactus sweep printed it")->required();
    }
    if (noun == Noun::kJob || of_a_job) AddJob(verb, &name_);
    if (noun == Noun::kJobs || in_pages) {
      verb->add_option("--limit", count_max_, "At most so many, the first ones")
          ->check(WholeNumber(1, 1'000'000))
          ->capture_default_str();
    }
    if (noun == Noun::kJobs) DeclareQuery(verb);
    if (all || noun == Noun::kSweep)
      verb->add_flag("-w,--watch", watch_, "Go on and show what changes; Ctrl-C ends it");
    verb->add_option("-o,--output", output_,
                     "Format on standard output. Default: table, or as the settings say; on a "
                     "terminal that has the columns that there is room for")
        ->check(CLI::IsMember({"table", "wide", "json", "yaml", "name"}));
  }

  void DeclareQuery(CLI::App* verb) {
    verb->add_option("--filter", filter_,
                     "Only these: comparisons of state, name, priority, create_time or labels.KEY "
                     "joined by AND, such as 'state=RUNNING AND labels.team=vision'");
    verb->add_option("--order-by", order_by_,
                     "create_time, name, priority or update_time, with ' desc' for the largest "
                     "first. Default: the newest first");
  }

  absl::StatusOr<v1::ListJobsResponse> FetchJobs(api::Client& client) const {
    v1::ListJobsRequest request;
    request.set_filter(filter_);
    request.set_order_by(order_by_);
    return client.ListAllJobs(request, count_max_);
  }

  // Not found: no job has its label any more, or ever had.
  absl::StatusOr<v1::ListJobsResponse> FetchSweep(api::Client& client) const {
    v1::ListJobsRequest request;
    request.set_filter("labels." + std::string(kSweepLabel) + "=" + name_);
    request.set_order_by("create_time");
    absl::StatusOr<v1::ListJobsResponse> jobs = client.ListAllJobs(request, count_max_);
    if (jobs.ok() && jobs->jobs().empty()) {
      return absl::NotFoundError("there is no job of a sweep " + name_ +
                                 "; tactus get jobs -o wide shows the label " + kSweepLabel);
    }
    if (jobs.ok()) SortByLoss(&*jobs);
    return jobs;
  }

  ExitCode ShowSweep(api::Client& client, OutputFormat format, const Screen& screen) const {
    const absl::StatusOr<v1::ListJobsResponse> jobs = FetchSweep(client);
    if (!jobs.ok()) return ReportError(jobs.status(), screen);
    screen.Print(RenderSweep(*jobs, {format, screen.has_colour(), screen.table_columns()}));
    return ExitCode::kOk;
  }

  absl::Status ShowChanges(api::Client& client, OutputFormat format, ListChanges& changes) const {
    if (noun_ == Noun::kNodes) {
      const auto nodes = client.ListAllNodes();
      if (nodes.ok()) {
        changes.Show(nodes->nodes(), format, [&](Look look) { return Render(*nodes, look); });
      }
      return nodes.status();
    }
    const bool sweep = noun_ == Noun::kSweep;
    const auto jobs = sweep ? FetchSweep(client) : FetchJobs(client);
    if (jobs.ok()) {
      changes.Show(jobs->jobs(), format, [&](Look look) {
        return sweep ? RenderSweep(*jobs, look) : Render(*jobs, look);
      });
    }
    return jobs.status();
  }

  // Every second, until a signal comes. A coordinator that has answered once is waited for when it
  // goes away, as `watch` does.
  ExitCode Watch(api::Client& client, OutputFormat format, const Screen& screen) const {
    ListChanges changes(screen);
    EventLoop loop({SIGINT, SIGTERM});
    std::optional<Instant> heard;
    bool lost = false;
    do {
      const absl::Status status =
          RunBeside(client, loop, [&] { return ShowChanges(client, format, changes); });
      if (absl::IsCancelled(status)) break;
      const bool gone = runtime::IsRetryable(status) || absl::IsDeadlineExceeded(status);
      const bool waits = gone && heard && runtime::Now() - *heard < kLostMax;
      if (!status.ok() && !waits) return ReportError(status, screen);
      if (waits && !lost) screen.Say(std::string(status.message()) + "; trying again");
      lost = waits;
      if (status.ok()) heard = runtime::Now();
    } while (loop.RunUntil([] { return false; }, kListRefresh) != EventLoop::Outcome::kInterrupted);
    return ExitCode::kInterrupted;
  }

  Noun noun_ = Noun::kJobs;
  std::string name_;                 // of the job, sweep or node
  std::size_t count_max_ = 100'000;  // of jobs, rounds, decisions
  std::string filter_;               // of jobs, as ListJobsRequest has them
  std::string order_by_;
  bool watch_ = false;  // jobs, a sweep's or nodes: go on with what changes
  std::string output_;  // empty: as the settings say
};

}  // namespace

std::unique_ptr<Verb> MakeGet() { return std::make_unique<GetVerb>(); }

}  // namespace tactus::client
