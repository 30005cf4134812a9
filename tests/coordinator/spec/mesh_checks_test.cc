#include "coordinator/spec/mesh_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/spec/spec_validation.h"
#include "tests/coordinator/spec/rule.h"

namespace tactus::spec {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

v1::Mesh& MeshIn(v1::JobSpec& spec) {
  return *spec.mutable_model()->mutable_options()->mutable_mesh();
}

void Split(v1::JobSpec& spec, v1::MeshKind kind, std::uint32_t devices) {
  MeshIn(spec).set_kind(kind);
  MeshIn(spec).set_devices(devices);
}

v1::JobSpec SplitSpec(v1::MeshKind kind, std::uint32_t devices) {
  v1::JobSpec spec = TextSpec();
  Split(spec, kind, devices);
  return spec;
}

class MeshRuleTest : public testing::TestWithParam<Rule> {};

TEST_P(MeshRuleTest, ABrokenRuleIsReportedAtItsField) { ExpectReportedAtItsField(GetParam()); }

const Rule kShapes[] = {
    {"NoKind", [](auto& s) { MeshIn(s).set_devices(4); }, "model.options.mesh.kind",
     "give none, 1d, 2d or auto"},
    {"NoDevices", [](auto& s) { MeshIn(s).set_kind(v1::MESH_KIND_1D); },
     "model.options.mesh.devices", "is missing"},
    {"DevicesOfNone", [](auto& s) { Split(s, v1::MESH_KIND_NONE, 2); },
     "model.options.mesh.devices", "found 2 with kind none"},
    {"TooManyDevices", [](auto& s) { Split(s, v1::MESH_KIND_1D, 1025); },
     "model.options.mesh.devices", "1 to 1024"},
    {"NoSquare", [](auto& s) { Split(s, v1::MESH_KIND_2D, 6); }, "model.options.mesh.devices",
     "allowed is a square; the nearest is 4"},
    {"RowsDoNotDivideHeads", [](auto& s) { Split(s, v1::MESH_KIND_2D, 9); },
     "model.options.mesh.devices", "found 4 heads, which 3 rows do not divide"},
    {"DevicesDoNotDivideHeads", [](auto& s) { Split(s, v1::MESH_KIND_1D, 8); },
     "model.options.mesh.devices", "nearest layout that does is of 4 devices"},
    {"NeitherCanBe", [](auto& s) { Split(s, v1::MESH_KIND_AUTO, 5); }, "model.options.mesh.devices",
     "neither can be"},
    {"WorkersMin",
     [](auto& s) {
       Split(s, v1::MESH_KIND_2D, 4);
       s.mutable_workers()->set_min(6);
       s.mutable_workers()->set_max(8);
     },
     "workers.min", "the nearest is 4 or 8"},
    {"WorkersMax",
     [](auto& s) {
       Split(s, v1::MESH_KIND_2D, 4);
       s.mutable_workers()->set_max(7);
     },
     "workers.max", "the nearest is 4 or 8"},
};

const Rule kWholeModels[] = {
    {"Spares",
     [](auto& s) {
       Split(s, v1::MESH_KIND_1D, 2);
       s.mutable_workers()->set_spares(1);
     },
     "workers.spares", "as a whole"},
    {"Precision",
     [](auto& s) {
       Split(s, v1::MESH_KIND_1D, 2);
       s.mutable_model()->set_precision(v1::PRECISION_BFLOAT16);
     },
     "model.precision", "is float32"},
    {"Shard",
     [](auto& s) {
       Split(s, v1::MESH_KIND_1D, 2);
       s.mutable_optimizer()->mutable_adam();
       s.mutable_optimizer()->set_shard(v1::SHARD_EQUAL);
     },
     "optimizer.shard", "take shard: none"},
    {"Snapshots",
     [](auto& s) {
       Split(s, v1::MESH_KIND_1D, 2);
       s.mutable_snapshots()->mutable_every()->set_seconds(5);
     },
     "snapshots", "does not go with model.options.mesh"},
    {"Best",
     [](auto& s) {
       Split(s, v1::MESH_KIND_1D, 2);
       s.set_result(v1::RESULT_CHOICE_BEST);
     },
     "result", "is last"},
};

const Rule kPlans[] = {
    {"AdasumOfMomentumInEveryStep",
     [](auto& s) {
       Split(s, v1::MESH_KIND_1D, 2);
       s.mutable_adapt()->mutable_aggregation()->set_policy(v1::AGGREGATION_POLICY_ADASUM);
       s.mutable_optimizer()->mutable_sgd()->set_momentum(0.9);
     },
     "adapt.aggregation.policy", "take periodic, or average, or sgd without momentum"},
    {"AdasumOfMomentumInStepsInTheEnd",
     [](auto& s) {
       Split(s, v1::MESH_KIND_1D, 2);
       s.mutable_adapt()->mutable_aggregation()->set_policy(v1::AGGREGATION_POLICY_ADASUM);
       s.mutable_optimizer()->mutable_sgd()->set_momentum(0.9);
       s.mutable_adapt()->mutable_synchronization()->set_policy(v1::SYNCHRONIZATION_POLICY_ADACOMM);
     },
     "adapt.aggregation.policy", "adapt.synchronization.policy adacomm"},
    {"Encoded",
     [](auto& s) {
       Split(s, v1::MESH_KIND_2D, 4);
       s.mutable_optimizer()->mutable_adam();
       s.mutable_adapt()->mutable_encoding()->set_policy(v1::ENCODING_POLICY_ONE_BIT);
     },
     "adapt.encoding.policy", "moments, of which each device of a mesh has a part"},
    // Which 64 workers do, and 16 replicas of 4 do not.
    {"Payload",
     [](auto& s) {
       Split(s, v1::MESH_KIND_2D, 4);
       s.mutable_workers()->set_min(4 * 64);
       s.mutable_workers()->set_max(4 * 64);
       s.mutable_adapt()->mutable_encoding()->set_policy(v1::ENCODING_POLICY_ADACOMP);
     },
     "adapt.encoding.policy", "among 64 replicas"},
    {"Delayed",
     [](auto& s) {
       Split(s, v1::MESH_KIND_2D, 4);
       s.mutable_adapt()->mutable_synchronization()->set_policy(v1::SYNCHRONIZATION_POLICY_DELAYED);
     },
     "adapt.synchronization.policy", "no device could go on by itself"},
    {"Elastic",
     [](auto& s) {
       Split(s, v1::MESH_KIND_2D, 4);
       s.mutable_adapt()->mutable_synchronization()->set_policy(
           v1::SYNCHRONIZATION_POLICY_PERIODIC);
       s.mutable_adapt()->mutable_synchronization()->set_period(4);
       s.mutable_adapt()->mutable_synchronization()->set_elastic(true);
     },
     "adapt.synchronization.elastic", "take as many steps each"},
};

const auto kNameOf = [](const auto& test) { return test.param.name; };

INSTANTIATE_TEST_SUITE_P(Shapes, MeshRuleTest, testing::ValuesIn(kShapes), kNameOf);
INSTANTIATE_TEST_SUITE_P(WholeModels, MeshRuleTest, testing::ValuesIn(kWholeModels), kNameOf);
INSTANTIATE_TEST_SUITE_P(Plans, MeshRuleTest, testing::ValuesIn(kPlans), kNameOf);

TEST(MeshChecksTest, ARightOneIsRightAndTakesWholeReplicas) {
  const v1::JobSpec spec = SplitSpec(v1::MESH_KIND_2D, 4);

  EXPECT_THAT(SpecViolations(spec), IsEmpty());
  const job::JobSettings settings = SettingsOf(Resolve(spec));
  EXPECT_EQ(settings.mesh_devices, 4u);
  EXPECT_EQ(settings.workers_min, 4u);
  EXPECT_EQ(settings.workers_max % 4, 0u);
  EXPECT_EQ(settings.device, job::DeviceKind::kCpu);
  EXPECT_THAT(settings.mesh, HasSubstr("2d, 2 x 2 devices"));
  EXPECT_THAT(settings.mesh, HasSubstr("with 1d"));
}

TEST(MeshChecksTest, WhatIsLeftToChooseIsWhatDevicesWithPartsCanDo) {
  const job::JobSettings settings = SettingsOf(Resolve(SplitSpec(v1::MESH_KIND_1D, 2)));

  EXPECT_EQ(settings.adapt.mesh, "1d");
  EXPECT_EQ(settings.adapt.batch.replica_members, 2u);
  EXPECT_EQ(settings.adapt.batch_policy, "proportional");
  EXPECT_EQ(settings.adapt.synchronization.policy, "every_step");
  EXPECT_EQ(settings.adapt.aggregation_policy, "average");
  EXPECT_EQ(settings.adapt.learning_rate_policy, "constant");
  EXPECT_EQ(settings.adapt.encoding_policy, "dense");
}

TEST(MeshChecksTest, ReplicasMayTakeLocalSteps) {
  v1::JobSpec spec = SplitSpec(v1::MESH_KIND_1D, 2);
  v1::SynchronizationAxis& axis = *spec.mutable_adapt()->mutable_synchronization();
  axis.set_policy(v1::SYNCHRONIZATION_POLICY_PERIODIC);
  axis.set_period(4);
  EXPECT_THAT(SpecViolations(spec), IsEmpty());

  axis.set_policy(v1::SYNCHRONIZATION_POLICY_ADACOMM);
  axis.clear_period();
  EXPECT_THAT(SpecViolations(spec), IsEmpty());
}

TEST(MeshChecksTest, AdasumIsBetweenReplicas) {
  v1::JobSpec spec = SplitSpec(v1::MESH_KIND_2D, 4);
  spec.mutable_adapt()->mutable_aggregation()->set_policy(v1::AGGREGATION_POLICY_ADASUM);
  spec.mutable_optimizer()->mutable_sgd()->set_momentum(0);
  EXPECT_THAT(SpecViolations(spec), IsEmpty());
  EXPECT_EQ(SettingsOf(Resolve(spec)).adapt.aggregation_policy, "adasum");

  spec.mutable_optimizer()->mutable_adam();
  v1::SynchronizationAxis& axis = *spec.mutable_adapt()->mutable_synchronization();
  axis.set_policy(v1::SYNCHRONIZATION_POLICY_PERIODIC);
  axis.set_period(4);
  EXPECT_THAT(SpecViolations(spec), IsEmpty());
}

TEST(MeshChecksTest, WhatTravelsBetweenReplicasMayBeEncoded) {
  for (const v1::EncodingPolicy policy :
       {v1::ENCODING_POLICY_FLOAT16, v1::ENCODING_POLICY_BFLOAT16, v1::ENCODING_POLICY_DQ,
        v1::ENCODING_POLICY_SKETCH, v1::ENCODING_POLICY_ADACOMP}) {
    v1::JobSpec spec = SplitSpec(v1::MESH_KIND_2D, 4);
    spec.mutable_adapt()->mutable_encoding()->set_policy(policy);
    EXPECT_THAT(SpecViolations(spec), IsEmpty());

    // As many as would be too many if each had all of the model.
    spec.mutable_workers()->set_min(4 * 16);
    spec.mutable_workers()->set_max(4 * 16);
    EXPECT_THAT(SpecViolations(spec), IsEmpty());

    spec.mutable_adapt()->mutable_learning_rate()->set_policy(v1::LEARNING_RATE_POLICY_ADASCALE);
    const bool exact =
        policy == v1::ENCODING_POLICY_FLOAT16 || policy == v1::ENCODING_POLICY_BFLOAT16;
    EXPECT_EQ(SpecViolations(spec).empty(), exact);
  }
}

TEST(MeshChecksTest, LambHasTheNormsOfWholeLayersInParts) {
  v1::JobSpec spec = SplitSpec(v1::MESH_KIND_2D, 4);
  spec.mutable_optimizer()->mutable_lamb();

  EXPECT_THAT(SpecViolations(spec), IsEmpty());
  spec.mutable_workers()->set_device(v1::DEVICE_KIND_CUDA);
  EXPECT_THAT(SpecViolations(spec), IsEmpty());
}

TEST(MeshChecksTest, AdascaleGoesByTheNoiseOfReplicas) {
  v1::JobSpec spec = SplitSpec(v1::MESH_KIND_1D, 2);
  spec.mutable_adapt()->mutable_learning_rate()->set_policy(v1::LEARNING_RATE_POLICY_ADASCALE);

  EXPECT_THAT(SpecViolations(spec), IsEmpty());
}

TEST(MeshChecksTest, AutoTakesWhatMovesLess) {
  // 7 b s h + 12 h^2 a row's half against 3 b s h: rows of activations decide.
  v1::JobSpec spec = SplitSpec(v1::MESH_KIND_AUTO, 4);
  EXPECT_EQ(Resolve(spec)->model().options().mesh().kind(), v1::MESH_KIND_1D);
  // 16 devices send a quarter of the former, and 15/16 of the latter.
  spec = SplitSpec(v1::MESH_KIND_AUTO, 16);
  spec.mutable_model()->mutable_options()->set_heads(16);
  EXPECT_EQ(Resolve(spec)->model().options().mesh().kind(), v1::MESH_KIND_2D);
  // No square.
  spec = SplitSpec(v1::MESH_KIND_AUTO, 2);
  EXPECT_EQ(Resolve(spec)->model().options().mesh().kind(), v1::MESH_KIND_1D);
}

TEST(MeshChecksTest, GpusAreForWhoAsksForThem) {
  v1::JobSpec split = SplitSpec(v1::MESH_KIND_2D, 4);
  v1::JobSpec recomputed = SplitSpec(v1::MESH_KIND_NONE, 1);
  recomputed.mutable_model()->mutable_options()->set_recompute(true);
  for (v1::JobSpec* const spec : {&split, &recomputed}) {
    EXPECT_EQ(SettingsOf(Resolve(*spec)).device, job::DeviceKind::kCpu);
    spec->mutable_workers()->set_device(v1::DEVICE_KIND_CUDA);
    EXPECT_THAT(SpecViolations(*spec), IsEmpty());
    EXPECT_EQ(SettingsOf(Resolve(*spec)).device, job::DeviceKind::kCuda);
    spec->mutable_workers()->set_device(v1::DEVICE_KIND_ANY);
    EXPECT_EQ(SettingsOf(Resolve(*spec)).device, job::DeviceKind::kAny);
  }
}

TEST(MeshChecksTest, OneDeviceIsNoMesh) {
  for (const v1::MeshKind kind : {v1::MESH_KIND_NONE, v1::MESH_KIND_1D, v1::MESH_KIND_2D}) {
    const job::JobSettings settings = SettingsOf(Resolve(SplitSpec(kind, 1)));
    EXPECT_EQ(settings.mesh_devices, 1u);
    EXPECT_EQ(settings.mesh, "");
    EXPECT_EQ(settings.adapt.mesh, "none");
    EXPECT_EQ(settings.adapt.batch.replica_members, 1u);
  }
}

}  // namespace
}  // namespace tactus::spec
