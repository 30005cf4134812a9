#include "coordinator/telemetry/event_log.h"

#include <spdlog/spdlog.h>

#include <string>
#include <type_traits>
#include <variant>

#include "absl/strings/str_join.h"
#include "policies/axes.h"
#include "protocol/worker_message_fields.h"
#include "runtime/logging.h"

namespace tactus::telemetry {
namespace {

using runtime::Quoted;

std::shared_ptr<spdlog::logger> Log() { return runtime::Logger("events"); }

void Write(const job::JobSubmitted& event, Instant) {
  Log()->info("job submitted job={} job_number={} request={}", event.record.name,
              event.record.id.value, Quoted(event.record.request_id));
}

void Write(const job::JobCancelled& event, const std::string& job) {
  Log()->info("job cancelled job={} job_number={} discard={} reason={}", job, event.job.value,
              event.discard, Quoted(event.reason));
}

void Write(const job::NodeJoined& event, Instant) {
  Log()->info("node joined node={} devices={} running_workers={} same_incarnation={}", event.node,
              event.devices.size(), event.running_workers.size(), event.same_incarnation);
}

void Write(const job::NodeUnreachable& event, Instant) {
  Log()->warn("node unreachable node={} reason={}", event.node, Quoted(event.reason));
}

void Write(const job::NodeLost& event, Instant) {
  Log()->warn("node lost node={} reason={}", event.node, Quoted(event.reason));
}

void Write(const job::NodeLeaving& event, Instant) {
  Log()->info("node leaving node={} within_seconds={} reason={}", event.node,
              ToSeconds(event.leave.within), Quoted(event.leave.reason));
}

void Write(const job::WorkerSaid& event, Instant now) {
  if (const auto* failed = std::get_if<job::FailedMessage>(&event.message)) {
    return Log()->warn("worker failed worker={} field={} message={}", event.worker.value,
                       Quoted(failed->field), Quoted(failed->message));
  }
  const auto* lost = std::get_if<job::GroupLostMessage>(&event.message);
  if (lost != nullptr && !lost->planned) {
    return Log()->warn("worker lost its group worker={} generation={} rounds={} reason={}",
                       event.worker.value, lost->generation, lost->rounds, Quoted(lost->reason));
  }
  const char* const kind =
      std::visit([](const auto& message) { return kKind<std::remove_cvref_t<decltype(message)>>; },
                 event.message);
  Log()->debug("worker said worker={} message={} at={}", event.worker.value, kind,
               now.time_since_epoch().count());
}

void Write(const job::WorkerExited& event, Instant) {
  const bool clean = event.exit_code == 0 && event.signal == 0;
  Log()->log(clean ? spdlog::level::debug : spdlog::level::warn,
             "worker exited worker={} exit_code={} signal={}", event.worker.value, event.exit_code,
             event.signal);
}

void Write(const job::ArtifactComing& event, const std::string& job) {
  Log()->debug("artifact coming job={} job_number={} worker={}", job, event.job.value,
               event.worker.value);
}

void Write(const job::ArtifactStored& event, const std::string& job) {
  Log()->info("artifact stored job={} job_number={} path={} size_bytes={}", job, event.job.value,
              Quoted(event.artifact.path), event.artifact.size_bytes);
}

void Write(const job::JobUpdated& event, const std::string& job) {
  Log()->info("job updated job={} job_number={} priority={} needs_restart={}", job, event.job.value,
              event.settings.priority, event.needs_restart);
}

void Write(const job::DecisionReverted& event, const std::string& job) {
  const policies::Decision& decision = event.decision;
  Log()->info("decision reverted job={} job_number={} decision={} to={}", job, event.job.value,
              policies::IdOf({.plan_version = decision.plan_version, .axis = decision.axis}),
              Quoted(decision.from));
}

void Write(const job::JobPaused& event, const std::string& job) {
  Log()->info("job paused job={} job_number={}", job, event.job.value);
}

void Write(const job::JobResumed& event, const std::string& job) {
  Log()->info("job resumed job={} job_number={}", job, event.job.value);
}

void Write(const job::NodeMarked& event, Instant) {
  Log()->info("node marked node={} cordoned={} draining={}", event.node.name, event.node.cordoned,
              event.node.draining);
}

void Write(const job::NodeDeleted& event, Instant) {
  Log()->info("node deleted node={}", event.node);
}

void Write(const job::DeviceFaultsChanged& event, Instant) {
  const std::string faults = absl::StrJoin(event.faults, "; ", absl::PairFormatter(": "));
  Log()->log(faults.empty() ? spdlog::level::info : spdlog::level::warn,
             "device faults changed node={} faults={}", event.node, Quoted(faults));
}

void Write(const job::LinkProbed& event, Instant) {
  Log()->info("link probed from={} to={} bytes_per_second={}", event.from, event.to,
              event.bytes_per_second);
}

void Write(const job::Ticked&, Instant now) {
  Log()->debug("ticked at={}", now.time_since_epoch().count());
}

}  // namespace

void LogEvent(const job::Event& event, Instant now, const NameOfJob& name_of) {
  std::visit(
      [&](const auto& one) {
        if constexpr (requires { one.job; }) {
          Write(one, name_of(one.job));
        } else {
          Write(one, now);
        }
      },
      event);
}

void LogChange(const job::JobRecord& record, const char* state) {
  Log()->info("job state changed job={} job_number={} state={} workers={} rounds={} reason={}",
              record.name, record.id.value, state, record.members.size(), record.progress.rounds,
              Quoted(record.state_reason));
}

void LogLostAttempt(const job::JobRecord& record) {
  const job::AttemptRecord& attempt = record.attempts.back();
  Log()->warn("job attempt lost job={} attempt={} rounds={} goes_on_from={} reason={}", record.name,
              attempt.number, attempt.rounds, record.progress.rounds, Quoted(attempt.reason));
}

void LogRegroup(const job::JobRecord& record) {
  Log()->warn("job regrouped job={} generation={} workers={} rounds={} reason={}", record.name,
              record.generation, record.members.size(), record.progress.rounds,
              Quoted(record.regroup_reason));
}

void LogDifference(const job::JobRecord& record) {
  Log()->warn("parameters differed job={} generation={} reason={}", record.name, record.generation,
              Quoted(record.difference_reason));
}

void LogSelection(const job::JobRecord& record) {
  Log()->info("subset chosen job={} generation={} number={} subset={}", record.name,
              record.generation, record.selections, Quoted(record.selection));
}

void LogResize(const job::JobRecord& record) {
  Log()->info("job resized job={} generation={} workers={} rounds={} reason={}", record.name,
              record.generation, record.members.size(), record.progress.rounds,
              Quoted(record.resize_reason));
}

void LogRelearning(const job::PublishRelearning& relearning, const NameOfJob& name_of) {
  Log()->warn("planner learns anew job={} job_number={} reason={}", name_of(relearning.job),
              relearning.job.value, Quoted(relearning.reason));
}

void LogSkipped(JobId id, const policies::Report& report, const NameOfJob& name_of) {
  Log()->warn(
      "update skipped job={} job_number={} round={} members={} reason=\"numbers were not finite\"",
      name_of(id), id.value, report.round, report.nonfinite_members);
}

void LogRepeated(const std::string& job, std::uint64_t passes) {
  Log()->warn("passes repeated job={} passes={} reason=\"memory was short\"", job, passes);
}

void LogUnrecorded(const std::string& job, std::uint64_t rounds) {
  Log()->warn("rounds not recorded job={} rounds={} reason=\"reports were lost\"", job, rounds);
}

void LogDecision(const job::PublishDecision& decision, const NameOfJob& name_of) {
  const policies::Plan& plan = decision.plan;
  std::string rows;
  for (const policies::PlanRow& row : policies::RowsOf(plan)) {
    rows += std::string(row.name) + "=" + policies::TextOf(row.value) + " ";
  }
  Log()->info("plan decided job={} job_number={} plan={} {plan_rows}reason={}",
              name_of(decision.job), decision.job.value, plan.version, Quoted(plan.reason),
              fmt::arg("plan_rows", rows));
}

}  // namespace tactus::telemetry
