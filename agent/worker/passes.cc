#include "agent/worker/passes.h"

namespace tactus::worker {
namespace {

class ModelPasses final : public Passes {
 public:
  ModelPasses(model::Model& model, ExampleReader& reader, cuda::Device& device,
              cuda::Buffer& gradients)
      : model_(model), reader_(reader), device_(device), gradients_(gradients) {}

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

  absl::StatusOr<double> TakeLossSum() override { return model_.TakeLossSum(); }

  void DiscardGradients() override { device_.Fill(0, gradients_.span()); }

 private:
  model::Model& model_;
  ExampleReader& reader_;
  cuda::Device& device_;
  cuda::Buffer& gradients_;
};

}  // namespace

std::unique_ptr<Passes> MakePasses(model::Model& model, ExampleReader& reader, cuda::Device& device,
                                   cuda::Buffer& gradients) {
  return std::make_unique<ModelPasses>(model, reader, device, gradients);
}

}  // namespace tactus::worker
