// The optimizer: its options, its state, and one step on flat buffers.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "agent/collective/replica_sums.h"
#include "agent/collective/transport.h"
#include "agent/engine/foreign_optimizer.h"
#include "agent/engine/one_bit_state.h"
#include "base/fields.h"
#include "cuda/device.h"
#include "cuda/ops/segments.h"
#include "policies/delta_weights.h"

namespace tactus::engine {

// The options of an optimizer say of themselves
//
//   name()           in a job file; policies/optimizers.h has a row of it
//   buffers()        flat buffers of state that a step reads besides the parameters
//   linear()         what a step adds to the parameters is linear in the gradient, but for a weight
//                    decay that is the same for every gradient. Then combining gradients before the
//                    step and combining what the steps added come to the same.
//   known()          the share of its first buffer that a step goes whatever its gradient is
//   counts_steps()   moments are corrected by the number of steps since they began at zero, so that
//                    one of them cannot be forgotten alone
//   elementwise()    what becomes of a parameter follows from its own gradient and state, so that
//                    members may take a part of the step each
//
// Ranges, and the defaults of jobs, are those of proto/tactus/v1/spec.proto.

// Stochastic gradient descent.
struct SgdOptions {
  double learning_rate = 0.1;
  double momentum = 0;
  double weight_decay = 0;
  bool nesterov = false;

  static constexpr std::string_view name() { return "sgd"; }
  std::size_t buffers() const { return momentum > 0 ? 1 : 0; }
  bool linear() const { return momentum == 0; }
  double known() const { return nesterov ? momentum * momentum : momentum; }
  static constexpr bool counts_steps() { return false; }
  static constexpr bool elementwise() { return true; }
};
void Fields(auto& archive, Of<SgdOptions> auto& sgd) {
  archive("learning_rate", sgd.learning_rate);
  archive("momentum", sgd.momentum);
  archive("weight_decay", sgd.weight_decay);
  archive("nesterov", sgd.nesterov);
}

// Adam, or AdamW when `decoupled`.
struct AdamOptions {
  double learning_rate = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  bool decoupled = false;

  std::string_view name() const { return decoupled ? "adamw" : "adam"; }
  static constexpr std::size_t buffers() { return 2; }
  static constexpr bool linear() { return false; }
  static constexpr double known() { return 0; }
  static constexpr bool counts_steps() { return true; }
  static constexpr bool elementwise() { return true; }
};
void Fields(auto& archive, Of<AdamOptions> auto& adam) {
  archive("learning_rate", adam.learning_rate);
  archive("beta1", adam.beta1);
  archive("beta2", adam.beta2);
  archive("epsilon", adam.epsilon);
  archive("weight_decay", adam.weight_decay);
}

// LAMB; the trust ratio of every segment is held within [ratio_min, ratio_max].
struct LambOptions {
  double learning_rate = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-6;
  double weight_decay = 0.01;
  double ratio_min = 0.01;
  double ratio_max = 10;

  static constexpr std::string_view name() { return "lamb"; }
  static constexpr std::size_t buffers() { return 2; }
  static constexpr bool linear() { return false; }
  static constexpr double known() { return 0; }
  static constexpr bool counts_steps() { return true; }
  static constexpr bool elementwise() { return false; }
};
void Fields(auto& archive, Of<LambOptions> auto& lamb) {
  archive("learning_rate", lamb.learning_rate);
  archive("beta1", lamb.beta1);
  archive("beta2", lamb.beta2);
  archive("epsilon", lamb.epsilon);
  archive("weight_decay", lamb.weight_decay);
  archive("ratio_min", lamb.ratio_min);
  archive("ratio_max", lamb.ratio_max);
}

// Lion: every coordinate moves by the learning rate.
struct LionOptions {
  double learning_rate = 0.0001;
  double beta1 = 0.9;
  double beta2 = 0.99;
  double weight_decay = 0;

  static constexpr std::string_view name() { return "lion"; }
  static constexpr std::size_t buffers() { return 1; }
  static constexpr bool linear() { return false; }
  static constexpr double known() { return 0; }
  static constexpr bool counts_steps() { return false; }
  static constexpr bool elementwise() { return true; }
};
void Fields(auto& archive, Of<LionOptions> auto& lion) {
  archive("learning_rate", lion.learning_rate);
  archive("beta1", lion.beta1);
  archive("beta2", lion.beta2);
  archive("weight_decay", lion.weight_decay);
}

using OptimizerOptions =
    std::variant<SgdOptions, AdamOptions, LambOptions, LionOptions, ForeignOptions>;

// One of each that a job file can name.
inline std::vector<OptimizerOptions> EveryOptimizer() {
  return {SgdOptions{}, AdamOptions{}, AdamOptions{.decoupled = true}, LambOptions{},
          LionOptions{}};
}

// The one that a specification's `optimizer` chose.
void ReadChosen(auto& archive, OptimizerOptions& optimizer) {
  const auto take = [&]<typename T>(T& options) {
    if constexpr (!std::is_same_v<T, ForeignOptions>) {  // of no job file
      const std::string name(options.name());
      if (!archive.Has(name.c_str())) return;
      archive(name.c_str(), options);
      optimizer = options;
    }
  };
  for (OptimizerOptions& each : EveryOptimizer()) std::visit(take, each);
}

// How many buffers Optimizer::State returns.
std::size_t StateBuffers(const OptimizerOptions& options);

// Whether members may take a part of its steps each.
bool IsElementwise(const OptimizerOptions& options);

// Its name in a job file.
std::string_view NameOf(const OptimizerOptions& options);

// The rate of a step where no schedule and no rule changes it.
double BaseLearningRate(const OptimizerOptions& options);

// As policies::LearningRateOptions has it. Lion's sign, and LAMB's length of a layer's step, go by
// the latest step.
std::optional<double> BendingDecay(const OptimizerOptions& options);

// How its steps weigh the gradients of a window, or what it made of them coordinate by coordinate.
// kept: options.keep_local_momentum. Nothing: it keeps no sum of them that says so.
std::optional<policies::WindowMomentum> WindowMomentumOf(const OptimizerOptions& options,
                                                         bool kept);

// What a step is multiplied by.
struct StepScale {
  double gradient = 1;       // turns the sum in the gradient buffer into a (clipped) mean
  double learning_rate = 0;  // of this step, >= 0: the options' is only where the schedule starts
  // Where it is given, it decides whether the step is taken, and by what the gradient is
  // multiplied.
  std::span<const double> gate{};  // a row of cuda::StepGate or cuda::RoundGate, or empty
};

// Which of the optimizer's state is the optimizer's own.
enum class StateHeld {
  kWhole,      // all of it
  kElsewhere,  // none: callers of StepPart have it
};

// A step on some of the elements: all spans equally long, those of buffers that the optimizer has
// not are left out.
struct PartOfStep {
  std::uint64_t step = 1;  // which one it is, counted from 1
  StepScale scale{};
  std::span<const float> gradients{};
  std::span<float> parameters{};
  std::span<float> first{};   // momentum, or first moment
  std::span<float> second{};  // second moment
};

// Holds the state (momentum, moments, step count), which is equal on all members as long as all
// take the same steps. Runs on the engine's thread.
class Optimizer {
 public:
  // segments  the layout of every buffer given to Step, whose length is FlatLength(segments)
  // Requires: IsElementwise(options) where the state is held elsewhere.
  Optimizer(const OptimizerOptions& options, cuda::Device& device,
            const cuda::SegmentTable& segments, StateHeld held = StateHeld::kWhole);

  // One step with the gradient `scale.gradient * gradients` and the rate `scale.learning_rate`. It
  // counts even where its gate is shut. A foreign one may use the gradients up, and waits for a
  // gate.
  //
  // Where `replica` says that members have parts of one model, those of a replica take the step
  // together, all with the same gate, and who needs norms of whole segments waits for theirs.
  // Returns how that ended: where it failed nothing has changed, and no step was counted.
  collective::Completion Step(std::span<float> gradients, StepScale scale,
                              std::span<float> parameters,
                              const collective::ReplicaSums& replica = {});

  // A part of a step, element by element as Step takes it; counts nothing. Requires: the options
  // are elementwise.
  void StepPart(const PartOfStep& part);
  // All parts of a step were taken, here and elsewhere.
  void CountPartStep() { ++steps_; }

  // parameters <- parameters - learning_rate k, k what the next step is known to go before its
  // gradient is: of sgd with momentum m
  //
  //   beta m, with nesterov beta^2 m
  //
  // of the others nothing. Weight decay is none of it, as it is of the parameters at that step. The
  // negative rate moves back, but for rounding.
  void MoveAhead(double learning_rate, std::span<float> parameters);

  // Forgets the momentum, as between two windows of local steps. Adam and LAMB, which count steps,
  // keep both moments and the count: the bias correction of a first moment at zero would count from
  // step 1, that of the second from where it is.
  void ResetMomentum();
  // All of the state at zero, as after so many steps: without a count, any; else 0.
  void BeginAnew(std::uint64_t steps);

  // As the options say it.
  bool linear() const;

  // The options' learning rate.
  double base_learning_rate() const { return BaseLearningRate(options_); }

  // The state that a step reads besides the parameters, buffer by buffer; empty: it has none. Who
  // writes to it calls GoOnFrom.
  std::vector<std::span<float>> State();

  // Steps taken, from which Adam and LAMB correct their bias.
  std::uint64_t steps() const { return steps_; }
  // As after so many steps, with State() as it is then.
  void GoOnFrom(std::uint64_t steps);
  // The step that was counted last was not taken: its gate was shut.
  void Uncount();

  // ---- 1-bit Adam and LAMB, as one_bit_phase.h leads them

  // How the moments of Adam and LAMB average; nothing: it has no second one.
  struct Moments {
    double beta1 = 0.9;
    double beta2 = 0.999;
  };
  std::optional<Moments> moments() const;

  // Moves with steps and with whoever leads the phases.
  OneBitState& one_bit() { return one_bit_; }
  const OneBitState& one_bit() const { return one_bit_; }
  // Steps of which the second moment is an average.
  std::uint64_t second_steps() const { return steps_ - one_bit_.frozen_steps; }

  // LAMB's ratios are averaged from now on, if they are not: each step waits for the device, as it
  // does while the second moment is frozen.
  void FollowRatios();

  // The second moment is frozen: each step moves the first by its gradient, and goes by the second
  // as it is (cuda/ops/frozen_lamb.h for LAMB). Requires: moments(), one_bit().frozen is false.
  void Freeze();
  // It moves again: LAMB's from the fresh one, which has seen all steps. Requires: frozen.
  void Thaw();

  // LAMB's fresh second moment, as State(); empty where it has none.
  std::span<float> FreshMoment() { return fresh_.span(); }
  // As these were, with steps and State(). fresh: empty, or as long as each of State().
  void RestoreOneBit(const OneBitState& state, std::span<const float> fresh);

 private:
  void StepBy(const SgdOptions& sgd, std::span<float> gradients, StepScale scale,
              std::span<float> parameters);
  void StepBy(const AdamOptions& adam, std::span<float> gradients, StepScale scale,
              std::span<float> parameters);
  void StepPartBy(const SgdOptions& sgd, const PartOfStep& part);
  void StepPartBy(const AdamOptions& adam, const PartOfStep& part);
  void StepPartBy(const LionOptions& lion, const PartOfStep& part);
  PartOfStep WholeStep(std::span<const float> gradients, const StepScale& scale,
                       std::span<float> parameters);
  void StepBy(const LambOptions& lamb, std::span<float> gradients, StepScale scale,
              std::span<float> parameters);
  void StepBy(const LionOptions& lion, std::span<float> gradients, StepScale scale,
              std::span<float> parameters);
  void StepBy(const ForeignOptions& foreign, std::span<float> gradients, StepScale scale,
              std::span<float> parameters);
  cuda::LambStep StepOf(const LambOptions& lamb, const StepScale& scale) const;
  collective::Completion SumLayers(const cuda::LambStep& step, const cuda::LambBuffers& buffers,
                                   std::span<const double> gate,
                                   const collective::ReplicaSums& replica);
  // layer_sums_ as a step has them that is not frozen.
  std::span<double> LayerSums() {
    return layer_sums_.span().first(cuda::kLambSumsPerSegment * segments_.size());
  }
  void MakeRoomForLayers();
  // layers_on_host_ <- the sums. Waits for them. Whether the gate is open, which comes along.
  bool LayersOnHost(std::span<const double> sums, std::span<const double> gate);
  void FrozenStepBy(const cuda::LambStep& lamb, const cuda::LambBuffers& of_lamb,
                    std::span<const double> gate);
  void AverageRatios(const cuda::LambStep& step, std::span<const double> sums);

  const OptimizerOptions options_;
  const cuda::SegmentTable segments_;
  cuda::Device& device_;
  std::uint64_t steps_ = 0;
  cuda::Buffer momentum_;  // SGD: empty without momentum; Adam and LAMB: first moment; Lion
  cuda::Buffer second_;    // Adam and LAMB alone
  OneBitState one_bit_{};
  cuda::Buffer fresh_;      // LAMB's, while the second is frozen
  bool by_layers_ = false;  // this step of LAMB's: its sums come to the host
  cuda::Sums layer_sums_;   // of this step, where they do, over all parts of the model
  cuda::Array<double> layers_on_host_;
  std::unique_ptr<cuda::Mark> layers_over_;  // null: no step's did
  cuda::Array<double> gate_on_host_;         // where a foreign one asks for it, or LAMB's layers
};

}  // namespace tactus::engine
