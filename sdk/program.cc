#include "sdk/program.h"

#include <utility>

#include "agent/worker/proto_json.h"
#include "policies/axes.h"
#include "policies/catalogue.h"

namespace tactus::sdk {
namespace {

using worker::FieldReader;
using worker::Json;

template <typename T>
void Take(std::optional<T> found, T& value) {
  if (found) value = *std::move(found);
}

void ReadSegments(const Json& object, std::string& error, cuda::SegmentTable& segments) {
  const auto list = object.find("segments");
  if (list == object.end() || !list->is_array() || list->empty()) {
    error = "segments: a list of one parameter or more is wanted";
    return;
  }
  for (std::size_t i = 0; i < list->size(); ++i) {
    const std::string path = "segments[" + std::to_string(i) + "]";
    if (!(*list)[i].is_object()) {
      error = path + ": an object is wanted";
      return;
    }
    const FieldReader from((*list)[i], path, error);
    cuda::Segment segment{.name = from.String("name").value_or(""), .length = 1};
    for (const std::uint64_t size : from.WideList("shape")) {
      segment.shape.push_back(static_cast<std::int64_t>(size));
      segment.length *= size;
    }
    segments.push_back(std::move(segment));
  }
  cuda::AssignOffsets(segments);
}

void ReadOptimizer(const FieldReader& from, engine::ForeignOptions& optimizer) {
  Take(from.String("kind"), optimizer.kind);
  optimizer.state_buffers = from.Unsigned("buffers").value_or(0);
  Take(from.Bool("linear"), optimizer.is_linear);
  Take(from.Bool("counts_steps"), optimizer.has_step_counts);
  optimizer.bending_decay = from.Number("second_decay");
  if (!from.Has("momentum")) return;
  optimizer.window_momentum =
      policies::WindowMomentum{.momentum = *from.Number("momentum"),
                               .nesterov = from.Bool("nesterov").value_or(false),
                               .weight = from.Number("weight").value_or(1)};
}

void ReadStop(const FieldReader& from, engine::StopOptions& stop) {
  stop.epochs = from.Unsigned32("epochs");
  stop.steps = from.Number("steps");
  stop.train_loss = from.Number("train_loss");
  if (const std::optional<double> seconds = from.Number("seconds")) stop.time = Seconds(*seconds);
}

void ReadAdapt(const FieldReader& from, policies::PlannerOptions& adapt) {
  for (const policies::Axis axis : policies::kAxes) {
    const std::string field(policies::FieldOf(axis));
    const std::optional<std::string> name = from.String(field.c_str());
    if (!name) continue;
    if (policies::FindPolicy(axis, *name) == nullptr) {
      std::string allowed;
      for (const policies::Policy& policy : policies::PoliciesOf(axis)) {
        allowed += (allowed.empty() ? "" : ", ") + std::string(policy.name);
      }
      return from.Refuse(field.c_str(), "found \"" + *name + "\", allowed: " + allowed);
    }
    policies::PolicyOf(adapt, axis) = *name;
  }
  Take(from.Unsigned32("batch_min"), adapt.batch.batch_min);
  Take(from.Unsigned32("batch_max"), adapt.batch.batch_max);
  Take(from.Unsigned32("period"), adapt.synchronization.period);
}

// What the planner must know of the rest.
void Complete(Program& program) {
  policies::PlannerOptions& adapt = program.adapt;
  adapt.batch.per_worker = program.batch;
  adapt.base_batch = program.batch;
  adapt.optimizer = program.optimizer.kind;
  adapt.clip_norm = program.clip_norm;
  const auto& momentum = program.optimizer.window_momentum;
  if (program.optimizer.kind == "sgd" && momentum) adapt.momentum = momentum->momentum;
}

std::string WrongRange(const Program& program) {
  if (program.train_samples < 1) return "train_samples: found 0, allowed are 1 and more";
  if (program.batch < 1) return "batch: found 0, allowed are 1 and more";
  if (program.micro_batch < 1) return "micro_batch: found 0, allowed are 1 and more";
  if (program.clip_norm && !(*program.clip_norm > 0)) return "clip_norm: allowed is above 0";
  if (program.nonfinite_rounds_max == 0u) {
    return "nonfinite_rounds_max: found 0, allowed are 1 and more";
  }
  if (cuda::FlatLength(program.segments) == 0) return "segments: there is no parameter to train";
  return "";
}

}  // namespace

absl::StatusOr<Program> ParseProgram(std::string_view json) {
  const Json object = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return absl::InvalidArgumentError("a program is a JSON object");
  Program program;
  program.adapt.batch_policy = "fixed";
  std::string error;
  const FieldReader from(object, "", error);
  Take(from.String("name"), program.name);
  Take(from.String("device"), program.device);
  Take(from.Unsigned("buffers"), program.buffers);
  program.train_samples = from.Unsigned("train_samples").value_or(0);
  Take(from.Unsigned("seed"), program.seed);
  program.batch = from.Unsigned32("batch").value_or(0);
  program.micro_batch = from.Unsigned32("micro_batch").value_or(program.batch);
  program.clip_norm = from.Number("clip_norm");
  program.nonfinite_rounds_max = from.Unsigned32("nonfinite_rounds_max");
  Take(from.String("output"), program.output);
  Take(from.Bool("reads_ahead"), program.reads_ahead);
  Take(from.Bool("lends_memory"), program.lends_memory);
  ReadSegments(object, error, program.segments);
  ReadOptimizer(from.Object("optimizer"), program.optimizer);
  ReadStop(from.Object("stop"), program.stop);
  ReadAdapt(from.Object("adapt"), program.adapt);
  if (error.empty()) error = WrongRange(program);
  if (!error.empty()) return absl::InvalidArgumentError(error);
  Complete(program);
  return program;
}

}  // namespace tactus::sdk
