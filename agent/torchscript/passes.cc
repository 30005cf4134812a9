#include "agent/torchscript/passes.h"

#include <utility>

namespace tactus::torchscript {
namespace {

class ModelPasses final : public Passes {
 public:
  explicit ModelPasses(const PassParts& parts)
      : parts_(parts), kept_(parts.device.AllocateSums(1)) {}

  absl::Status TryOut(std::span<const std::uint64_t> indices) override {
    model::Examples examples = parts_.reader.Read(indices);
    examples.weights = parts_.weights.Of(indices);
    return parts_.model.TryOut(examples);
  }

  absl::Status ForwardBackward(std::span<const std::uint64_t> indices,
                               std::span<const std::uint64_t> next,
                               const SegmentReady& ready) override {
    model::Examples examples = parts_.reader.Read(indices);
    examples.weights = parts_.weights.Of(indices);
    parts_.reader.Expect(next);
    GradientIntake& intake = parts_.intake;
    intake.Begin({.adds = !std::exchange(first_, false), .leaves = bool{ready}});
    const auto take = [&intake, &ready](model::SegmentGradient gradient) {
      const std::size_t segment = gradient.segment;
      intake.Take(std::move(gradient));
      if (ready) ready(segment);
    };
    absl::Status status = parts_.model.ForwardBackward(examples, take);
    if (status.ok()) {
      intake.End();
    } else {
      intake.Drop();
    }
    return status;
  }

  void BeginSum() override {
    first_ = true;
    parts_.device.Copy(parts_.sums.losses.span(), kept_.span());
  }

  void GoBack() override {
    first_ = true;
    parts_.device.Copy(kept_.span(), parts_.sums.losses.span());
  }

 private:
  const PassParts parts_;
  cuda::Sums kept_;    // of the losses
  bool first_ = true;  // the next pass is, of a sum
};

}  // namespace

std::unique_ptr<Passes> MakePasses(const PassParts& parts) {
  return std::make_unique<ModelPasses>(parts);
}

}  // namespace tactus::torchscript
