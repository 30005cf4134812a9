// A worker reads what protobuf writes of a resolved specification.

#include <google/protobuf/util/json_util.h>

#include <string>
#include <utility>
#include <variant>

#include "agent/worker/messages.h"
#include "coordinator/spec/resolve.h"
#include "gtest/gtest.h"
#include "tactus/v1/worker.pb.h"

namespace tactus {
namespace {

using google::protobuf::util::MessageToJsonString;

worker::ToWorker Receive(const v1::ToWorker& message) {
  std::string line;
  EXPECT_TRUE(MessageToJsonString(message, &line).ok());
  auto received = worker::ParseToWorker(line);
  EXPECT_TRUE(received.ok()) << received.status();
  return *std::move(received);
}

TEST(WorkerSchemaTest, AStartSurvivesTheWay) {
  v1::ToWorker message;
  v1::Start& start = *message.mutable_start();
  start.set_job_id("shakespeare-1");
  start.set_worker_id(1ull << 50);
  start.set_emulated_speed(0.5);
  v1::JobSpec& spec = *start.mutable_spec();
  spec.set_name("shakespeare");
  spec.set_seed(1ull << 63);
  spec.mutable_model()->set_builtin("resnet18");
  spec.mutable_model()->mutable_options()->set_classes(100);
  spec.mutable_model()->set_precision(v1::PRECISION_BFLOAT16);
  spec.mutable_data()->mutable_idx()->set_inputs("/x.gz");
  spec.mutable_data()->mutable_idx()->set_targets("/y.gz");
  spec.mutable_data()->set_validation_fraction(0);
  spec.mutable_optimizer()->mutable_sgd()->set_nesterov(true);
  spec.mutable_stop()->mutable_time()->set_seconds(1800);
  spec.mutable_stop()->mutable_time()->set_nanos(250000000);
  spec.mutable_adapt()->mutable_batch()->set_policy(v1::BATCH_POLICY_PROPORTIONAL);
  spec.mutable_adapt()->mutable_batch()->set_micro_batch(32);

  spec = *spec::Resolve(spec);

  const auto received = std::get<worker::StartMessage>(Receive(message));

  EXPECT_EQ(received.job_id, "shakespeare-1");
  EXPECT_EQ(received.worker_id, 1ull << 50);
  EXPECT_EQ(received.emulated_speed, 0.5);
  EXPECT_EQ(received.job.engine.seed, 1ull << 63);
  EXPECT_EQ(received.job.model.builtin, "resnet18");
  EXPECT_EQ(received.job.model.classes, 100u);
  EXPECT_EQ(received.job.model.precision, model::Precision::kBfloat16);
  EXPECT_EQ(received.job.data.idx->targets, "/y.gz");
  EXPECT_EQ(received.job.data.validation_fraction, 0);
  EXPECT_TRUE(std::get<engine::SgdOptions>(received.job.engine.optimizer).nesterov);
  EXPECT_EQ(received.job.engine.stop.time, Seconds(1800.25));
  EXPECT_EQ(received.job.engine.micro_batch, 32u);
}

TEST(WorkerSchemaTest, AMeshSurvivesTheWayAndAutoIsWhatWasTaken) {
  v1::ToWorker message;
  v1::JobSpec& spec = *message.mutable_start()->mutable_spec();
  spec.set_name("split");
  v1::BuiltinOptions& options = *spec.mutable_model()->mutable_options();
  spec.mutable_model()->set_builtin("bytes-lm");
  options.set_recompute(true);
  options.mutable_mesh()->set_kind(v1::MESH_KIND_2D);
  options.mutable_mesh()->set_devices(4);
  spec.mutable_data()->set_text("/corpus.txt");
  for (const auto& [kind, taken] : {std::pair(v1::MESH_KIND_2D, model::MeshKind::k2d),
                                    std::pair(v1::MESH_KIND_AUTO, model::MeshKind::k1d)}) {
    options.mutable_mesh()->set_kind(kind);
    v1::ToWorker resolved = message;
    *resolved.mutable_start()->mutable_spec() = *spec::Resolve(spec);

    const auto received = std::get<worker::StartMessage>(Receive(resolved));

    EXPECT_TRUE(received.job.model.recompute);
    EXPECT_EQ(received.job.model.mesh.kind, taken);
    EXPECT_EQ(received.job.model.mesh.devices, 4u);
  }
}

TEST(WorkerSchemaTest, WhatConcernsTheQueueSurvivesTheWay) {
  v1::ToWorker start;
  v1::JobSpec& spec = *start.mutable_start()->mutable_spec();
  spec.set_name("queued");
  spec.set_priority(-3);
  (*spec.mutable_workers()->mutable_selector())["gpu"] = "h200";
  spec.mutable_workers()->add_tolerations("spot");
  spec.mutable_adapt()->add_frozen("batch");

  spec = *spec::Resolve(spec);

  EXPECT_TRUE(std::holds_alternative<worker::StartMessage>(Receive(start)));
}

}  // namespace
}  // namespace tactus
