// The host as a device: every operation runs at once in the calling thread.

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "base/check.h"
#include "cuda/device.h"
#include "cuda/ops/vector.h"

namespace tactus::cuda {
namespace {

constexpr std::size_t kAlignmentBytes = 64;
constexpr std::size_t kLengthMax =
    (std::numeric_limits<std::size_t>::max() - kAlignmentBytes) / sizeof(float);

class HostDevice final : public Device {
 public:
  explicit HostDevice(std::string name) : name_(std::move(name)) {}

  std::string Name() const override { return name_; }

  Buffer Allocate(std::size_t length) override {
    if (length == 0) return Buffer();
    TACTUS_CHECK(length <= kLengthMax);
    const std::size_t bytes =
        (length * sizeof(float) + kAlignmentBytes - 1) / kAlignmentBytes * kAlignmentBytes;
    void* const memory = std::aligned_alloc(kAlignmentBytes, bytes);
    TACTUS_CHECK(memory != nullptr);
    std::memset(memory, 0, bytes);
    return Buffer(static_cast<float*>(memory), length, [](float* data) { std::free(data); });
  }

  void Axpy(float a, std::span<const float> x, std::span<float> y) override { host::Axpy(a, x, y); }
  void Scale(float a, std::span<float> x) override { host::Scale(a, x); }
  void Copy(std::span<const float> from, std::span<float> to) override {
    std::copy(from.begin(), from.end(), to.begin());
  }
  void Fill(float value, std::span<float> x) override { host::Fill(value, x); }
  double SquaredNorm(std::span<const float> x) override { return host::SquaredNorm(x); }
  void Sgd(const SgdStep& step, std::span<const float> gradients, std::span<float> parameters,
           std::span<float> momentum_buffer) override {
    host::Sgd(step, gradients, parameters, momentum_buffer);
  }
  void Adam(const AdamStep& step, std::span<const float> gradients, std::span<float> parameters,
            std::span<float> first_moment, std::span<float> second_moment) override {
    host::Adam(step, gradients, parameters, first_moment, second_moment);
  }
  void Lamb(const LambStep& step, const SegmentTable& segments,
            const LambBuffers& buffers) override {
    host::Lamb(step, segments, buffers);
  }
  void AdasumPartials(const AdasumPair& pair, std::span<const SegmentPart> parts,
                      std::span<double> sums) override {
    host::AdasumPartials(pair, parts, sums);
  }
  void AdasumCombine(const AdasumPair& pair, std::span<const SegmentPart> parts,
                     std::span<const double> sums, std::span<float> out) override {
    host::AdasumCombine(pair, parts, sums, out);
  }
  void Synchronize() override {}

 private:
  const std::string name_;
};

}  // namespace

std::unique_ptr<Device> MakeHostDevice(std::string name) {
  return std::make_unique<HostDevice>(std::move(name));
}

}  // namespace tactus::cuda
