#include "agent/worker/job_json.h"

namespace tactus::worker {
namespace {

model::ModelOptions ParseModel(const FieldReader& model) {
  const FieldReader sizes = model.Object("options");
  return {.builtin = model.String("builtin").value_or(""),
          .torchscript = model.String("torchscript").value_or(""),
          .loss = model.String("loss").value_or("cross_entropy"),
          .width = Narrow(sizes.Unsigned("width")),
          .heads = Narrow(sizes.Unsigned("heads")),
          .layers = Narrow(sizes.Unsigned("layers")),
          .context = Narrow(sizes.Unsigned("context")),
          .classes = Narrow(sizes.Unsigned("classes")),
          .channels = Narrow(sizes.Unsigned("channels"))};
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

engine::OptimizerOptions ParseOptimizer(const FieldReader& optimizer) {
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
              .time = stop.Seconds("time")};

  const FieldReader batch = spec.Object("adapt").Object("batch");
  job.micro_batch = Narrow(batch.Unsigned("microBatch")).value_or(job.micro_batch);
  return job;
}

}  // namespace tactus::worker
