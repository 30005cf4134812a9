#include "agent/worker/job_json.h"

#include "agent/data/option_fields.h"
#include "agent/engine/option_fields.h"
#include "agent/model/option_fields.h"
#include "agent/worker/json_archive.h"

namespace tactus::worker {

WorkerJob ParseJob(const FieldReader& from) {
  WorkerJob job;
  JsonReader spec(from, Absent::kIsWrong);
  spec("name", job.name);
  if (!spec.Has("program")) {
    spec.Within("model", [&](auto& model) {
      Fields(model, job.model);
      if (model.Has("weights")) model("weights", job.weights);
    });
    spec.Within("data", [&](auto& data) { Fields(data, job.data); });
  }
  ReadSpec(spec, job.engine);
  spec.Within("adapt", [&](auto& adapt) {
    adapt.Within("batch", [&](auto& batch) { batch("per_worker", job.per_worker); });
  });
  spec.Within("snapshots", [&](auto& snapshots) { snapshots("every", job.snapshots_every); });
  spec.Within("checkpoints",
              [&](auto& checkpoints) { checkpoints("every", job.checkpoints_every); });
  // Older coordinators do not say.
  if (spec.Has("result")) spec("result", job.result);
  job.model.seed = job.engine.seed;
  return job;
}

}  // namespace tactus::worker
