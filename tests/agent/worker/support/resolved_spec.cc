#include "tests/agent/worker/support/resolved_spec.h"

#include <map>
#include <string>

namespace tactus::worker {
namespace {

using nlohmann::json;

json Over(const char* base, const json& given) {
  json merged = json::parse(base);
  merged.merge_patch(given);
  return merged;
}

constexpr char kSpec[] = R"({
  "name": "test", "seed": "1",
  "model": {"loss": "cross_entropy", "precision": "PRECISION_FLOAT32"},
  "data": {"validationFraction": 0.1, "validationSamplesMax": "10000", "context": 64},
  "adapt": {"batch": {"perWorker": 32, "microBatch": 64},
            "learningRate": {"baseBatch": 32, "schedule": {"warmupSteps": 0}}}})";

const std::map<std::string, const char*> kOptimizerFields = {
    {"sgd", R"({"learningRate": 0.1, "momentum": 0, "weightDecay": 0, "nesterov": false})"},
    {"adam", R"({"learningRate": 0.001, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8,
                 "weightDecay": 0})"},
    {"adamw", R"({"learningRate": 0.001, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8,
                  "weightDecay": 0.01})"},
    {"lamb", R"({"learningRate": 0.001, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-6,
                 "weightDecay": 0.01, "ratioMin": 0.01, "ratioMax": 10})"}};

}  // namespace

json ResolvedSpec(const json& given) {
  json spec = Over(kSpec, given);
  json& optimizer = spec["optimizer"];
  bool chosen = false;
  for (const auto& [name, complete] : kOptimizerFields) {
    if (!optimizer.contains(name)) continue;
    optimizer[name] = Over(complete, optimizer[name]);
    chosen = true;
  }
  if (!chosen) optimizer["sgd"] = json::parse(kOptimizerFields.at("sgd"));
  return spec;
}

}  // namespace tactus::worker
