#include "agent/worker/passes.h"

namespace tactus::worker {
namespace {

class ModelPasses final : public Passes {
 public:
  ModelPasses(model::Model& model, ExampleReader& reader, cuda::Device& device, PassSums& sums)
      : model_(model),
        reader_(reader),
        device_(device),
        sums_(sums),
        kept_(device.AllocateSums(1)) {}

  absl::Status TryOut(std::span<const std::uint64_t> indices) override {
    return model_.TryOut(reader_.Read(indices));
  }

  absl::Status ForwardBackward(std::span<const std::uint64_t> indices,
                               std::span<const std::uint64_t> next,
                               const model::SegmentReady& ready) override {
    const model::Examples examples = reader_.Read(indices);
    reader_.Expect(next);
    return model_.ForwardBackward(examples, ready);
  }

  void KeepLosses() override { device_.Copy(sums_.losses.span(), kept_.span()); }

  void GoBack() override {
    device_.Fill(0, sums_.gradients.span());
    device_.Copy(kept_.span(), sums_.losses.span());
  }

 private:
  model::Model& model_;
  ExampleReader& reader_;
  cuda::Device& device_;
  PassSums& sums_;
  cuda::Sums kept_;  // of the losses
};

}  // namespace

std::unique_ptr<Passes> MakePasses(model::Model& model, ExampleReader& reader, cuda::Device& device,
                                   PassSums& sums) {
  return std::make_unique<ModelPasses>(model, reader, device, sums);
}

}  // namespace tactus::worker
