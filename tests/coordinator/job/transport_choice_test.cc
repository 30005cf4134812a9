#include "coordinator/job/transport_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tactus::job {
namespace {

MemberRecord Gpu(std::uint64_t worker, const std::string& uuid = "GPU-1") {
  return {.worker = WorkerId{worker},
          .node = "n" + std::to_string(worker),
          .device = "cuda:0",
          .kind = DeviceKind::kCuda,
          .uuid = uuid};
}
MemberRecord Processor(std::uint64_t worker) {
  return {.worker = WorkerId{worker}, .node = "n" + std::to_string(worker), .device = "cpu:0"};
}

struct Case {
  std::string name{};
  std::vector<MemberRecord> members{};
  std::vector<std::string> versions{};
  TransportKind kind = TransportKind::kTcp;
  std::string reason{};
  bool encrypted = false;
};

void PrintTo(const Case& test, std::ostream* out) { *out << test.name; }

class TransportChoiceTest : public testing::TestWithParam<Case> {};

TEST_P(TransportChoiceTest, FollowsFromTheMembersAndSaysWhy) {
  const TransportRecord chosen = ChooseTransport({.members = GetParam().members,
                                                  .nccl_versions = GetParam().versions,
                                                  .encrypted = GetParam().encrypted});

  EXPECT_EQ(NameOf(chosen.kind), NameOf(GetParam().kind));
  EXPECT_EQ(chosen.reason, GetParam().reason);
}

INSTANTIATE_TEST_SUITE_P(
    Every, TransportChoiceTest,
    testing::ValuesIn(std::vector<Case>{
        {"AProcessorAlone",
         {Processor(1)},
         {""},
         TransportKind::kTcp,
         "one worker alone: nothing travels"},
        {"AGpuAlone",
         {Gpu(1)},
         {"none"},
         TransportKind::kNccl,
         "one worker alone: nothing travels"},
        {"Processors",
         {Processor(1), Processor(2)},
         {"", ""},
         TransportKind::kTcp,
         "all workers are on processors"},
        {"Gpus",
         {Gpu(1), Gpu(2)},
         {"2.28.9", "2.28.9"},
         TransportKind::kNccl,
         "all workers are on GPUs with equal NCCL"},
        {"GpusOfOlderWorkers",
         {Gpu(1), Gpu(2), Gpu(3)},
         {"", "2.28.9", ""},
         TransportKind::kNccl,
         "all workers are on GPUs with equal NCCL"},
        {"Mixed",
         {Gpu(1), Gpu(2), Processor(3)},
         {"2.28.9", "2.28.9", ""},
         TransportKind::kStaged,
         "worker 3 on node n3 is on a processor, worker 1 on node n1 on a GPU; NCCL joins GPUs "
         "alone"},
        {"ASlice",
         {Gpu(1), Gpu(2, "MIG-7")},
         {"2.28.9", "2.28.9"},
         TransportKind::kStaged,
         "worker 2 on node n2 is on a MIG slice; NCCL joins whole GPUs alone"},
        {"WithoutNccl",
         {Gpu(1), Gpu(2)},
         {"2.28.9", "none"},
         TransportKind::kStaged,
         "worker 2 on node n2 has no NCCL"},
        {"OtherVersions",
         {Gpu(1), Gpu(2), Gpu(3)},
         {"", "2.28.9", "2.27.3"},
         TransportKind::kStaged,
         "worker 2 on node n2 has NCCL 2.28.9, worker 3 on node n3 has 2.27.3"},
        {"GpusThatAreToBeEncrypted",
         {Gpu(1), Gpu(2)},
         {"2.28.9", "2.28.9"},
         TransportKind::kStaged,
         "network.encryption is tls; NCCL cannot encrypt",
         true},
        {"ProcessorsThatAreToBeEncrypted",
         {Processor(1), Processor(2)},
         {"", ""},
         TransportKind::kTcp,
         "all workers are on processors",
         true}}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace tactus::job
