#include "sdk/tactus_sdk.h"

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agent/worker/agent_link.h"
#include "cuda/device.h"
#include "nlohmann/json.hpp"
#include "policies/plan_names.h"
#include "sdk/session.h"

using tactus::sdk::Request;

struct tactus_run {
  explicit tactus_run(const tactus::sdk::Program& program)
      : segments(program.segments), session(std::make_unique<tactus::sdk::Session>(program)) {}
  tactus_run(const tactus::sdk::Program& program, std::unique_ptr<tactus::worker::Agent> agent)
      : segments(program.segments),
        session(std::make_unique<tactus::sdk::Session>(program, std::move(agent))) {}

  const tactus::cuda::SegmentTable segments;
  std::vector<float*> states{};  // of the last BIND
  std::string text{};            // of the last tactus_plan
  std::string error{};
  std::unique_ptr<tactus::sdk::Session> session;
};

namespace {

// One a thread, as no run is there to keep it.
thread_local std::string open_error;

std::int32_t ResultOf(tactus_run* run, const absl::Status& status) {
  if (status.ok()) return 0;
  run->error = std::string(status.message());
  return absl::IsFailedPrecondition(status) ? TACTUS_MISUSED : TACTUS_FAILED;
}

tactus_request Told(tactus_run* run, const Request& request) {
  run->states.clear();
  for (const std::span<float> state : request.states) run->states.push_back(state.data());
  const bool failed = !request.end.ok();
  run->text = failed ? std::string(request.end.message()) : request.reason;
  return {.kind = static_cast<std::int32_t>(request.kind),
          .first_of_sum = request.first_of_sum,
          .last_of_round = request.last_of_round,
          .failed = failed,
          .parameters = request.parameters.data(),
          .gradients = request.gradients.data(),
          .length = request.gradients.size(),
          .states = run->states.data(),
          .state_count = run->states.size(),
          .buffers = request.buffers.data(),
          .buffer_count = request.buffers.size(),
          .indices = request.indices.data(),
          .index_count = request.indices.size(),
          .unit = request.unit,
          .epoch = request.epoch,
          .gain = request.gain,
          .steps = request.steps,
          .text = run->text.c_str(),
          .suspended = request.suspended,
          .ahead = request.ahead.data(),
          .ahead_count = request.ahead.size(),
          .rounds = request.rounds,
          .epochs = request.epochs,
          .consumed = request.consumed,
          .base_steps = request.base_steps,
          .gathered = request.gathered.data(),
          .members = request.members,
          .place = request.place,
          .over = request.over,
          .early_segments = request.early_segments,
          .memory_bytes = request.memory_bytes,
          .returned = request.returned.data(),
          .returned_count = request.returned.size()};
}

}  // namespace

std::uint32_t tactus_abi(void) { return TACTUS_ABI; }

tactus_run* tactus_open(const char* program) {
  absl::StatusOr<tactus::sdk::Program> parsed = tactus::sdk::ParseProgram(program);
  if (parsed.ok()) return new tactus_run(*parsed);
  open_error = std::string(parsed.status().message());
  return nullptr;
}

tactus_run* tactus_join(const char* program, const char* socket) {
  absl::StatusOr<tactus::sdk::Program> parsed = tactus::sdk::ParseProgram(program);
  absl::Status status = parsed.status();
  if (status.ok()) {
    parsed->joins = true;
    auto link = tactus::worker::AgentLink::Connect(socket);
    if (link.ok()) return new tactus_run(*parsed, *std::move(link));
    status = link.status();
  }
  open_error = std::string(status.message());
  return nullptr;
}

std::int32_t tactus_knows_cuda(void) { return tactus::cuda::KnowsCuda() ? 1 : 0; }

const char* tactus_open_error(void) { return open_error.c_str(); }

std::int32_t tactus_layout(const tactus_run* run, std::uint64_t* offsets, std::uint64_t count) {
  if (count != run->segments.size()) return TACTUS_MISUSED;
  for (std::uint64_t i = 0; i < count; ++i) offsets[i] = run->segments[i].offset;
  return 0;
}

std::int32_t tactus_await(tactus_run* run, std::int32_t milliseconds, tactus_request* asked) {
  const absl::StatusOr<const Request*> request =
      run->session->Await(std::chrono::milliseconds(milliseconds));
  if (!request.ok()) return ResultOf(run, request.status());
  if (*request == nullptr) return 0;
  *asked = Told(run, **request);
  return 1;
}

std::int32_t tactus_reply(tactus_run* run, const tactus_answer* answer) {
  tactus::sdk::Answer given{.loss_sum = answer->loss_sum, .memory = answer->memory};
  if (answer->values != nullptr) {
    given.offer = {.key = answer->key,
                   .values = {answer->values, answer->values + answer->value_count}};
  }
  if (answer->error != nullptr) given.status = absl::AbortedError(answer->error);
  return ResultOf(run, run->session->Reply(std::move(given)));
}

std::int32_t tactus_segment_ready(tactus_run* run, std::uint64_t segment) {
  return ResultOf(run, run->session->SegmentReady(segment));
}

std::int32_t tactus_use_stream(tactus_run* run, void* stream) {
  run->session->UseStream(static_cast<tactus::cuda::Stream>(stream));
  return 0;
}

std::int32_t tactus_get_standing(tactus_run* run, tactus_standing* standing) {
  const tactus::sdk::Standing now = run->session->standing();
  *standing = {};
  standing->rounds = now.rounds;
  standing->epoch = now.epoch;
  standing->samples = now.samples;
  standing->plan_version = now.plan.version;
  standing->rank = now.rank;
  standing->size = now.size;
  if (!now.last) return 0;
  standing->consumed = now.last->epoch_consumed;
  standing->loss = now.last->loss_mean_global;
  standing->gradient_norm = std::sqrt(now.last->gradient_norm2_global);
  standing->gain = now.last->gain;
  standing->progress = now.last->progress;
  standing->applied =
      now.last->nonfinite_members == 0 && std::isfinite(now.last->gradient_norm2_global);
  return 0;
}

const char* tactus_plan(tactus_run* run) {
  const tactus::policies::Plan plan = run->session->standing().plan;
  nlohmann::json decisions = nlohmann::json::array();
  for (const tactus::policies::Decision& decision : run->session->TakeDecisions()) {
    decisions.push_back({{"plan", decision.plan_version},
                         {"axis", tactus::policies::NameOf(decision.axis)},
                         {"round", decision.round},
                         {"from", decision.from},
                         {"to", decision.to},
                         {"reason", decision.reason}});
  }
  const nlohmann::json told = {{"version", plan.version},
                               {"batch_sizes", plan.batch_sizes},
                               {"synchronization", tactus::policies::NameOf(plan.synchronization)},
                               {"period", plan.period},
                               {"aggregation", tactus::policies::NameOf(plan.aggregation)},
                               {"learning_rate", tactus::policies::NameOf(plan.learning_rate_rule)},
                               {"decisions", decisions}};
  run->text = told.dump();
  return run->text.c_str();
}

void tactus_stop(tactus_run* run, const char* reason) { run->session->RequestStop(reason); }

const char* tactus_error(const tactus_run* run) { return run->error.c_str(); }

void tactus_end(tactus_run* run, const char* why) { run->session->End(why); }

void tactus_close(tactus_run* run) { delete run; }
