#include "coordinator/spec/spec_validation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "tests/coordinator/spec/rule.h"

namespace tactus::spec {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

v1::JobSpec ImageSpec() {
  v1::JobSpec spec = TextSpec();
  spec.mutable_model()->set_builtin("cifar-cnn");
  spec.mutable_data()->set_cifar("/cifar");
  return spec;
}

// A TorchScript model on NumPy files.
v1::JobSpec TableSpec() {
  v1::JobSpec spec = TextSpec();
  spec.mutable_model()->set_torchscript("/m.pt");
  spec.mutable_data()->mutable_numpy()->set_inputs("/i");
  spec.mutable_data()->mutable_numpy()->set_targets("/t");
  return spec;
}

class SpecRuleTest : public testing::TestWithParam<Rule> {};

// Each rule, broken alone, gives exactly one violation, of the right field.
TEST_P(SpecRuleTest, ABrokenRuleIsReportedAtItsField) { ExpectReportedAtItsField(GetParam()); }

const Rule kNameRules[] = {
    {"NameMissing", [](auto& s) { s.clear_name(); }, "name", "is missing"},
    {"NameUpperCase", [](auto& s) { s.set_name("Big"); }, "name", "found \"Big\""},
    {"NameDigitFirst", [](auto& s) { s.set_name("1a"); }, "name", "beginning with a letter"},
    {"NameTooLong", [](auto& s) { s.set_name(std::string(64, 'a')); }, "name", "1 to 63"},
    {"NameSlash", [](auto& s) { s.set_name("a/b"); }, "name", "found \"a/b\""},
};

const Rule kModelRules[] = {
    {"ModelMissing", [](auto& s) { s.clear_model(); }, "model", "is missing"},
    {"BuiltinUnknown", [](auto& s) { s.mutable_model()->set_builtin("byte-lm"); }, "model.builtin",
     "did you mean bytes-lm?"},
    {"BuiltinLoss", [](auto& s) { s.mutable_model()->set_loss("mse"); }, "model.loss",
     "allowed with model.builtin is cross_entropy"},
    {"BuiltinEmpty", [](auto& s) { s.mutable_model()->set_builtin(""); }, "model.builtin",
     "bytes-lm, cifar-cnn or resnet18"},
    {"TorchscriptEmpty", [](auto& s) { s.mutable_model()->set_torchscript(""); },
     "model.torchscript", "is empty"},
    {"TorchscriptZeroByte",
     [](auto& s) { s.mutable_model()->set_torchscript(std::string("a\0b", 3)); },
     "model.torchscript", "control characters"},
    {"TorchscriptTooLong",
     [](auto& s) { s.mutable_model()->set_torchscript(std::string(4097, 'a')); },
     "model.torchscript", "4097 bytes"},
    {"WeightsZeroByte", [](auto& s) { s.mutable_model()->set_weights(std::string("a\0b", 3)); },
     "model.weights", "control characters"},
    {"WeightsHash", [](auto& s) { s.mutable_model()->set_weights("sha256:12"); }, "model.weights",
     "64 hexadecimal digits"},
    {"OutputOfBuiltin", [](auto& s) { s.mutable_model()->set_output("0"); }, "model.output",
     "applies to TorchScript models"},
    {"LossUnknown", [](auto& s) { s.mutable_model()->set_loss("cross_entorpy"); }, "model.loss",
     "did you mean cross_entropy?"},
    {"PrecisionUnknown",
     [](auto& s) { s.mutable_model()->set_precision(static_cast<v1::Precision>(7)); },
     "model.precision", "found the unknown value 7, allowed is float32 or bfloat16"},
    {"OptionsOfTorchscript",
     [](auto& s) {
       s.mutable_model()->set_torchscript("/m.pt");
       s.mutable_model()->mutable_options()->set_width(8);
     },
     "model.options", "built-in models only"},
    {"WidthTooSmall", [](auto& s) { s.mutable_model()->mutable_options()->set_width(4); },
     "model.options.width", "found 4, allowed is 8 to 4096"},
    {"WidthTooLarge", [](auto& s) { s.mutable_model()->mutable_options()->set_width(8192); },
     "model.options.width", "found 8192"},
    {"WidthNotOfHeads", [](auto& s) { s.mutable_model()->mutable_options()->set_heads(3); },
     "model.options.width", "found 128, allowed is a multiple of heads, 3"},
    {"HeadsZero", [](auto& s) { s.mutable_model()->mutable_options()->set_heads(0); },
     "model.options.heads", "1 to 64"},
    {"LayersTooMany", [](auto& s) { s.mutable_model()->mutable_options()->set_layers(65); },
     "model.options.layers", "1 to 64"},
    {"ContextTooShort", [](auto& s) { s.mutable_model()->mutable_options()->set_context(7); },
     "model.options.context", "8 to 4096"},
    {"ClassesOfText", [](auto& s) { s.mutable_model()->mutable_options()->set_classes(10); },
     "model.options.classes", "does not apply to bytes-lm"},
    {"ChannelsOfText", [](auto& s) { s.mutable_model()->mutable_options()->set_channels(3); },
     "model.options.channels", "does not apply to bytes-lm"},
    {"HeadsOfImages",
     [](auto& s) {
       s = ImageSpec();
       s.mutable_model()->mutable_options()->set_heads(4);
     },
     "model.options.heads", "does not apply to cifar-cnn"},
    {"ImageWidth",
     [](auto& s) {
       s = ImageSpec();
       s.mutable_model()->mutable_options()->set_width(513);
     },
     "model.options.width", "4 to 512"},
    {"ImageClasses",
     [](auto& s) {
       s = ImageSpec();
       s.mutable_model()->mutable_options()->set_classes(1);
     },
     "model.options.classes", "2 to 65536"},
    {"ImageChannels",
     [](auto& s) {
       s = ImageSpec();
       s.mutable_model()->mutable_options()->set_channels(17);
     },
     "model.options.channels", "1 to 16"},
};

const Rule kDataRules[] = {
    {"DataMissing", [](auto& s) { s.clear_data(); }, "data", "text, cifar, idx or numpy"},
    {"TextEmpty", [](auto& s) { s.mutable_data()->set_text(""); }, "data.text", "is empty"},
    {"CifarOfText", [](auto& s) { s.mutable_data()->set_cifar("/c"); }, "data.cifar",
     "does not fit model.builtin bytes-lm"},
    {"IdxOfText",
     [](auto& s) {
       s.mutable_data()->mutable_idx()->set_inputs("/i");
       s.mutable_data()->mutable_idx()->set_targets("/t");
     },
     "data.idx", "does not fit"},
    {"TextOfImages",
     [](auto& s) {
       s = ImageSpec();
       s.mutable_data()->set_text("/t");
     },
     "data.text", "does not fit model.builtin cifar-cnn"},
    {"NumpyInputsMissing", [](auto& s) { s.mutable_data()->mutable_numpy()->set_targets("/t"); },
     "data.numpy.inputs", "is empty"},
    {"NumpyTargetsMissing", [](auto& s) { s.mutable_data()->mutable_numpy()->set_inputs("/i"); },
     "data.numpy.targets", "is empty"},
    {"MoreInputsOfBuiltin",
     [](auto& s) {
       s.mutable_data()->mutable_numpy()->set_inputs("/i");
       s.mutable_data()->mutable_numpy()->set_targets("/t");
       s.mutable_data()->mutable_numpy()->add_more_inputs("/m");
     },
     "data.numpy.more_inputs", "applies to TorchScript models"},
    {"MoreInputEmpty",
     [](auto& s) {
       s = TableSpec();
       s.mutable_data()->mutable_numpy()->add_more_inputs("");
     },
     "data.numpy.more_inputs[0]", "is empty"},
    {"InputTypeUnknown",
     [](auto& s) {
       s = TableSpec();
       s.mutable_data()->mutable_numpy()->add_input_types("flaot32");
     },
     "data.numpy.input_types[0]", "did you mean float32?"},
    {"InputTypesTooMany",
     [](auto& s) {
       s = TableSpec();
       s.mutable_data()->mutable_numpy()->add_input_types("bool");
       s.mutable_data()->mutable_numpy()->add_input_types("bool");
     },
     "data.numpy.input_types", "found 2 for 1 input, allowed is one each"},
    {"MoreInputsOfIdx",
     [](auto& s) {
       s = ImageSpec();
       s.mutable_data()->mutable_idx()->set_inputs("/i");
       s.mutable_data()->mutable_idx()->set_targets("/t");
       s.mutable_data()->mutable_idx()->add_more_inputs("/m");
     },
     "data.idx.more_inputs", "applies to data.numpy only"},
    {"TextHash", [](auto& s) { s.mutable_data()->set_text("sha256:ab"); }, "data.text",
     "64 hexadecimal digits"},
    {"ImagesOfText", [](auto& s) { s.mutable_data()->mutable_images()->set_flip(true); },
     "data.images", "applies to images"},
    {"MeanOfCifar",
     [](auto& s) {
       s = ImageSpec();
       s.mutable_data()->mutable_images()->add_mean(0.5);
     },
     "data.images.mean", "standardised already"},
    {"MeanNan",
     [](auto& s) {
       s = TableSpec();
       s.mutable_data()->mutable_images()->add_mean(kNan);
     },
     "data.images.mean", "allowed are finite numbers"},
    {"DeviationZero",
     [](auto& s) {
       s = TableSpec();
       s.mutable_data()->mutable_images()->add_deviation(0);
     },
     "data.images.deviation", "found 0, allowed is above 0"},
    {"CropTooWide",
     [](auto& s) {
       s = ImageSpec();
       s.mutable_data()->mutable_images()->set_crop(1025);
     },
     "data.images.crop", "0 to 1024"},
    {"SubsetOfNothing", [](auto& s) { s.mutable_data()->mutable_subset(); }, "data.subset",
     "give random or craig"},
    {"SubsetTooLarge",
     [](auto& s) { s.mutable_data()->mutable_subset()->mutable_craig()->set_fraction(1.5); },
     "data.subset.craig.fraction", "found 1.5, allowed is above 0 to 1"},
    {"SubsetOfNoSamples",
     [](auto& s) { s.mutable_data()->mutable_subset()->mutable_random()->set_fraction(0); },
     "data.subset.random.fraction", "found 0, allowed is above 0 to 1"},
    {"SubsetNever",
     [](auto& s) { s.mutable_data()->mutable_subset()->mutable_craig()->set_epochs(0); },
     "data.subset.craig.epochs", "1 to 4294967295"},
    {"CraigOfSigns",
     [](auto& s) {
       s.mutable_data()->mutable_subset()->mutable_craig();
       s.mutable_optimizer()->mutable_lamb();
       s.mutable_adapt()->mutable_encoding()->set_policy(v1::ENCODING_POLICY_ONE_BIT);
     },
     "data.subset.craig", "does not go with adapt.encoding one_bit"},
    {"CraigOfLeaders",
     [](auto& s) {
       s.mutable_data()->mutable_subset()->mutable_craig();
       auto& synchronization = *s.mutable_adapt()->mutable_synchronization();
       synchronization.set_policy(v1::SYNCHRONIZATION_POLICY_LSGD);
       synchronization.set_period(16);
     },
     "data.subset.craig", "does not go with adapt.synchronization lsgd"},
    {"CraigOfNeighbours",
     [](auto& s) {
       s.mutable_data()->mutable_subset()->mutable_craig();
       auto& synchronization = *s.mutable_adapt()->mutable_synchronization();
       synchronization.set_policy(v1::SYNCHRONIZATION_POLICY_DECENTLAM);
     },
     "data.subset.craig", "does not go with adapt.synchronization decentlam"},
    {"InputsOfText",
     [](auto& s) {
       s.mutable_data()->mutable_subset()->mutable_craig()->set_proxy(v1::SUBSET_PROXY_INPUTS);
     },
     "data.subset.craig.proxy", "found inputs, and data.text has bytes"},
    {"FractionNegative", [](auto& s) { s.mutable_data()->set_validation_fraction(-0.1); },
     "data.validation_fraction", "found -0.1, allowed is 0 to 0.9"},
    {"FractionTooLarge", [](auto& s) { s.mutable_data()->set_validation_fraction(0.95); },
     "data.validation_fraction", "0 to 0.9"},
    {"FractionNan", [](auto& s) { s.mutable_data()->set_validation_fraction(kNan); },
     "data.validation_fraction", "found nan"},
    {"ContextOfBuiltin", [](auto& s) { s.mutable_data()->set_context(64); }, "data.context",
     "model.options.context"},
    {"ContextZero",
     [](auto& s) {
       s.mutable_model()->set_torchscript("/m.pt");
       s.mutable_data()->set_context(0);
     },
     "data.context", "1 to 1048576"},
    {"ContextOfNumpy",
     [](auto& s) {
       s.mutable_model()->set_torchscript("/m.pt");
       s.mutable_data()->mutable_numpy()->set_inputs("/i");
       s.mutable_data()->mutable_numpy()->set_targets("/t");
       s.mutable_data()->set_context(64);
     },
     "data.context", "data.text only"},
};

const Rule kOptimizerRules[] = {
    {"RateZero", [](auto& s) { s.mutable_optimizer()->mutable_sgd()->set_learning_rate(0); },
     "optimizer.sgd.learning_rate", "above 0"},
    {"RateInfinite",
     [](auto& s) { s.mutable_optimizer()->mutable_sgd()->set_learning_rate(kInfinity); },
     "optimizer.sgd.learning_rate", "found inf, allowed is a finite number, above 0"},
    {"MomentumOne", [](auto& s) { s.mutable_optimizer()->mutable_sgd()->set_momentum(1); },
     "optimizer.sgd.momentum", "0 to below 1"},
    {"DecayNegative", [](auto& s) { s.mutable_optimizer()->mutable_sgd()->set_weight_decay(-1); },
     "optimizer.sgd.weight_decay", "0 or more"},
    {"NesterovAlone", [](auto& s) { s.mutable_optimizer()->mutable_sgd()->set_nesterov(true); },
     "optimizer.sgd.nesterov", "without momentum"},
    {"LambInShards",
     [](auto& s) {
       s.mutable_optimizer()->mutable_lamb();
       s.mutable_optimizer()->set_shard(v1::SHARD_MEMORY);
     },
     "optimizer.shard", "found memory with lamb, whose steps go by the norms of whole layers"},
    {"ShardUnknown", [](auto& s) { s.mutable_optimizer()->set_shard(static_cast<v1::Shard>(9)); },
     "optimizer.shard", "allowed is none, equal or memory"},
    {"CopiesWithoutShards", [](auto& s) { s.mutable_optimizer()->set_shard_copies(2); },
     "optimizer.shard_copies", "found 2 without optimizer.shard"},
    {"ThreeCopies",
     [](auto& s) {
       s.mutable_optimizer()->set_shard(v1::SHARD_EQUAL);
       s.mutable_optimizer()->set_shard_copies(3);
     },
     "optimizer.shard_copies", "found 3, allowed is 1 to 2"},
    {"AdamRate", [](auto& s) { s.mutable_optimizer()->mutable_adam()->set_learning_rate(-1); },
     "optimizer.adam.learning_rate", "above 0"},
    {"AdamBeta1", [](auto& s) { s.mutable_optimizer()->mutable_adam()->set_beta1(1); },
     "optimizer.adam.beta1", "0 to below 1"},
    {"AdamBeta2", [](auto& s) { s.mutable_optimizer()->mutable_adam()->set_beta2(-0.5); },
     "optimizer.adam.beta2", "0 to below 1"},
    {"AdamEpsilon", [](auto& s) { s.mutable_optimizer()->mutable_adam()->set_epsilon(0); },
     "optimizer.adam.epsilon", "above 0"},
    {"AdamwDecay", [](auto& s) { s.mutable_optimizer()->mutable_adamw()->set_weight_decay(kNan); },
     "optimizer.adamw.weight_decay", "found nan"},
    {"ClipZero", [](auto& s) { s.mutable_optimizer()->set_clip_norm(0); }, "optimizer.clip_norm",
     "above 0"},
};

const Rule kStopRules[] = {
    {"StopMissing", [](auto& s) { s.clear_stop(); }, "stop", "is missing"},
    {"StopEmpty", [](auto& s) { s.mutable_stop()->Clear(); }, "stop", "at least one"},
    {"LossNan", [](auto& s) { s.mutable_stop()->set_train_loss(kNan); }, "stop.train_loss",
     "a finite number"},
    {"EpochsZero", [](auto& s) { s.mutable_stop()->set_epochs(0); }, "stop.epochs", "found 0"},
    {"TimeZero", [](auto& s) { s.mutable_stop()->mutable_time(); }, "stop.time", "above 0"},
    {"TimeNegative", [](auto& s) { s.mutable_stop()->mutable_time()->set_seconds(-5); },
     "stop.time", "found -5s"},
    {"TimeTooLong", [](auto& s) { s.mutable_stop()->mutable_time()->set_seconds(1LL << 40); },
     "stop.time", "10 years"},
    {"RoundsZero", [](auto& s) { s.mutable_stop()->set_rounds(0); }, "stop.rounds", "found 0"},
};

void ForgoValidation(v1::JobSpec& spec) {
  spec.mutable_validation()->set_policy(v1::VALIDATION_POLICY_NONE);
}

const Rule kValidationRules[] = {
    {"ValidationEpochsZero", [](auto& s) { s.mutable_validation()->set_epochs(0); },
     "validation.epochs", "found 0, allowed is 1 to"},
    {"ValidationRoundsZero", [](auto& s) { s.mutable_validation()->set_rounds(0); },
     "validation.rounds", "found 0, allowed is 1 to"},
    {"ValidationEveryTooShort",
     [](auto& s) { s.mutable_validation()->mutable_every()->set_nanos(500'000'000); },
     "validation.every", "found 0.5s, allowed is 1s to 365d"},
    {"ValidationSamplesZero", [](auto& s) { s.mutable_validation()->set_samples(0); },
     "validation.samples", "found 0, allowed is 1 to"},
    {"ValidationPolicyUnknown",
     [](auto& s) { s.mutable_validation()->set_policy(static_cast<v1::ValidationPolicy>(9)); },
     "validation.policy", "auto or none"},
    {"ValidationIntervalOfNone",
     [](auto& s) {
       ForgoValidation(s);
       s.mutable_validation()->set_epochs(1);
     },
     "validation.epochs", "does not apply to policy none; it is for auto"},
    {"ValidationSamplesTwice",
     [](auto& s) {
       s.mutable_validation()->set_samples(500);
       s.mutable_data()->set_validation_samples_max(1000);
     },
     "validation.samples", "found 500, allowed is 1000, as data.validation_samples_max says"},
    {"ValidationLossNan", [](auto& s) { s.mutable_stop()->set_validation_loss(kNan); },
     "stop.validation_loss", "a finite number"},
    {"PatienceZero", [](auto& s) { s.mutable_stop()->set_patience(0); }, "stop.patience",
     "found 0, allowed is 1 to"},
    {"PatienceOfNone",
     [](auto& s) {
       ForgoValidation(s);
       s.mutable_stop()->set_patience(3);
     },
     "stop.patience", "found 3, allowed is to leave it out, as validation is none"},
    {"ValidationLossOfNone",
     [](auto& s) {
       ForgoValidation(s);
       s.mutable_stop()->set_validation_loss(1.5);
     },
     "stop.validation_loss", "found 1.5, allowed is to leave it out, as validation is none"},
    {"BestOfNone",
     [](auto& s) {
       ForgoValidation(s);
       s.set_result(v1::RESULT_CHOICE_BEST);
     },
     "result", "found best, allowed is to leave it out, as validation is none"},
    {"ValidationWithoutData",
     [](auto& s) {
       s.mutable_data()->set_validation_fraction(0);
       s.mutable_validation()->set_epochs(2);
     },
     "validation.epochs", "found 2, allowed is to leave it out, as data.validation_fraction is 0"},
    {"BestWithoutData",
     [](auto& s) {
       s.mutable_data()->set_validation_fraction(0);
       s.set_result(v1::RESULT_CHOICE_BEST);
     },
     "result", "so that there is no validation data"},
    {"PatienceWithoutSamples",
     [](auto& s) {
       s.mutable_data()->set_validation_samples_max(0);
       s.mutable_stop()->set_patience(1);
     },
     "stop.patience", "as data.validation_samples_max is 0"},
    {"ResultUnknown", [](auto& s) { s.set_result(static_cast<v1::ResultChoice>(9)); }, "result",
     "last or best"},
};

const Rule kWorkersAndAdaptRules[] = {
    {"MinZero", [](auto& s) { s.mutable_workers()->set_min(0); }, "workers.min", "found 0"},
    {"MaxZero", [](auto& s) { s.mutable_workers()->set_max(0); }, "workers.max", "found 0"},
    {"MaxBelowMin",
     [](auto& s) {
       s.mutable_workers()->set_min(4);
       s.mutable_workers()->set_max(2);
     },
     "workers.max", "found 2, allowed is workers.min, 4, or more"},
    {"DeviceUnknown",
     [](auto& s) { s.mutable_workers()->set_device(static_cast<v1::DeviceKind>(7)); },
     "workers.device", "unknown value 7"},
    {"BatchPolicyUnknown",
     [](auto& s) {
       s.mutable_adapt()->mutable_batch()->set_policy(static_cast<v1::BatchPolicy>(9));
     },
     "adapt.batch.policy", "fixed, proportional, abs or auto"},
    {"PerWorkerZero", [](auto& s) { s.mutable_adapt()->mutable_batch()->set_per_worker(0); },
     "adapt.batch.per_worker", "1 to 1048576"},
    {"BatchMinZero", [](auto& s) { s.mutable_adapt()->mutable_batch()->set_min(0); },
     "adapt.batch.min", "found 0"},
    {"BatchMaxTooLarge",
     [](auto& s) { s.mutable_adapt()->mutable_batch()->set_max((1u << 20) + 1); },
     "adapt.batch.max", "1 to 1048576"},
    {"BatchMaxBelowMin",
     [](auto& s) {
       s.mutable_adapt()->mutable_batch()->set_min(64);
       s.mutable_adapt()->mutable_batch()->set_max(48);
     },
     "adapt.batch.max", "found 48, allowed is adapt.batch.min, 64, or more"},
    {"PerWorkerOutsideBounds", [](auto& s) { s.mutable_adapt()->mutable_batch()->set_max(16); },
     "adapt.batch.per_worker", "found 32, allowed is 1 to 16"},
    {"MicroBatchZero", [](auto& s) { s.mutable_adapt()->mutable_batch()->set_micro_batch(0); },
     "adapt.batch.micro_batch", "found 0"},
    {"SynchronizationUnknown",
     [](auto& s) {
       s.mutable_adapt()->mutable_synchronization()->set_policy(
           static_cast<v1::SynchronizationPolicy>(9));
     },
     "adapt.synchronization.policy", "every_step"},
    {"AggregationUnknown",
     [](auto& s) {
       s.mutable_adapt()->mutable_aggregation()->set_policy(static_cast<v1::AggregationPolicy>(9));
     },
     "adapt.aggregation.policy", "average"},
    {"LearningRateUnknown",
     [](auto& s) {
       s.mutable_adapt()->mutable_learning_rate()->set_policy(
           static_cast<v1::LearningRatePolicy>(9));
     },
     "adapt.learning_rate.policy", "constant"},
    {"EncodingUnknown",
     [](auto& s) {
       s.mutable_adapt()->mutable_encoding()->set_policy(static_cast<v1::EncodingPolicy>(99));
     },
     "adapt.encoding.policy", "dense, float16, bfloat16, auto, dq, sketch, adacomp or one_bit"},
};

std::string NameOf(const testing::TestParamInfo<Rule>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Name, SpecRuleTest, testing::ValuesIn(kNameRules), NameOf);
INSTANTIATE_TEST_SUITE_P(Model, SpecRuleTest, testing::ValuesIn(kModelRules), NameOf);
INSTANTIATE_TEST_SUITE_P(Data, SpecRuleTest, testing::ValuesIn(kDataRules), NameOf);
INSTANTIATE_TEST_SUITE_P(Optimizer, SpecRuleTest, testing::ValuesIn(kOptimizerRules), NameOf);
INSTANTIATE_TEST_SUITE_P(Stop, SpecRuleTest, testing::ValuesIn(kStopRules), NameOf);
INSTANTIATE_TEST_SUITE_P(Validation, SpecRuleTest, testing::ValuesIn(kValidationRules), NameOf);
INSTANTIATE_TEST_SUITE_P(WorkersAndAdapt, SpecRuleTest, testing::ValuesIn(kWorkersAndAdaptRules),
                         NameOf);

TEST(SpecValidationTest, ARoundNeverHasMoreSamplesThanItsLanesCanCount) {
  v1::JobSpec spec = TextSpec();
  spec.mutable_adapt()->mutable_batch()->set_per_worker(1 << 20);
  EXPECT_EQ(ParseSpec(spec)->workers_max, 16u);

  spec.mutable_workers()->set_min(17);

  const auto violations = SpecViolations(spec);
  ASSERT_EQ(violations.size(), 1u);
  EXPECT_EQ(violations[0].field, "workers.min");
  EXPECT_THAT(violations[0].description, testing::HasSubstr("at most 16:"));
}

TEST(SpecValidationTest, ProperSpecsHaveNoViolation) {
  EXPECT_TRUE(SpecViolations(TextSpec()).empty());
  EXPECT_TRUE(SpecViolations(ImageSpec()).empty());
  v1::JobSpec full = TextSpec();
  full.mutable_model()->set_loss("/losses/mine.pt");
  full.mutable_model()->mutable_options()->set_width(96);
  full.mutable_model()->mutable_options()->set_heads(3);
  full.mutable_data()->set_validation_fraction(0);
  full.mutable_optimizer()->mutable_sgd()->set_momentum(0.9);
  full.mutable_optimizer()->mutable_sgd()->set_nesterov(true);
  full.mutable_optimizer()->set_clip_norm(1);
  full.mutable_stop()->set_train_loss(-1);
  full.mutable_stop()->mutable_time()->set_nanos(1);
  EXPECT_TRUE(SpecViolations(full).empty());
}

TEST(SpecValidationTest, AnEmptySpecNamesAllThatIsMissing) {
  const absl::StatusOr<job::JobSettings> settings = ParseSpec(v1::JobSpec());

  std::vector<std::string> fields;
  for (const auto& violation : runtime::FieldViolations(settings.status())) {
    fields.push_back(violation.field);
  }
  EXPECT_TRUE(absl::IsInvalidArgument(settings.status()));
  EXPECT_THAT(fields, testing::ElementsAre("name", "model", "data", "stop"));
}

TEST(SpecValidationTest, ViolationsComeInTheOrderOfTheFields) {
  v1::JobSpec spec = TextSpec();
  spec.set_name("A");
  spec.set_priority(1001);
  spec.mutable_adapt()->add_frozen("weather");
  spec.mutable_adapt()->set_policy(v1::ADAPT_POLICY_NONE);
  spec.mutable_adapt()->mutable_batch()->set_policy(v1::BATCH_POLICY_ABS);
  spec.mutable_adapt()->mutable_batch()->set_min(0);
  spec.mutable_optimizer()->set_clip_norm(0);

  std::vector<std::string> fields;
  for (const auto& violation : SpecViolations(spec)) fields.push_back(violation.field);

  EXPECT_THAT(fields, testing::ElementsAre("name", "optimizer.clip_norm", "adapt.batch.policy",
                                           "adapt.batch.min", "adapt.frozen[0]", "priority"));
}

TEST(SpecValidationTest, SettingsCarryWhatTheControllerNeeds) {
  v1::JobSpec spec = TextSpec();
  spec.mutable_workers()->set_min(2);
  spec.mutable_workers()->set_max(4);
  spec.mutable_workers()->set_device(v1::DEVICE_KIND_CUDA);
  spec.mutable_adapt()->mutable_batch()->set_policy(v1::BATCH_POLICY_FIXED);
  spec.mutable_adapt()->mutable_batch()->set_per_worker(16);
  spec.mutable_adapt()->mutable_batch()->set_min(8);
  spec.mutable_adapt()->mutable_batch()->set_max(64);
  spec.mutable_stop()->mutable_time()->set_seconds(90);
  spec.mutable_stop()->set_train_loss(1.8);
  spec.mutable_stop()->set_rounds(7);
  spec.mutable_hold()->set_seconds(120);

  const absl::StatusOr<job::JobSettings> settings = ParseSpec(spec);

  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->name, "shakespeare");
  EXPECT_EQ(settings->workers_min, 2u);
  EXPECT_EQ(settings->workers_max, 4u);
  EXPECT_EQ(settings->device, job::DeviceKind::kCuda);
  EXPECT_EQ(settings->adapt.batch_policy, "fixed");
  EXPECT_EQ(settings->adapt.batch.per_worker, 16u);
  EXPECT_EQ(settings->adapt.batch.batch_min, 8u);
  EXPECT_EQ(settings->adapt.batch.batch_max, 64u);
  EXPECT_EQ(settings->stop_time, Seconds(90));
  EXPECT_EQ(settings->stop_train_loss, 1.8);
  EXPECT_EQ(settings->stop_epochs, 2u);
  EXPECT_EQ(settings->stop_rounds, 7u);
  EXPECT_EQ(settings->hold, Seconds(120));
}

TEST(SpecValidationTest, AJobMayTakeWhateverDevicesThereAre) {
  v1::JobSpec spec = TextSpec();
  spec.mutable_workers()->set_device(v1::DEVICE_KIND_ANY);

  const absl::StatusOr<job::JobSettings> settings = ParseSpec(spec);

  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->device, job::DeviceKind::kAny);
}

TEST(SpecValidationTest, DefaultsAreThoseOfTheSchema) {
  const absl::StatusOr<job::JobSettings> settings = ParseSpec(TextSpec());

  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->workers_min, 1u);
  EXPECT_EQ(settings->device, job::DeviceKind::kStandard);
  EXPECT_EQ(settings->adapt.batch_policy, "auto");
  EXPECT_EQ(settings->adapt.batch.per_worker, 32u);
  EXPECT_FALSE(settings->stop_time.has_value());
  EXPECT_EQ(settings->hold, Seconds(3600));
}

TEST(SpecValidationTest, OfACifarFolderNobodyKnowsWhetherItHasATestBatch) {
  v1::JobSpec spec = ImageSpec();
  spec.mutable_data()->set_validation_fraction(0);
  spec.mutable_validation()->set_rounds(500);
  spec.mutable_stop()->set_patience(3);

  EXPECT_TRUE(SpecViolations(spec).empty());
}

TEST(SpecValidationTest, AJobMayEndByItsValidationsAlone) {
  v1::JobSpec spec = TextSpec();
  spec.mutable_stop()->Clear();
  spec.mutable_stop()->set_patience(3);

  EXPECT_TRUE(SpecViolations(spec).empty());
}

}  // namespace
}  // namespace tactus::spec
