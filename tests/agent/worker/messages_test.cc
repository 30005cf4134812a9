#include "agent/worker/messages.h"

#include <limits>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/agent/worker/support/resolved_spec.h"

namespace tactus::worker {
namespace {

std::string StartWith(const nlohmann::json& spec) {
  return nlohmann::json{{"start", {{"spec", spec}}}}.dump();
}

WorkerJob JobOf(const std::string& given) {
  const auto message = ParseToWorker(StartWith(ResolvedSpec(nlohmann::json::parse(given))));
  EXPECT_TRUE(message.ok()) << message.status();
  return std::get<StartMessage>(*message).job;
}

TEST(WorkerMessagesTest, WhatASpecMayLeaveOutIsNotThere) {
  const WorkerJob job = JobOf(R"({"model": {"builtin": "bytes-lm"}})");

  EXPECT_EQ(job.model.builtin, "bytes-lm");
  EXPECT_EQ(job.model.torchscript, "");
  EXPECT_FALSE(job.model.width.has_value());
  EXPECT_FALSE(job.engine.clip_norm.has_value());
  EXPECT_FALSE(job.engine.stop.epochs.has_value());
  EXPECT_FALSE(job.engine.stop.steps.has_value());
  EXPECT_FALSE(job.snapshots_every.has_value());
  EXPECT_EQ(job.engine.learning_rate.schedule.base, 0.1);
  EXPECT_EQ(job.engine.learning_rate.schedule.shape, policies::Schedule::Shape::kConstant);
  EXPECT_EQ(job.engine.block_momentum, 0);
  EXPECT_TRUE(job.engine.keep_local_momentum);
}

TEST(WorkerMessagesTest, AWorkerHasNoDefaults) {
  const auto without = [](const char* pointer) {
    nlohmann::json spec = ResolvedSpec({{"model", {{"builtin", "bytes-lm"}}}});
    const nlohmann::json::json_pointer at(pointer);
    spec[at.parent_pointer()].erase(at.back());
    return std::string(ParseToWorker(StartWith(spec)).status().message());
  };

  EXPECT_EQ(without("/seed"), "message: start.spec.seed: is missing");
  EXPECT_EQ(without("/model/loss"), "message: start.spec.model.loss: is missing");
  EXPECT_EQ(without("/data/context"), "message: start.spec.data.context: is missing");
  EXPECT_EQ(without("/optimizer/sgd/momentum"),
            "message: start.spec.optimizer.sgd.momentum: is missing");
  EXPECT_EQ(without("/adapt/batch/perWorker"),
            "message: start.spec.adapt.batch.perWorker: is missing");
  EXPECT_EQ(without("/adapt/learningRate/schedule/warmupSteps"),
            "message: start.spec.adapt.learningRate.schedule.warmupSteps: is missing");
}

TEST(WorkerMessagesTest, PrecisionIsRead) {
  EXPECT_EQ(JobOf(R"({"model": {"precision": "PRECISION_BFLOAT16"}})").model.precision,
            model::Precision::kBfloat16);
  EXPECT_EQ(JobOf(R"({"model": {"precision": "PRECISION_FLOAT32"}})").model.precision,
            model::Precision::kFloat32);
}

TEST(WorkerMessagesTest, AdaptingIsReadFieldByField) {
  const WorkerJob job = JobOf(R"({
      "optimizer": {"lamb": {"learningRate": 0.02, "beta1": 0.8, "beta2": 0.95, "epsilon": 1e-7,
                             "weightDecay": 0.1, "ratioMin": 0.2, "ratioMax": 4}},
      "stop": {"steps": 1500.5},
      "adapt": {"batch": {"perWorker": 16},
                "synchronization": {"policy": "SYNCHRONIZATION_POLICY_PERIODIC", "period": 8,
                                    "blockMomentum": 0.25,
                                    "localMomentum": "LOCAL_MOMENTUM_RESET"},
                "learningRate": {"policy": "LEARNING_RATE_POLICY_SQRT", "baseBatch": 128,
                                 "schedule": {"step": {"boundaries": ["3000", 6000],
                                                       "factor": 0.2},
                                              "warmupSteps": 100}}}})");

  const auto& lamb = std::get<engine::LambOptions>(job.engine.optimizer);
  EXPECT_EQ(lamb.learning_rate, 0.02);
  EXPECT_EQ(lamb.beta1, 0.8);
  EXPECT_EQ(lamb.beta2, 0.95);
  EXPECT_EQ(lamb.epsilon, 1e-7);
  EXPECT_EQ(lamb.weight_decay, 0.1);
  EXPECT_EQ(lamb.ratio_min, 0.2);
  EXPECT_EQ(lamb.ratio_max, 4);
  EXPECT_EQ(job.engine.stop.steps, 1500.5);
  EXPECT_EQ(job.engine.block_momentum, 0.25);
  EXPECT_FALSE(job.engine.keep_local_momentum);
  EXPECT_EQ(job.engine.learning_rate.base_batch, 128u);
  const policies::Schedule& schedule = job.engine.learning_rate.schedule;
  EXPECT_EQ(schedule.base, 0.02);
  EXPECT_EQ(schedule.warmup_steps, 100u);
  EXPECT_EQ(schedule.shape, policies::Schedule::Shape::kStep);
  EXPECT_EQ(schedule.boundaries, (std::vector<std::uint64_t>{3000, 6000}));
  EXPECT_EQ(schedule.factor, 0.2);
}

TEST(WorkerMessagesTest, WhatIsSaidOfTheEncodingIsRead) {
  const engine::EncodingOptions dq =
      JobOf(R"({"adapt": {"encoding": {"policy": "ENCODING_POLICY_DQ", "bits": 5.5,
                                       "refinement": 16}}})")
          .engine.encoding;
  const engine::EncodingOptions adacomp =
      JobOf(R"({"adapt": {"encoding": {"policy": "ENCODING_POLICY_ADACOMP", "bin": 100,
                                       "convolutionBin": 10}}})")
          .engine.encoding;

  EXPECT_EQ(dq.dq.first_bits, 5.5);
  EXPECT_EQ(dq.dq.rho, 16);
  EXPECT_EQ(dq.adacomp.bin, engine::AdacompOptions().bin);
  EXPECT_EQ(adacomp.adacomp.bin, 100u);
  EXPECT_EQ(adacomp.adacomp.bin_of_convolutions, 10u);
}

TEST(WorkerMessagesTest, ACosineIsRead) {
  const WorkerJob job = JobOf(R"({"adapt": {
      "learningRate": {"baseBatch": 16, "schedule": {"cosine": {"steps": "9000", "finalRate": 0.001}}}}})");

  EXPECT_EQ(job.engine.learning_rate.base_batch, 16u);
  EXPECT_EQ(job.engine.learning_rate.schedule.shape, policies::Schedule::Shape::kCosine);
  EXPECT_EQ(job.engine.learning_rate.schedule.steps, 9000u);
  EXPECT_EQ(job.engine.learning_rate.schedule.final_rate, 0.001);
}

policies::Plan PlanOf(const std::string& plan) {
  const auto message = ParseToWorker(R"({"plan": )" + plan + "}");
  EXPECT_TRUE(message.ok()) << message.status();
  return std::get<policies::Plan>(*message);
}

TEST(WorkerMessagesTest, APlanIsReadFieldByField) {
  EXPECT_EQ(PlanOf(R"({"version": "7", "synchronization": "delayed", "period": 1024,
                       "aggregation": "adasum", "learningRateRule": "sqrt", "encoding": "float16",
                       "batchSizes": [3, 0], "trial": "runs", "reason": "why"})"),
            (policies::Plan{.version = 7,
                            .synchronization = policies::Synchronization::kDelayed,
                            .period = 1024,
                            .aggregation = policies::Aggregation::kAdasum,
                            .learning_rate_rule = policies::LearningRateRule::kSqrt,
                            .encoding = policies::Encoding::kFloat16,
                            .batch_sizes = {3, 0},
                            .trial = policies::Trial::kRuns,
                            .reason = "why"}));
}

TEST(WorkerMessagesTest, APlanOfAnOlderCoordinatorRunsAsItAlwaysDid) {
  EXPECT_EQ(PlanOf(R"({"version": "7", "synchronization": "", "period": 0, "batchSizes": [3]})"),
            (policies::Plan{.version = 7, .batch_sizes = {3}}));
}

TEST(WorkerMessagesTest, APlanOfANewerCoordinatorIsRefused) {
  EXPECT_EQ(ParseToWorker(R"({"plan": {"aggregation": "telepathy"}})").status().message(),
            "message: plan.aggregation: found \"telepathy\", allowed is average or adasum");
  EXPECT_EQ(ParseToWorker(R"({"plan": {"encoding": "zip"}})").status().message(),
            "message: plan.encoding: found \"zip\", allowed is " + NamesOf<policies::Encoding>());
}

TEST(WorkerMessagesTest, EveryFieldOfTheSpecIsRead) {
  nlohmann::json given = nlohmann::json::parse(R"({"start": {
      "jobId": "7", "workerId": "12", "device": "cpu:3", "emulatedSpeed": 0.25,
      "emulatedCpuFactor": 2.5, "address": "10.0.0.1", "outputDirectory": "/out",
      "checkpoint": "/checkpoint.safetensors",
      "spec": {
        "name": "j", "seed": "9",
        "model": {"torchscript": "/m.pt", "loss": "mse", "options": {"width": 64, "heads": 2,
                  "layers": 3, "context": 32, "classes": 5, "channels": 1}},
        "data": {"numpy": {"inputs": "/x.npy", "targets": "/y.npy"}, "validationFraction": 0.25,
                 "validationSamplesMax": "77", "context": 16},
        "optimizer": {"adamw": {"learningRate": 0.5, "beta1": 0.8, "beta2": 0.9, "epsilon": 1e-6,
                                "weightDecay": 0.3}, "clipNorm": 1.5},
        "stop": {"trainLoss": 1.8, "epochs": 4, "time": "90.500s", "rounds": "123"},
        "adapt": {"batch": {"microBatch": 8}}}}})");
  given["start"]["spec"] = ResolvedSpec(given["start"]["spec"]);

  const auto message = ParseToWorker(given.dump());

  ASSERT_TRUE(message.ok()) << message.status();
  const StartMessage& start = std::get<StartMessage>(*message);
  EXPECT_EQ(start.worker_id, 12u);
  EXPECT_EQ(start.device, "cpu:3");
  EXPECT_EQ(start.emulated_speed, 0.25);
  EXPECT_EQ(start.emulated_cpu_factor, 2.5);
  EXPECT_EQ(start.address, "10.0.0.1");
  EXPECT_EQ(start.output_directory, "/out");
  EXPECT_EQ(start.checkpoint, "/checkpoint.safetensors");
  const WorkerJob& job = start.job;
  EXPECT_EQ(job.engine.seed, 9u);
  EXPECT_EQ(job.model.torchscript, "/m.pt");
  EXPECT_EQ(job.model.loss, "mse");
  EXPECT_EQ(job.model.width, 64u);
  EXPECT_EQ(job.model.heads, 2u);
  EXPECT_EQ(job.model.layers, 3u);
  EXPECT_EQ(job.model.context, 32u);
  EXPECT_EQ(job.model.classes, 5u);
  EXPECT_EQ(job.model.channels, 1u);
  EXPECT_EQ(job.model.seed, 9u);
  EXPECT_EQ(job.data.numpy->inputs, "/x.npy");
  EXPECT_EQ(job.data.numpy->targets, "/y.npy");
  EXPECT_EQ(job.data.validation_fraction, 0.25);
  EXPECT_EQ(job.data.context, 16u);
  EXPECT_EQ(job.data.validation_samples_max, 77u);
  const auto& adam = std::get<engine::AdamOptions>(job.engine.optimizer);
  EXPECT_TRUE(adam.decoupled);
  EXPECT_EQ(adam.learning_rate, 0.5);
  EXPECT_EQ(adam.beta1, 0.8);
  EXPECT_EQ(adam.beta2, 0.9);
  EXPECT_EQ(adam.epsilon, 1e-6);
  EXPECT_EQ(adam.weight_decay, 0.3);
  EXPECT_EQ(job.engine.clip_norm, 1.5);
  EXPECT_EQ(job.engine.stop.train_loss, 1.8);
  EXPECT_EQ(job.engine.stop.epochs, 4u);
  EXPECT_EQ(job.engine.stop.rounds, 123u);
  EXPECT_EQ(job.engine.stop.time, Seconds(90.5));
  EXPECT_EQ(job.engine.micro_batch, 8u);
}

TEST(WorkerMessagesTest, LinesThatAreNoMessageAreRefusedWithTheField) {
  const auto reason = [](const char* line) {
    return std::string(ParseToWorker(line).status().message());
  };

  EXPECT_EQ(reason("{"), "message: not a JSON object");
  EXPECT_EQ(reason("[]"), "message: not a JSON object");
  EXPECT_EQ(reason("{}"), "message: none of start, group, peers, plan, stop");
  EXPECT_EQ(reason(R"({"plan": 3})"), "message: plan: not an object");
  EXPECT_EQ(reason(R"({"plan": {"version": -1}})"), "message: plan.version: not a whole number");
  EXPECT_EQ(reason(R"({"plan": {"period": "4294967296"}})"),
            "message: plan.period: not a whole number below 2^32");
  EXPECT_EQ(reason(R"({"plan": {"batchSizes": [1, "x"]}})"),
            "message: plan.batchSizes: not a list of whole numbers");
  EXPECT_EQ(reason(R"({"plan": {"batchSizes": {"a": 1}}})"),
            "message: plan.batchSizes: not a list");
  EXPECT_EQ(reason(StartWith(ResolvedSpec({{"stop", {{"time", "5m"}}}})).c_str()),
            "message: start.spec.stop.time: not a duration such as \"1.5s\"");
  EXPECT_EQ(reason(R"({"peers": {"endpoints": ["*"]}})"),
            "message: peers.endpoints: not a list of base64");
  EXPECT_EQ(reason(R"({"stop": {"discard": 1}})"), "message: stop.discard: not true or false");
}

TEST(WorkerMessagesTest, AStopSaysWhatIsWanted) {
  const auto stop = [](const char* line) { return std::get<StopMessage>(*ParseToWorker(line)); };

  EXPECT_FALSE(stop(R"({"stop": {"reason": "enough"}})").suspend);
  EXPECT_FALSE(stop(R"({"stop": {"discard": true}})").suspend);
  EXPECT_TRUE(stop(R"({"stop": {"discard": true}})").discard);
  EXPECT_TRUE(stop(R"({"stop": {"reason": "paused", "suspend": true}})").suspend);
  EXPECT_EQ(stop(R"({"stop": {"reason": "paused", "suspend": true}})").reason, "paused");
}

TEST(WorkerMessagesTest, WhoWasSuspendedSaysSo) {
  const auto line = [](bool suspended) {
    return nlohmann::json::parse(Format(FinishedMessage{.reason = "r", .suspended = suspended}));
  };

  EXPECT_EQ(line(true)["finished"]["suspended"], true);
  EXPECT_EQ(line(false)["finished"]["suspended"], false);
}

TEST(WorkerMessagesTest, WhatConcernsTheQueueIsNotTheWorkers) {
  const WorkerJob job = JobOf(R"({
      "name": "j", "priority": -3,
      "workers": {"min": 1, "selector": {"gpu": "h200"}, "tolerations": ["spot", "zone=b"]},
      "adapt": {"frozen": ["batch"], "batch": {"microBatch": 8}}})");

  EXPECT_EQ(job.name, "j");
  EXPECT_EQ(job.engine.micro_batch, 8u);
}

TEST(WorkerMessagesTest, AGroupMayHaveASecretOfAnyBytes) {
  const auto group = [](const char* line) { return std::get<GroupMessage>(*ParseToWorker(line)); };

  const GroupMessage told =
      group(R"({"group": {"generation": "3", "secret": "AP8KIg==", "encrypted": true}})");
  EXPECT_EQ(told.secret, std::string("\0\xff\n\"", 4));
  EXPECT_TRUE(told.encrypted);
  // Of an older coordinator.
  EXPECT_EQ(group(R"({"group": {"generation": "3"}})").secret, "");
  EXPECT_FALSE(group(R"({"group": {"generation": "3"}})").encrypted);
}

TEST(WorkerMessagesTest, EndpointsMaybeAnyBytes) {
  const std::string bytes("\0\xff\n\"", 4);
  const auto line =
      nlohmann::json::parse(Format(EndpointMessage{.generation = 3, .endpoint = bytes}));
  const std::string peers =
      nlohmann::json{
          {"peers", {{"generation", "3"}, {"endpoints", {line["endpoint"]["endpoint"]}}}}}
          .dump();

  const auto message = ParseToWorker(peers);

  ASSERT_TRUE(message.ok());
  EXPECT_EQ(std::get<PeersMessage>(*message).endpoints, std::vector<std::string>{bytes});
}

TEST(WorkerMessagesTest, NonFiniteNumbersAndOddBytesStayOneLineOfJson) {
  const std::string line = Format(FinishedMessage{
      .reason = "bad \xff\xfe\nbytes", .train_loss = std::numeric_limits<double>::quiet_NaN()});

  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(line)["finished"]["trainLoss"], "NaN");
}

}  // namespace
}  // namespace tactus::worker
