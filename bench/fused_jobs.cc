// What fusing jobs of one shape brings on one processor core: samples/s of 1 to 16 jobs in one
// array, one after the other, and as many processes side by side on that core.
//
//   bench_fused MODEL WIDTH BATCH SECONDS     cifar-cnn 32 32 3, bytes-lm 32 8 3
//
// Passes alone, of all with gradients; optimizers cost the same either way. All is on the core that
// it is started on, such as by `taskset -c 1`, and seconds are of processor time, so that what else
// runs there counts little; SECONDS are one figure's.

#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "agent/model/fused_model.h"
#include "agent/model/model.h"
#include "base/check.h"

namespace tactus::model {
namespace {

// Of this process.
double ProcessorSeconds() {
  timespec time{};
  TACTUS_CHECK(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time) == 0);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

struct Setting {
  ModelOptions options{};
  std::uint64_t batch = 32;
  double seconds = 3;
};

// A batch that is the same for all.
struct Batch {
  explicit Batch(const Setting& setting) {
    const bool text = setting.options.builtin == "bytes-lm";
    const auto context = static_cast<std::int64_t>(64);
    const std::size_t elements =
        setting.batch * (text ? static_cast<std::size_t>(context) : std::size_t{3 * 32 * 32});
    tokens.assign(elements, 7);
    pixels.assign(elements, 0.5F);
    classes.assign(setting.batch, 3);
    examples.count = setting.batch;
    if (text) {
      examples.input_specs = {{data::ElementType::kInt64, {context}}};
      examples.target_spec = examples.input_specs[0];
      examples.inputs = examples.targets = std::as_bytes(std::span(tokens));
    } else {
      examples.input_specs = {{data::ElementType::kFloat32, {3, 32, 32}}};
      examples.target_spec = {data::ElementType::kInt64, {}};
      examples.inputs = std::as_bytes(std::span(pixels));
      examples.targets = std::as_bytes(std::span(classes));
    }
  }
  std::vector<std::int64_t> tokens, classes;
  std::vector<float> pixels;
  Examples examples;
};

struct Aligned {
  explicit Aligned(std::size_t size) : values(size + 16) {}
  std::span<float> span() {
    void* begin = values.data();
    std::size_t space = values.size() * sizeof(float);
    TACTUS_CHECK(std::align(64, (values.size() - 16) * sizeof(float), begin, space) != nullptr);
    return {static_cast<float*>(begin), values.size() - 16};
  }
  std::vector<float> values;
};

// Samples/s of one job by itself.
double RunAlone(const Setting& setting) {
  const auto model = *Model::Open(setting.options);
  Aligned parameters(cuda::FlatLength(model->segments()));
  double losses = 0;
  model->Bind(parameters.span(), std::span(&losses, 1));
  const Batch batch(setting);
  const TakeGradient take = [](const SegmentGradient&) {};
  for (int i = 0; i < 2; ++i) TACTUS_CHECK(model->ForwardBackward(batch.examples, take).ok());
  std::uint64_t done = 0;
  const double begin = ProcessorSeconds();
  for (; ProcessorSeconds() < begin + setting.seconds; ++done) {
    TACTUS_CHECK(model->ForwardBackward(batch.examples, take).ok());
  }
  return static_cast<double>(done * setting.batch) / (ProcessorSeconds() - begin);
}

double RunFused(const Setting& setting, std::size_t jobs) {
  const Batch batch(setting);
  std::vector<std::unique_ptr<Model>> models;
  std::vector<std::unique_ptr<Aligned>> parameters;
  std::vector<FusedPart> parts;
  double losses = 0;
  for (std::size_t i = 0; i < jobs; ++i) {
    ModelOptions options = setting.options;
    options.seed = i + 1;
    models.push_back(*Model::Open(options));
    const std::size_t length = cuda::FlatLength(models.back()->segments());
    parameters.push_back(std::make_unique<Aligned>(length));
    models.back()->Bind(parameters.back()->span(), std::span(&losses, 1));
    parts.push_back({.parameters = parameters.back()->span(), .examples = batch.examples});
  }
  const auto model = *FusedModel::Open(setting.options, models.front()->segments());
  const auto pass = [&] { TACTUS_CHECK(model->ForwardBackward(parts).ok()); };
  pass();
  pass();
  std::uint64_t done = 0;
  const double begin = ProcessorSeconds();
  for (; ProcessorSeconds() < begin + setting.seconds; ++done) pass();
  return static_cast<double>(done * setting.batch * jobs) / (ProcessorSeconds() - begin);
}

// What processes side by side do together, each with its share of the core.
double RunProcesses(Setting setting, std::size_t jobs) {
  setting.seconds /= static_cast<double>(jobs);
  void* const shared = mmap(nullptr, jobs * sizeof(double), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  TACTUS_CHECK(shared != MAP_FAILED);
  auto* const speeds = static_cast<double*>(shared);
  std::vector<pid_t> children;
  for (std::size_t i = 0; i < jobs; ++i) {
    const pid_t child = fork();
    TACTUS_CHECK(child >= 0);
    if (child == 0) {
      speeds[i] = RunAlone(setting);
      _exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    TACTUS_CHECK(waitpid(child, &status, 0) == child && status == 0);
  }
  const double sum = std::accumulate(speeds, speeds + jobs, 0.0);
  munmap(shared, jobs * sizeof(double));
  return sum / static_cast<double>(jobs);
}

// In a process of its own, so that no library has threads when others are made of this one.
template <typename Body>
double Apart(const Body& body) {
  void* const shared =
      mmap(nullptr, sizeof(double), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  TACTUS_CHECK(shared != MAP_FAILED);
  const pid_t child = fork();
  TACTUS_CHECK(child >= 0);
  if (child == 0) {
    *static_cast<double*>(shared) = body();
    _exit(0);
  }
  int status = 0;
  TACTUS_CHECK(waitpid(child, &status, 0) == child && status == 0);
  const double result = *static_cast<double*>(shared);
  munmap(shared, sizeof(double));
  return result;
}

int Run(int argc, char** argv) {
  Setting setting;
  setting.options.builtin = argc > 1 ? argv[1] : "cifar-cnn";
  setting.options.width = static_cast<std::uint32_t>(argc > 2 ? std::atoi(argv[2]) : 32);
  setting.batch = static_cast<std::uint64_t>(argc > 3 ? std::atoi(argv[3]) : 32);
  setting.seconds = argc > 4 ? std::atof(argv[4]) : 3;
  cpu_set_t core;
  CPU_ZERO(&core);
  const int here = sched_getcpu();
  TACTUS_CHECK(here >= 0);
  CPU_SET(static_cast<std::size_t>(here), &core);
  TACTUS_CHECK(sched_setaffinity(0, sizeof(core), &core) == 0);
  std::printf("%s, width %u, batches of %llu, one core, samples/s of all jobs\n",
              setting.options.builtin.c_str(), *setting.options.width,
              static_cast<unsigned long long>(setting.batch));
  std::printf("| jobs | one after the other | processes | fused | fused/one after the other |\n");
  std::printf("|------|---------------------|-----------|-------|---------------------------|\n");
  for (const std::size_t jobs : {1, 2, 4, 8, 16}) {
    const double alone = Apart([&] { return RunAlone(setting); });
    const double processes = RunProcesses(setting, jobs);
    const double fused = Apart([&] { return RunFused(setting, jobs); });
    std::printf("| %zu | %.0f | %.0f | %.0f | %.2f |\n", jobs, alone, processes, fused,
                fused / alone);
    static_cast<void>(std::fflush(stdout));
  }
  return 0;
}

}  // namespace
}  // namespace tactus::model

int main(int argc, char** argv) { return tactus::model::Run(argc, argv); }
