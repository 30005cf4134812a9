#include "agent/daemon/worker_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tactus::agent {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

TEST(WorkerEnvironmentTest, SecretsAreTakenOutAndTheRestIsPassedOn) {
  const std::vector<std::string> environment = WorkerEnvironment(
      {"PATH=/bin", "NCCL_DEBUG=INFO", "HF_TOKEN=x", "aws_secret_key=x", "DB_PASSWORD=x", "broken"},
      {}, {.job_id = "j-1"});

  EXPECT_THAT(environment, Contains("PATH=/bin"));
  EXPECT_THAT(environment, Contains("NCCL_DEBUG=INFO"));
  EXPECT_THAT(environment, Not(Contains(HasSubstr("=x"))));
  EXPECT_THAT(environment, Not(Contains(HasSubstr("broken"))));
}

TEST(WorkerEnvironmentTest, ThePlaceReplacesWhatWasInherited) {
  const std::vector<std::string> environment =
      WorkerEnvironment({"OMP_NUM_THREADS=64", "LOCAL_RANK=9"}, {},
                        {.job_id = "j-1",
                         .control_socket = "/s",
                         .local_rank = 2,
                         .local_world_size = 4,
                         .threads = 1});

  EXPECT_THAT(environment, Contains("OMP_NUM_THREADS=1").Times(1));
  EXPECT_THAT(environment, Contains("OPENBLAS_NUM_THREADS=1"));
  EXPECT_THAT(environment, Contains("LOCAL_RANK=2"));
  EXPECT_THAT(environment, Contains("LOCAL_WORLD_SIZE=4"));
  EXPECT_THAT(environment, Contains("TORCHELASTIC_RUN_ID=j-1"));
  EXPECT_THAT(environment, Contains("TACTUS_JOB_NAME=j-1"));
  EXPECT_THAT(environment, Contains("TACTUS_CONTROL_SOCKET=/s"));
  EXPECT_THAT(environment, Not(Contains(HasSubstr("=64"))));
}

TEST(WorkerEnvironmentTest, AWorkerSeesItsGpuAlone) {
  EXPECT_THAT(WorkerEnvironment({"CUDA_VISIBLE_DEVICES=0,1"}, {}, {.gpu_uuid = "GPU-2"}),
              Contains("CUDA_VISIBLE_DEVICES=GPU-2").Times(1));
  EXPECT_THAT(WorkerEnvironment({"CUDA_VISIBLE_DEVICES=0,1"}, {}, {}),
              Contains("CUDA_VISIBLE_DEVICES=0,1"));
}

TEST(WorkerEnvironmentTest, AProgramIsToldItsDevice) {
  EXPECT_THAT(WorkerEnvironment({}, {}, {.program = true, .device = "cuda:0"}),
              Contains("TACTUS_DEVICE=cuda:0"));
  EXPECT_THAT(WorkerEnvironment({}, {}, {.device = "cuda:0"}),
              Not(Contains(HasSubstr("TACTUS_DEVICE"))));
}

TEST(WorkerEnvironmentTest, NcclTakesTheAgentsInterfaceUnlessTheUserNamedOne) {
  EXPECT_THAT(WorkerEnvironment({}, {}, {.network_interface = "eth1"}),
              Contains("NCCL_SOCKET_IFNAME==eth1").Times(1));
  EXPECT_THAT(WorkerEnvironment({"NCCL_SOCKET_IFNAME=ib0"}, {}, {.network_interface = "eth1"}),
              Contains("NCCL_SOCKET_IFNAME=ib0"));
  EXPECT_THAT(WorkerEnvironment({}, {}, {}), Not(Contains(HasSubstr("NCCL_SOCKET_IFNAME"))));
}

TEST(WorkerEnvironmentTest, OpenBlasTakesTheHostsKernelsUnlessTheUserNamedThem) {
  EXPECT_THAT(WorkerEnvironment({}, {}, {.blas_kernels = "Haswell"}),
              Contains("OPENBLAS_CORETYPE=Haswell").Times(1));
  EXPECT_THAT(WorkerEnvironment({"OPENBLAS_CORETYPE=Zen"}, {}, {.blas_kernels = "Haswell"}),
              Contains("OPENBLAS_CORETYPE=Zen"));
  EXPECT_THAT(WorkerEnvironment({}, {}, {}), Not(Contains(HasSubstr("OPENBLAS_CORETYPE"))));
}

TEST(WorkerEnvironmentTest, WithoutAThreadCountTheLibrariesDecide) {
  EXPECT_THAT(WorkerEnvironment({"OMP_NUM_THREADS=64"}, {}, {.job_id = "j-1"}),
              Contains("OMP_NUM_THREADS=64"));
}

}  // namespace
}  // namespace tactus::agent
