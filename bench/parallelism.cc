// 1-D against 2-D on the machine of [optimus], by the cost model of policies/parallelism.h, beside
// the paper's own numbers; then on up to 1,024 devices.
//
// What is taken from the paper is of its 1-D baseline: what a device multiplies and what
// a link between nodes carries follow from the baseline's times on 4 and on 64 devices, given what
// PCIe carries within a node. Nothing is taken from its 2-D rows, which are predicted.

#include "policies/parallelism.h"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace tactus::policies {
namespace {

constexpr double kPcie = 8e9;     // bytes/s between two devices of a node; assumed
constexpr double kMemory = 16e9;  // of a Quadro RTX 5000
constexpr std::uint32_t kPerNode = 4;
constexpr MeshTraining kTraining{.state_buffers = 2, .recompute = true, .pipelined = true};

// A row of the paper's weak scaling: 24 layers, 512 tokens. Source: memory, [optimus] table 2, as
// the specification has it.
struct Row {
  std::uint32_t devices;
  std::uint64_t hidden;
  std::uint64_t one_d_batch;
  double one_d_seconds;  // forward and backward, of a sequence
  std::uint64_t two_d_batch;
  double two_d_seconds;
};
const std::vector<Row> kRows = {{4, 2048, 60, 0.0793 + 0.2613, 96, 0.0985 + 0.2979},
                                {16, 4096, 60, 0.2081 + 0.5149, 192, 0.1764 + 0.5312},
                                {36, 6144, 40, 0.3379 + 0.7955, 288, 0.1901 + 0.5759},
                                {64, 8192, 30, 0.4638 + 1.0963, 384, 0.2589 + 0.7935}};

TransformerSizes SizesOf(std::uint64_t hidden) {
  return {.layers = 24, .hidden = hidden, .heads = hidden / 64, .vocabulary = 1, .sequence = 512};
}

MeshShape OneD(std::uint32_t devices) { return {.kind = MeshKind::kOneD, .devices = devices}; }
MeshShape TwoD(std::uint32_t devices) { return {.kind = MeshKind::kTwoD, .devices = devices}; }

struct Machine {
  double speed = 0;
  MeshLinks links{.within = kPcie};
};

// 1-D on 4 devices of one node, then on 64 of 16.
Machine FromBaseline() {
  const auto of_sequence = [](const Row& row, double& products, double& bytes) {
    const TransformerSizes sizes = SizesOf(row.hidden);
    const auto batch = static_cast<double>(row.one_d_batch);
    products = Products(OneD(row.devices), sizes, row.one_d_batch, kTraining) / batch;
    bytes = 24 * 4 *
            (ForwardElements(OneD(row.devices), sizes, row.one_d_batch, kTraining) +
             BackwardElements(OneD(row.devices), sizes, row.one_d_batch, kTraining)) /
            batch;
  };
  double products = 0;
  double bytes = 0;
  Machine machine;
  of_sequence(kRows.front(), products, bytes);
  machine.speed = products / (kRows.front().one_d_seconds - bytes / kPcie);
  of_sequence(kRows.back(), products, bytes);
  machine.links.between = bytes / (kRows.back().one_d_seconds - products / machine.speed);
  return machine;
}

double PerSecond(const MeshShape& shape, std::uint64_t hidden, std::uint64_t batch,
                 const Machine& machine, const MeshTraining& training = kTraining) {
  const MeshSeconds seconds =
      SecondsOf(shape, SizesOf(hidden), batch, training,
                {.products_per_second = machine.speed, .per_node = kPerNode}, machine.links);
  return static_cast<double>(batch) / seconds.step();
}

void PaperTable(const Machine& machine) {
  std::printf(
      "| devices | h | 1-D paper | 1-D model | 2-D paper | 2-D model | 2-D by trees | "
      "2-D / 1-D paper | model |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
  for (const Row& row : kRows) {
    const double one = PerSecond(OneD(row.devices), row.hidden, row.one_d_batch, machine);
    const double two = PerSecond(TwoD(row.devices), row.hidden, row.two_d_batch, machine);
    MeshTraining trees = kTraining;
    trees.pipelined = false;
    const double tree = PerSecond(TwoD(row.devices), row.hidden, row.two_d_batch, machine, trees);
    std::printf("| %u | %llu | %.3f | %.3f | %.3f | %.3f | %.3f | %.2f | %.2f |\n", row.devices,
                static_cast<unsigned long long>(row.hidden), 1 / row.one_d_seconds, one,
                1 / row.two_d_seconds, two, tree, row.one_d_seconds / row.two_d_seconds, two / one);
  }
}

void BatchTable() {
  std::printf(
      "\n| devices | h | 1-D largest batch | 2-D largest batch | times |\n"
      "| --- | --- | --- | --- | --- |\n");
  for (const Row& row : kRows) {
    const std::uint64_t one =
        LargestBatch(OneD(row.devices), SizesOf(row.hidden), kTraining, kMemory);
    const std::uint64_t two =
        LargestBatch(TwoD(row.devices), SizesOf(row.hidden), kTraining, kMemory);
    std::printf("| %u | %llu | %llu | %llu | %.1f |\n", row.devices,
                static_cast<unsigned long long>(row.hidden), static_cast<unsigned long long>(one),
                static_cast<unsigned long long>(two),
                static_cast<double>(two) / static_cast<double>(one));
  }
}

// h grows with q as in the paper, so that parameters a device stay as many; batches are the largest
// that fit.
void ScaleTable(const Machine& machine) {
  std::printf(
      "\n| devices | h | 1-D batch | 1-D sequences/s | 2-D batch | 2-D sequences/s | "
      "2-D / 1-D |\n| --- | --- | --- | --- | --- | --- | --- |\n");
  for (const std::uint32_t root : {8u, 16u, 24u, 32u}) {
    const std::uint32_t devices = root * root;
    const std::uint64_t hidden = 1024ull * root;
    const std::uint64_t one_batch =
        LargestBatch(OneD(devices), SizesOf(hidden), kTraining, kMemory);
    const std::uint64_t two_batch =
        LargestBatch(TwoD(devices), SizesOf(hidden), kTraining, kMemory);
    if (one_batch == 0 || two_batch == 0) continue;
    const double one = PerSecond(OneD(devices), hidden, one_batch, machine);
    const double two = PerSecond(TwoD(devices), hidden, two_batch, machine);
    std::printf("| %u | %llu | %llu | %.3f | %llu | %.3f | %.2f |\n", devices,
                static_cast<unsigned long long>(hidden), static_cast<unsigned long long>(one_batch),
                one, static_cast<unsigned long long>(two_batch), two, two / one);
  }
}

}  // namespace
}  // namespace tactus::policies

int main() {
  using namespace tactus::policies;
  const Machine machine = FromBaseline();
  std::printf(
      "a device: %.2f T multiply-adds/s; within a node %.1f GB/s (assumed), between nodes "
      "%.2f GB/s\n\n",
      machine.speed / 1e12, machine.links.within / 1e9, machine.links.between / 1e9);
  PaperTable(machine);
  BatchTable();
  ScaleTable(machine);
  return 0;
}
