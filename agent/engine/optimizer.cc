#include "agent/engine/optimizer.h"

#include <algorithm>

#include "base/check.h"
#include "cuda/ops/frozen_lamb.h"
#include "cuda/ops/lamb_element.h"

namespace tactus::engine {
namespace {

// Of the average of LAMB's ratios. Source: [deepspeed] deepspeed/runtime/fp16/onebit/lamb.py.
constexpr double kRatioMemory = 0.9;

const double* GateOf(const StepScale& scale) {
  return scale.gate.empty() ? nullptr : scale.gate.data();
}

std::optional<policies::WindowMomentum> MomentumOf(const SgdOptions& sgd, bool kept) {
  return policies::WindowMomentum{.momentum = sgd.momentum, .nesterov = sgd.nesterov, .kept = kept};
}

// Their first moment is an average, and is never forgotten.
std::optional<policies::WindowMomentum> MomentumOf(const auto& moments, bool) {
  return policies::WindowMomentum{.momentum = moments.beta1, .weight = 1 - moments.beta1};
}

std::optional<policies::WindowMomentum> MomentumOf(const ForeignOptions& foreign, bool kept) {
  std::optional<policies::WindowMomentum> momentum = foreign.window_momentum;
  // What is forgotten between two windows is not what corrects its moments by its steps.
  if (momentum && !foreign.counts_steps()) momentum->kept = kept;
  return momentum;
}

// The sign of a sum is as long whatever is in it.
std::optional<policies::WindowMomentum> MomentumOf(const LionOptions&, bool) { return {}; }

}  // namespace

std::size_t StateBuffers(const OptimizerOptions& options) {
  return std::visit([](const auto& one) { return one.buffers(); }, options);
}

bool IsElementwise(const OptimizerOptions& options) {
  return std::visit([](const auto& one) { return one.elementwise(); }, options);
}

std::string_view NameOf(const OptimizerOptions& options) {
  return std::visit([](const auto& one) { return std::string_view(one.name()); }, options);
}

double BaseLearningRate(const OptimizerOptions& options) {
  return std::visit([](const auto& one) { return one.learning_rate; }, options);
}

std::optional<double> BendingDecay(const OptimizerOptions& options) {
  if (std::holds_alternative<SgdOptions>(options)) return std::nullopt;
  const auto* const foreign = std::get_if<ForeignOptions>(&options);
  if (foreign != nullptr) return foreign->bending_decay;
  const auto* const adam = std::get_if<AdamOptions>(&options);
  return adam != nullptr ? adam->beta2 : 0;
}

std::optional<policies::WindowMomentum> WindowMomentumOf(const OptimizerOptions& options,
                                                         bool kept) {
  return std::visit([&](const auto& one) { return MomentumOf(one, kept); }, options);
}

Optimizer::Optimizer(const OptimizerOptions& options, cuda::Device& device,
                     const cuda::SegmentTable& segments, StateHeld held)
    : options_(options), segments_(segments), device_(device) {
  TACTUS_CHECK(held == StateHeld::kWhole || IsElementwise(options));
  if (held == StateHeld::kElsewhere) return;
  const std::size_t length = cuda::FlatLength(segments_);
  const std::size_t buffers = StateBuffers(options_);
  if (std::holds_alternative<ForeignOptions>(options_)) {
    gate_on_host_ = device_.AllocateOnHost<double>(cuda::kGateOpen + 1);
    return;  // it has its own
  }
  if (buffers >= 1) momentum_ = device_.Allocate(length);
  if (buffers >= 2) second_ = device_.Allocate(length);
}

collective::Completion Optimizer::Step(std::span<float> gradients, StepScale scale,
                                       std::span<float> parameters,
                                       const collective::ReplicaSums& replica) {
  ++steps_;
  if (one_bit_.frozen) ++one_bit_.frozen_steps;
  const auto* const lamb = std::get_if<LambOptions>(&options_);
  by_layers_ =
      lamb != nullptr && !one_bit_.frozen && (replica.in_parts() || !one_bit_.layers.empty());
  TACTUS_CHECK(!one_bit_.frozen || !replica.in_parts());
  if (by_layers_) {
    collective::Completion summed = SumLayers(StepOf(*lamb, scale),
                                              {.gradients = gradients,
                                               .parameters = parameters,
                                               .first_moment = momentum_.span(),
                                               .second_moment = second_.span()},
                                              scale.gate, replica);
    if (summed.progress == collective::Progress::kFailed) {
      Uncount();
      return summed;
    }
  }
  std::visit([&](const auto& options) { StepBy(options, gradients, scale, parameters); }, options_);
  return {};
}

void Optimizer::Uncount() {
  --steps_;
  if (one_bit_.frozen) --one_bit_.frozen_steps;
}

void Optimizer::MoveAhead(double learning_rate, std::span<float> parameters) {
  const double known = std::visit([](const auto& options) { return options.known(); }, options_);
  if (known == 0) return;
  device_.Axpy(static_cast<float>(-learning_rate * known), momentum_.span(), parameters);
}

void Optimizer::ResetMomentum() {
  const bool counts =
      std::visit([](const auto& options) { return options.counts_steps(); }, options_);
  // A first moment at zero would be corrected as one of many steps.
  if (!counts) BeginAnew(steps_);
}

void Optimizer::BeginAnew(std::uint64_t steps) {
  for (const std::span<float> buffer : State()) device_.Fill(0, buffer);
  GoOnFrom(steps);
}

void Optimizer::GoOnFrom(std::uint64_t steps) {
  steps_ = steps;
  const auto* const foreign = std::get_if<ForeignOptions>(&options_);
  if (foreign == nullptr) return;
  device_.Synchronize();
  foreign->steps->TakeState(steps);
}

bool Optimizer::linear() const {
  return std::visit([](const auto& options) { return options.linear(); }, options_);
}

std::vector<std::span<float>> Optimizer::State() {
  const auto* const foreign = std::get_if<ForeignOptions>(&options_);
  if (foreign != nullptr) return foreign->steps->State();
  std::vector<std::span<float>> state;
  for (cuda::Buffer* buffer : {&momentum_, &second_}) {
    if (buffer->size() > 0) state.push_back(buffer->span());
  }
  return state;
}

PartOfStep Optimizer::WholeStep(std::span<const float> gradients, const StepScale& scale,
                                std::span<float> parameters) {
  return {.step = steps_,
          .scale = scale,
          .gradients = gradients,
          .parameters = parameters,
          .first = momentum_.span(),
          .second = second_.span()};
}

void Optimizer::StepPart(const PartOfStep& part) {
  std::visit(
      [&](const auto& options) {
        if constexpr (requires { StepPartBy(options, part); }) {
          StepPartBy(options, part);
        } else {
          TACTUS_CHECK(options.elementwise());
        }
      },
      options_);
}

void Optimizer::StepBy(const SgdOptions& sgd, std::span<float> gradients, StepScale scale,
                       std::span<float> parameters) {
  StepPartBy(sgd, WholeStep(gradients, scale, parameters));
}

void Optimizer::StepBy(const AdamOptions& adam, std::span<float> gradients, StepScale scale,
                       std::span<float> parameters) {
  StepPartBy(adam, WholeStep(gradients, scale, parameters));
}

void Optimizer::StepBy(const LionOptions& lion, std::span<float> gradients, StepScale scale,
                       std::span<float> parameters) {
  StepPartBy(lion, WholeStep(gradients, scale, parameters));
}

void Optimizer::StepPartBy(const SgdOptions& sgd, const PartOfStep& part) {
  device_.Sgd({.learning_rate = static_cast<float>(part.scale.learning_rate),
               .momentum = static_cast<float>(sgd.momentum),
               .weight_decay = static_cast<float>(sgd.weight_decay),
               .gradient_scale = static_cast<float>(part.scale.gradient),
               .nesterov = sgd.nesterov,
               .gate = GateOf(part.scale)},
              part.gradients, part.parameters, part.first);
}

void Optimizer::StepPartBy(const AdamOptions& adam, const PartOfStep& part) {
  device_.Adam({.learning_rate = part.scale.learning_rate,
                .beta1 = adam.beta1,
                .beta2 = adam.beta2,
                .epsilon = static_cast<float>(adam.epsilon),
                .weight_decay = adam.weight_decay,
                .decoupled = adam.decoupled,
                .gradient_scale = static_cast<float>(part.scale.gradient),
                .step = part.step,
                .frozen = one_bit_.frozen,
                .second_step = part.step - one_bit_.frozen_steps,
                .gate = GateOf(part.scale)},
               part.gradients, part.parameters, part.first, part.second);
}

void Optimizer::StepPartBy(const LionOptions& lion, const PartOfStep& part) {
  device_.Lion({.learning_rate = part.scale.learning_rate,
                .beta1 = lion.beta1,
                .beta2 = lion.beta2,
                .weight_decay = lion.weight_decay,
                .gradient_scale = static_cast<float>(part.scale.gradient),
                .gate = GateOf(part.scale)},
               part.gradients, part.parameters, part.first);
}

cuda::LambStep Optimizer::StepOf(const LambOptions& lamb, const StepScale& scale) const {
  return {.learning_rate = scale.learning_rate,
          .beta1 = lamb.beta1,
          .beta2 = lamb.beta2,
          .epsilon = static_cast<float>(lamb.epsilon),
          .weight_decay = lamb.weight_decay,
          .ratio_min = lamb.ratio_min,
          .ratio_max = lamb.ratio_max,
          .gradient_scale = static_cast<float>(scale.gradient),
          .step = steps_,
          .gate = GateOf(scale)};
}

bool Optimizer::LayersOnHost(std::span<const double> sums, std::span<const double> gate) {
  device_.Copy(sums, layers_on_host_.span().first(sums.size()));
  if (!gate.empty()) device_.Copy(gate.first(gate_on_host_.size()), gate_on_host_.span());
  layers_over_->Record();
  layers_over_->Wait();
  return gate.empty() || gate_on_host_.span()[cuda::kGateOpen] != 0;
}

void Optimizer::MakeRoomForLayers() {
  if (layers_over_) return;
  layer_sums_ = device_.AllocateSums(cuda::kFrozenLambSums * segments_.size());
  layers_on_host_ = device_.AllocateOnHost<double>(layer_sums_.size());
  gate_on_host_ = device_.AllocateOnHost<double>(cuda::kGateOpen + 1);
  layers_over_ = device_.MakeMark();
}

// The sums are found before anything changes, at the price of moments computed twice: a step of
// which the replica hears half would leave no state to go on from.
collective::Completion Optimizer::SumLayers(const cuda::LambStep& step,
                                            const cuda::LambBuffers& buffers,
                                            std::span<const double> gate,
                                            const collective::ReplicaSums& replica) {
  constexpr std::size_t kSums = cuda::kLambSumsPerSegment;
  MakeRoomForLayers();
  const std::span<double> on_device = LayerSums();
  device_.LambSums(step, segments_, buffers, on_device);
  if (!LayersOnHost(on_device, gate)) return {};
  const std::span<double> sums = layers_on_host_.span().first(on_device.size());
  collective::Completion summed;
  if (replica.in_parts()) {
    TACTUS_CHECK(replica.counts.size() == segments_.size());
    for (std::size_t i = 0; i < segments_.size(); ++i) {
      if (!replica.counts[i]) std::ranges::fill(sums.subspan(kSums * i, kSums), 0);
    }
    summed = replica.add(sums);
    device_.Copy(sums, on_device);
  }
  if (summed.progress != collective::Progress::kFailed) AverageRatios(step, sums);
  return summed;
}

void Optimizer::StepBy(const LambOptions& lamb, std::span<float> gradients, StepScale scale,
                       std::span<float> parameters) {
  const cuda::LambStep step = StepOf(lamb, scale);
  const cuda::LambBuffers buffers{.gradients = gradients,
                                  .parameters = parameters,
                                  .first_moment = momentum_.span(),
                                  .second_moment = second_.span()};
  if (one_bit_.frozen) return FrozenStepBy(step, buffers, scale.gate);
  if (by_layers_) return device_.LambOfParts(step, segments_, buffers, LayerSums());
  device_.Lamb(step, segments_, buffers);
}

void Optimizer::StepBy(const ForeignOptions& foreign, std::span<float> gradients, StepScale scale,
                       std::span<float>) {
  double factor = scale.gradient;
  if (!scale.gate.empty()) {
    device_.Copy(scale.gate.first(gate_on_host_.span().size()), gate_on_host_.span());
    device_.Synchronize();
    if (gate_on_host_.span()[cuda::kGateOpen] == 0) return;
    factor = gate_on_host_.span()[cuda::kGateScale];
  }
  if (factor != 1) device_.Scale(static_cast<float>(factor), gradients);
  foreign.steps->Step(gradients, scale.learning_rate);
}

void Optimizer::AverageRatios(const cuda::LambStep& step, std::span<const double> sums) {
  const cuda::LambFactors factors = cuda::FactorsOf(step);
  for (std::size_t i = 0; i < one_bit_.layers.size(); ++i) {
    const double* const row = &sums[cuda::kLambSumsPerSegment * i];
    const double ratio = cuda::LambRatio(factors, {.parameters = row[0], .direction = row[1]});
    LayerRatio& layer = one_bit_.layers[i];
    layer.sum = kRatioMemory * layer.sum + (1 - kRatioMemory) * ratio;
    layer.weight = kRatioMemory * layer.weight + (1 - kRatioMemory);
  }
}

void Optimizer::FrozenStepBy(const cuda::LambStep& lamb, const cuda::LambBuffers& of_lamb,
                             std::span<const double> gate) {
  const cuda::FrozenLambStep step{.lamb = lamb, .frozen_step = second_steps()};
  const cuda::FrozenLambBuffers buffers{.gradients = of_lamb.gradients,
                                        .parameters = of_lamb.parameters,
                                        .first_moment = of_lamb.first_moment,
                                        .second_moment = of_lamb.second_moment,
                                        .fresh_moment = fresh_.span()};
  MakeRoomForLayers();
  device_.FrozenLambSums(step, segments_, buffers, layer_sums_.span());
  if (!LayersOnHost(layer_sums_.span(), gate)) return;
  std::vector<double> ratios, factors;
  for (const LayerRatio& layer : one_bit_.layers) {
    ratios.push_back(layer.Mean());
    factors.push_back(layer.factor);
  }
  std::vector<double> rates(segments_.size());
  cuda::FrozenLambRates(step, layers_on_host_.span(), {.ratios = ratios, .factors = factors},
                        rates);
  for (std::size_t i = 0; i < factors.size(); ++i) one_bit_.layers[i].factor = factors[i];
  const std::span<double> on_host = layers_on_host_.span().first(rates.size());
  const std::span<double> on_device = layer_sums_.span().first(rates.size());
  std::ranges::copy(rates, on_host.begin());
  device_.Copy(on_host, on_device);
  device_.FrozenLambMove(step, segments_, buffers, on_device);
}

std::optional<Optimizer::Moments> Optimizer::moments() const {
  if (const auto* const adam = std::get_if<AdamOptions>(&options_)) {
    return Moments{.beta1 = adam->beta1, .beta2 = adam->beta2};
  }
  if (const auto* const lamb = std::get_if<LambOptions>(&options_)) {
    return Moments{.beta1 = lamb->beta1, .beta2 = lamb->beta2};
  }
  return std::nullopt;
}

void Optimizer::FollowRatios() {
  if (!std::holds_alternative<LambOptions>(options_)) return;
  if (one_bit_.layers.empty()) one_bit_.layers.resize(segments_.size());
}

void Optimizer::Freeze() {
  TACTUS_CHECK(moments().has_value() && !one_bit_.frozen);
  one_bit_.frozen = true;
  if (!std::holds_alternative<LambOptions>(options_)) return;
  fresh_ = device_.Allocate(second_.size());
  device_.Copy(second_.span(), fresh_.span());
  for (LayerRatio& layer : one_bit_.layers) layer.factor = 1;
}

void Optimizer::Thaw() {
  TACTUS_CHECK(one_bit_.frozen);
  one_bit_.frozen = false;
  if (fresh_.size() == 0) return;
  device_.Copy(fresh_.span(), second_.span());
  device_.Synchronize();  // before its memory goes
  fresh_ = {};
  one_bit_.frozen_steps = 0;
}

void Optimizer::RestoreOneBit(const OneBitState& state, std::span<const float> fresh) {
  one_bit_ = state;
  fresh_ = {};
  if (fresh.empty()) return;
  fresh_ = device_.Allocate(fresh.size());
  device_.Copy(fresh, fresh_.span());
}

}  // namespace tactus::engine
