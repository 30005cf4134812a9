#include "agent/worker/job_json.h"

#include <variant>

#include "agent/engine/local_steps.h"

namespace tactus::worker {
namespace {

std::optional<model::Precision> PrecisionNamed(std::string_view name) {
  if (name == "PRECISION_FLOAT32") return model::Precision::kFloat32;
  if (name == "PRECISION_BFLOAT16") return model::Precision::kBfloat16;
  return std::nullopt;
}

model::ModelOptions ParseModel(const FieldReader& model) {
  const FieldReader sizes = model.Object("options");
  return {
      .builtin = model.String("builtin").value_or(""),
      .torchscript = model.String("torchscript").value_or(""),
      .loss = model.String("loss").value_or("cross_entropy"),
      .width = Narrow(sizes.Unsigned("width")),
      .heads = Narrow(sizes.Unsigned("heads")),
      .layers = Narrow(sizes.Unsigned("layers")),
      .context = Narrow(sizes.Unsigned("context")),
      .classes = Narrow(sizes.Unsigned("classes")),
      .channels = Narrow(sizes.Unsigned("channels")),
      .precision = model.Named("precision", PrecisionNamed).value_or(model::Precision::kFloat32)};
}

std::optional<data::DataOptions::FilePair> ParsePair(const FieldReader& data, const char* key) {
  if (!data.Has(key)) return std::nullopt;
  const FieldReader pair = data.Object(key);
  return data::DataOptions::FilePair{.inputs = pair.String("inputs").value_or(""),
                                     .targets = pair.String("targets").value_or("")};
}

data::DataOptions ParseData(const FieldReader& data) {
  data::DataOptions options{.text = data.String("text"),
                            .cifar = data.String("cifar"),
                            .idx = ParsePair(data, "idx"),
                            .numpy = ParsePair(data, "numpy")};
  options.context = Narrow(data.Unsigned("context")).value_or(options.context);
  options.validation_fraction =
      data.Number("validationFraction").value_or(options.validation_fraction);
  return options;
}

engine::OptimizerOptions ParseAdam(const FieldReader& adam, bool decoupled) {
  engine::AdamOptions options{.weight_decay = decoupled ? 0.01 : 0.0, .decoupled = decoupled};
  options.learning_rate = adam.Number("learningRate").value_or(options.learning_rate);
  options.beta1 = adam.Number("beta1").value_or(options.beta1);
  options.beta2 = adam.Number("beta2").value_or(options.beta2);
  options.epsilon = adam.Number("epsilon").value_or(options.epsilon);
  options.weight_decay = adam.Number("weightDecay").value_or(options.weight_decay);
  return options;
}

engine::OptimizerOptions ParseLamb(const FieldReader& lamb) {
  engine::LambOptions options;
  options.learning_rate = lamb.Number("learningRate").value_or(options.learning_rate);
  options.beta1 = lamb.Number("beta1").value_or(options.beta1);
  options.beta2 = lamb.Number("beta2").value_or(options.beta2);
  options.epsilon = lamb.Number("epsilon").value_or(options.epsilon);
  options.weight_decay = lamb.Number("weightDecay").value_or(options.weight_decay);
  options.ratio_min = lamb.Number("ratioMin").value_or(options.ratio_min);
  options.ratio_max = lamb.Number("ratioMax").value_or(options.ratio_max);
  return options;
}

engine::OptimizerOptions ParseOptimizer(const FieldReader& optimizer) {
  if (optimizer.Has("lamb")) return ParseLamb(optimizer.Object("lamb"));
  if (optimizer.Has("adam")) return ParseAdam(optimizer.Object("adam"), false);
  if (optimizer.Has("adamw")) return ParseAdam(optimizer.Object("adamw"), true);
  const FieldReader sgd = optimizer.Object("sgd");
  engine::SgdOptions options;
  options.learning_rate = sgd.Number("learningRate").value_or(options.learning_rate);
  options.momentum = sgd.Number("momentum").value_or(options.momentum);
  options.weight_decay = sgd.Number("weightDecay").value_or(options.weight_decay);
  options.nesterov = sgd.Bool("nesterov").value_or(false);
  return options;
}

policies::Schedule ParseSchedule(const FieldReader& reader, double base) {
  using Shape = policies::Schedule::Shape;
  policies::Schedule schedule{.base = base};
  schedule.warmup_steps = Narrow(reader.Unsigned("warmupSteps")).value_or(0);
  if (reader.Has("step")) {
    const FieldReader step = reader.Object("step");
    schedule.shape = Shape::kStep;
    schedule.boundaries = step.WideList("boundaries");
    schedule.factor = step.Number("factor").value_or(schedule.factor);
  } else if (reader.Has("cosine")) {
    const FieldReader cosine = reader.Object("cosine");
    schedule.shape = Shape::kCosine;
    schedule.steps = cosine.Unsigned("steps").value_or(schedule.steps);
    schedule.final_rate = cosine.Number("finalRate").value_or(schedule.final_rate);
  }
  return schedule;
}

void ParseAdapt(const FieldReader& adapt, WorkerJob& job) {
  const FieldReader batch = adapt.Object("batch");
  job.per_worker = Narrow(batch.Unsigned("perWorker")).value_or(job.per_worker);
  job.micro_batch = Narrow(batch.Unsigned("microBatch")).value_or(job.micro_batch);

  const FieldReader rate = adapt.Object("learningRate");
  const double base =
      std::visit([](const auto& options) { return options.learning_rate; }, job.optimizer);
  job.learning_rate.schedule = ParseSchedule(rate.Object("schedule"), base);
  job.learning_rate.base_batch = Narrow(rate.Unsigned("baseBatch")).value_or(job.per_worker);

  const FieldReader synchronization = adapt.Object("synchronization");
  const bool adacomm = synchronization.String("policy") == "SYNCHRONIZATION_POLICY_ADACOMM";
  job.block_momentum =
      synchronization.Number("blockMomentum").value_or(adacomm ? engine::kAdacommBlockMomentum : 0);
  const std::string local = synchronization.String("localMomentum").value_or("");
  job.keep_local_momentum = local == "LOCAL_MOMENTUM_KEEP" || (local.empty() && !adacomm);
}

}  // namespace

WorkerJob ParseJob(const FieldReader& spec) {
  WorkerJob job;
  job.name = spec.String("name").value_or("");
  job.seed = spec.Unsigned("seed").value_or(job.seed);
  job.model = ParseModel(spec.Object("model"));
  job.model.seed = job.seed;

  const FieldReader data = spec.Object("data");
  job.data = ParseData(data);
  job.validation_samples_max =
      data.Unsigned("validationSamplesMax").value_or(job.validation_samples_max);

  const FieldReader optimizer = spec.Object("optimizer");
  job.optimizer = ParseOptimizer(optimizer);
  job.clip_norm = optimizer.Number("clipNorm");

  const FieldReader stop = spec.Object("stop");
  job.stop = {.train_loss = stop.Number("trainLoss"),
              .epochs = stop.Unsigned("epochs"),
              .rounds = stop.Unsigned("rounds"),
              .steps = stop.Number("steps"),
              .time = stop.Seconds("time")};
  ParseAdapt(spec.Object("adapt"), job);
  job.snapshots_every = spec.Object("snapshots").Seconds("every");
  return job;
}

}  // namespace tactus::worker
