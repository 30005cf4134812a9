#include "client/yaml/job_file.h"

#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "base/rng.h"
#include "client/yaml/message_writer.h"
#include "tactus/cli/v1/config.pb.h"
#include "tactus/sim/v1/cluster.pb.h"
#include "tests/support/temporary_folder.h"

namespace tactus::client {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::util::MessageDifferencer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kWhole = R"(name: demo
model:
  builtin: bytes-lm
  options: {width: 64, layers: 2}
data: {text: "corpus.txt", validation_fraction: 0.25}
optimizer:
  sgd: {learning_rate: 1e-1, momentum: 0.9, nesterov: true}
  clip_norm: 1
stop: {train_loss: 1.8, epochs: 20, time: 1h30m, rounds: 18446744073709551615}
workers: {min: 2, max: 8, device: cpu, selector: {zone: a, "rack no": '7'}, tolerations: [gpu=shared, spot]}
priority: -5
adapt:
  frozen: [aggregation]
  batch: {policy: proportional, per_worker: 32}
  synchronization: {policy: every_step}
seed: 7
)";

std::vector<std::string> Errors(const std::string& text) {
  return ParseJobFile(text, {}, "/jobs").errors;
}

TEST(JobFileTest, ReadsEveryKindOfField) {
  const JobFile file = ParseJobFile(kWhole, {}, "/jobs");

  ASSERT_THAT(file.errors, IsEmpty());
  EXPECT_EQ(file.spec.name(), "demo");
  EXPECT_EQ(file.spec.model().builtin(), "bytes-lm");
  EXPECT_EQ(file.spec.model().options().width(), 64u);
  EXPECT_FALSE(file.spec.model().options().has_heads());
  EXPECT_EQ(file.spec.data().validation_fraction(), 0.25);
  EXPECT_EQ(file.spec.optimizer().sgd().learning_rate(), 0.1);
  EXPECT_TRUE(file.spec.optimizer().sgd().nesterov());
  EXPECT_EQ(file.spec.optimizer().clip_norm(), 1);
  EXPECT_EQ(file.spec.stop().time().seconds(), 5400);
  EXPECT_EQ(file.spec.stop().rounds(), 18446744073709551615u);
  EXPECT_EQ(file.spec.workers().device(), v1::DEVICE_KIND_CPU);
  EXPECT_EQ(file.spec.workers().selector().at("zone"), "a");
  EXPECT_EQ(file.spec.workers().selector().at("rack no"), "7");
  EXPECT_THAT(file.spec.workers().tolerations(), ElementsAre("gpu=shared", "spot"));
  EXPECT_THAT(file.spec.adapt().frozen(), ElementsAre("aggregation"));
  EXPECT_EQ(file.spec.priority(), -5);
  EXPECT_EQ(file.spec.adapt().batch().policy(), v1::BATCH_POLICY_PROPORTIONAL);
  EXPECT_EQ(file.spec.seed(), 7u);
}

TEST(JobFileTest, ASectionMayBeItsPolicyAlone) {
  const JobFile none = ParseJobFile("adapt: none\n", {}, "/jobs");
  const JobFile axes = ParseJobFile("adapt: {policy: none, batch: proportional}\n", {}, "/jobs");

  ASSERT_THAT(none.errors, IsEmpty());
  ASSERT_THAT(axes.errors, IsEmpty());
  EXPECT_EQ(none.spec.adapt().policy(), v1::ADAPT_POLICY_NONE);
  EXPECT_EQ(axes.spec.adapt().policy(), v1::ADAPT_POLICY_NONE);
  EXPECT_EQ(axes.spec.adapt().batch().policy(), v1::BATCH_POLICY_PROPORTIONAL);
  EXPECT_TRUE(MessageDifferencer::Equals(
      none.spec, ParseJobFile("adapt: {policy: none}\n", {}, "/jobs").spec));
}

TEST(JobFileTest, ReadsEveryAxisOfAdapting) {
  const char* const text = R"(
model: {builtin: resnet18, precision: bfloat16}
optimizer: {lamb: {learning_rate: 0.01, ratio_max: 5}}
stop: {steps: 1500.5}
adapt:
  batch: {policy: abs}
  synchronization: {policy: adacomm, initial_period: 20, interval: 30s, local_momentum: reset}
  aggregation: {policy: adasum}
  learning_rate:
    policy: adascale
    base_batch: 128
    schedule: {step: {boundaries: [3000, 6000], factor: 0.2}, warmup_steps: 100}
  encoding: dense
)";
  const JobFile file = ParseJobFile(text, {}, "/jobs");

  ASSERT_THAT(file.errors, IsEmpty());
  const v1::Adapt& adapt = file.spec.adapt();
  EXPECT_EQ(file.spec.model().precision(), v1::PRECISION_BFLOAT16);
  EXPECT_EQ(file.spec.optimizer().lamb().ratio_max(), 5);
  EXPECT_EQ(file.spec.stop().steps(), 1500.5);
  EXPECT_EQ(adapt.batch().policy(), v1::BATCH_POLICY_ABS);
  EXPECT_EQ(adapt.synchronization().policy(), v1::SYNCHRONIZATION_POLICY_ADACOMM);
  EXPECT_EQ(adapt.synchronization().initial_period(), 20u);
  EXPECT_EQ(adapt.synchronization().interval().seconds(), 30);
  EXPECT_EQ(adapt.synchronization().local_momentum(), v1::LOCAL_MOMENTUM_RESET);
  EXPECT_EQ(adapt.aggregation().policy(), v1::AGGREGATION_POLICY_ADASUM);
  EXPECT_EQ(adapt.learning_rate().policy(), v1::LEARNING_RATE_POLICY_ADASCALE);
  EXPECT_EQ(adapt.learning_rate().base_batch(), 128u);
  EXPECT_EQ(adapt.encoding().policy(), v1::ENCODING_POLICY_DENSE);
  const v1::Schedule& schedule = adapt.learning_rate().schedule();
  EXPECT_THAT(schedule.step().boundaries(), ElementsAre(3000u, 6000u));
  EXPECT_EQ(schedule.step().factor(), 0.2);
  EXPECT_EQ(schedule.warmup_steps(), 100u);
  const JobFile again = ParseJobFile(WriteMessage(file.spec), {}, "/elsewhere");
  EXPECT_TRUE(MessageDifferencer::Equals(file.spec, again.spec)) << WriteMessage(file.spec);
}

TEST(JobFileTest, ListsMayBeGivenOnTheCommandLine) {
  Override boundaries;
  ASSERT_TRUE(ParseOverride("adapt.learning_rate.schedule.step.boundaries=[10, 20]", &boundaries));

  const JobFile file = ParseJobFile("name: a\n", {boundaries}, "/jobs");

  ASSERT_THAT(file.errors, IsEmpty());
  EXPECT_THAT(file.spec.adapt().learning_rate().schedule().step().boundaries(),
              ElementsAre(10u, 20u));
}

TEST(JobFileTest, EmptyMapsStandForDefaults) {
  const JobFile file = ParseJobFile("name: a\noptimizer: {adam: {}}\n", {}, "/jobs");

  ASSERT_THAT(file.errors, IsEmpty());
  EXPECT_TRUE(file.spec.optimizer().has_adam());
}

TEST(JobFileTest, AWordMayStandForAFieldThatIsLeftOut) {
  const JobFile chosen = ParseJobFile("checkpoints: {every: auto, keep: 3}", {}, "/jobs");
  const JobFile given = ParseJobFile("checkpoints: {every: 10m}", {}, "/jobs");

  EXPECT_THAT(chosen.errors, IsEmpty());
  EXPECT_FALSE(chosen.spec.checkpoints().has_every());
  EXPECT_EQ(chosen.spec.checkpoints().keep(), 3u);
  EXPECT_EQ(given.spec.checkpoints().every().seconds(), 600);
  EXPECT_THAT(Errors("snapshots: {every: auto}"), ElementsAre(HasSubstr("is not a duration")));
}

TEST(JobFileTest, DurationsKeepTheirFractions) {
  const JobFile file = ParseJobFile("stop: {time: 1500ms}\n", {}, "/jobs");

  ASSERT_THAT(file.errors, IsEmpty());
  EXPECT_EQ(file.spec.stop().time().seconds(), 1);
  EXPECT_EQ(file.spec.stop().time().nanos(), 500'000'000);
}

TEST(JobFileTest, AnchorsAndAliasesAreResolved) {
  const JobFile file = ParseJobFile("workers: {min: &n 3, max: *n}\n", {}, "/jobs");

  ASSERT_THAT(file.errors, IsEmpty());
  EXPECT_EQ(file.spec.workers().max(), 3u);
}

struct ErrorCase {
  const char* text;
  const char* error;
};

class JobFileErrorTest : public ::testing::TestWithParam<ErrorCase> {};

TEST_P(JobFileErrorTest, SaysWhereAndWhatAndWhatIsAllowed) {
  EXPECT_THAT(Errors(GetParam().text), ElementsAre(GetParam().error));
}

INSTANTIATE_TEST_SUITE_P(
    AllKinds, JobFileErrorTest,
    ::testing::Values(
        ErrorCase{
            "name: a\nadapt:\n  batch: {polcy: fixed}\n",
            "adapt.batch.polcy: unknown key (line 3); did you mean 'policy'? allowed: policy, "
            "per_worker, min, max, micro_batch"},
        ErrorCase{
            "name: a\nzebra: 1\n",
            "zebra: unknown key (line 2); allowed: name, model, data, optimizer, stop, workers, "
            "adapt, seed, snapshots, priority, retries, checkpoints, hold, validation, result, "
            "program, network"},
        ErrorCase{"name: a\nname: b\n", "name: given twice (line 2); first on line 1"},
        ErrorCase{
            "model: {builtin: x, torchscript: y}\n",
            "model: both 'builtin' and 'torchscript' are given (line 1); allowed: one of them"},
        ErrorCase{"data: {text: a, cifar: b, idx: {}}\n",
                  "data: 'text', 'cifar' and 'idx' are given (line 1); allowed: one of them"},
        ErrorCase{"stop:\n  epochs: many\n", "stop.epochs: 'many' is not a whole number (line 2)"},
        ErrorCase{"stop: {epochs: 1.5}\n", "stop.epochs: '1.5' is not a whole number (line 1)"},
        ErrorCase{
            "stop: {epochs: \"20\"}\n",
            "stop.epochs: '20' is not a whole number (line 1); it stands in quotes, which make it "
            "text"},
        ErrorCase{"stop: {epochs: -3}\n",
                  "stop.epochs: -3 is negative (line 1); allowed: 0 to 4294967295"},
        ErrorCase{"stop: {epochs: 4294967296}\n",
                  "stop.epochs: 4294967296 is out of range (line 1); allowed: 0 to 4294967295"},
        ErrorCase{"seed: 18446744073709551616\n",
                  "seed: 18446744073709551616 is out of range (line 1); allowed: 0 to "
                  "18446744073709551615"},
        ErrorCase{"stop: {epochs: }\n",
                  "stop.epochs: no value is given (line 1); expected a whole number"},
        ErrorCase{"optimizer:\n  sgd:\n",
                  "optimizer.sgd: no value is given (line 2); expected a map of: learning_rate, "
                  "momentum, "
                  "weight_decay, nesterov; write {} for its defaults"},
        ErrorCase{"adapt: {learning_rate: {schedule: {step: {boundaries: 3}}}}\n",
                  "adapt.learning_rate.schedule.step.boundaries: '3' stands where a list is "
                  "expected (line 1); expected a list of whole numbers, such as [1, 2]"},
        ErrorCase{"adapt: {learning_rate: {schedule: {step: {boundaries: [3, x]}}}}\n",
                  "adapt.learning_rate.schedule.step.boundaries[1]: 'x' is not a whole number "
                  "(line 1)"},
        ErrorCase{"stop: {epochs: [1]}\n",
                  "stop.epochs: a list stands where a single value is expected (line 1); expected "
                  "a whole "
                  "number"},
        ErrorCase{"name: {a: b}\n",
                  "name: a map stands where a single value is expected (line 1); expected text"},
        ErrorCase{"stop: [epochs]\n",
                  "stop: a list stands where a map is expected (line 1); allowed keys: train_loss, "
                  "epochs, "
                  "time, rounds, steps, validation_loss, patience"},
        ErrorCase{
            "stop: 5\n",
            "stop: '5' stands where a map is expected (line 1); allowed keys: train_loss, epochs, "
            "time, rounds, steps, validation_loss, patience"},
        ErrorCase{"stop: {train_loss: low}\n",
                  "stop.train_loss: 'low' is not a finite number (line 1)"},
        ErrorCase{"stop: {train_loss: nan}\n",
                  "stop.train_loss: 'nan' is not a finite number (line 1)"},
        ErrorCase{
            "stop: {train_loss: 1e999}\n",
            "stop.train_loss: 1e999 is out of range (line 1); allowed: what a double can hold"},
        ErrorCase{"stop: {time: 90}\n",
                  "stop.time: '90' is not a duration (line 1); write a number with its unit, such "
                  "as 90s, "
                  "30m, 1h30m or 500ms"},
        ErrorCase{
            "stop: {time: }\n",
            "stop.time: no value is given (line 1); expected a duration such as 90s, 30m or 1h30m"},
        ErrorCase{"stop: {time: 99999999999999999h}\n",
                  "stop.time: '99999999999999999h' is out of range (line 1); allowed: durations of "
                  "at most 10 years, such as 90s, 30m or 1h30m"},
        ErrorCase{"stop:\n",
                  "stop: no value is given (line 1); expected a map of: train_loss, epochs, time, "
                  "rounds, steps, validation_loss, patience"},
        ErrorCase{
            "workers:\n",
            "workers: no value is given (line 1); expected a map of: min, max, spares, device, "
            "selector, tolerations; write {} for its defaults"},
        ErrorCase{"workers: {device: gpu}\n",
                  "workers.device: 'gpu' is unknown (line 1); did you mean 'cuda'? allowed: cpu, "
                  "cuda, any"},
        ErrorCase{"optimizer: {sgd: {nesterov: maybe}}\n",
                  "optimizer.sgd.nesterov: 'maybe' is not true or false (line 1)"},
        ErrorCase{
            "adapt: {batch: {policy: proportionl}}\n",
            "adapt.batch.policy: 'proportionl' is unknown (line 1); did you mean 'proportional'? "
            "allowed: fixed, proportional, abs, auto"},
        ErrorCase{"adapt: nonne\n",
                  "adapt: 'nonne' is unknown (line 1); did you mean 'none'? allowed: auto, none"},
        ErrorCase{
            "adapt: {batch: fix}\n",
            "adapt.batch: 'fix' is unknown (line 1); allowed: fixed, proportional, abs, auto"},
        ErrorCase{"adapt: {batch: {policy: }}\n",
                  "adapt.batch.policy: no value is given (line 1); expected one of: fixed, "
                  "proportional, abs, auto"},
        ErrorCase{"adapt: {batch: {policy: unspecified}}\n",
                  "adapt.batch.policy: 'unspecified' is unknown (line 1); allowed: fixed, "
                  "proportional, abs, auto"},
        ErrorCase{"<<: {name: a}\n",
                  "<<: unknown key (line 1); allowed: name, model, data, optimizer, stop, workers, "
                  "adapt, seed, snapshots, priority, retries, checkpoints, hold, validation, "
                  "result, program, network"},
        ErrorCase{
            "- name: a\n",
            "a list stands where a map is expected (line 1); allowed keys: name, model, data, "
            "optimizer, stop, workers, adapt, seed, snapshots, priority, retries, checkpoints, "
            "hold, validation, result, program, network"},
        ErrorCase{
            "hello\n",
            "'hello' stands where a map is expected (line 1); allowed keys: name, model, data, "
            "optimizer, stop, workers, adapt, seed, snapshots, priority, retries, checkpoints, "
            "hold, validation, result, program, network"},
        ErrorCase{"", "the file is empty; a job has at least name, model, data and stop"},
        ErrorCase{"# nothing\n",
                  "the file is empty; a job has at least name, model, data and stop"}));

TEST(JobFileTest, CollectsAllErrorsInOrder) {
  EXPECT_THAT(Errors("nam: a\nstop: {epochs: x, time: y}\nseed: -1\n"),
              ElementsAre(HasSubstr("nam: "), HasSubstr("stop.epochs: "), HasSubstr("stop.time: "),
                          HasSubstr("seed: -1 is negative")));
}

TEST(JobFileTest, LongAndControlTextIsShownShort) {
  const std::vector<std::string> errors =
      Errors("stop: {epochs: \"\\e[31m" + std::string(5000, 'x') + "\"}\n");

  ASSERT_EQ(errors.size(), 1u);
  EXPECT_LT(errors[0].size(), 200u);
  EXPECT_EQ(errors[0].find('\x1b'), std::string::npos);
}

TEST(JobFileTest, SyntaxErrorsAreTheOnlyError) {
  EXPECT_THAT(Errors("name: [a\nstop: {}\n"), ElementsAre(HasSubstr("line 2")));
}

TEST(JobFileTest, RelativePathsStartAtTheFilesFolder) {
  const JobFile file = ParseJobFile(
      "model: {torchscript: ../m.pt, loss: losses/l.pt}\ndata: {idx: {inputs: x.gz, targets: "
      "/y.gz}}\n",
      {}, "/jobs/a");

  ASSERT_THAT(file.errors, IsEmpty());
  EXPECT_EQ(file.spec.model().torchscript(), "/jobs/m.pt");
  EXPECT_EQ(file.spec.model().loss(), "/jobs/a/losses/l.pt");
  EXPECT_EQ(file.spec.data().idx().inputs(), "/jobs/a/x.gz");
  EXPECT_EQ(file.spec.data().idx().targets(), "/y.gz");
}

TEST(JobFileTest, AListOfInputsIsTheFirstAndMore) {
  const JobFile file = ParseJobFile(
      "data: {numpy: {inputs: [a.npy, /b.npy], targets: y.npy, input_types: [int64, bool]}, "
      "images: {mean: [0.5, 1e-3]}}\n",
      {}, "/jobs");

  ASSERT_THAT(file.errors, IsEmpty());
  const v1::FilePair& pair = file.spec.data().numpy();
  EXPECT_EQ(pair.inputs(), "/jobs/a.npy");
  EXPECT_THAT(pair.more_inputs(), ElementsAre("/b.npy"));
  EXPECT_THAT(pair.input_types(), ElementsAre("int64", "bool"));
  EXPECT_THAT(file.spec.data().images().mean(), ElementsAre(0.5, 1e-3));
}

TEST(JobFileTest, WhatIsWrongWithinAListIsSaidAtItsPlace) {
  EXPECT_THAT(Errors("data: {numpy: {inputs: [a, {b: c}], targets: y}}\n"),
              ElementsAre("data.numpy.more_inputs[0]: is not a text (line 1)"));
  EXPECT_THAT(Errors("data: {numpy: {inputs: [], targets: y}}\n"),
              ElementsAre(HasSubstr("data.numpy.inputs: a list stands where a single value")));
  EXPECT_THAT(Errors("data: {text: [a, b]}\n"),
              ElementsAre(HasSubstr("data.text: a list stands where a single value")));
  EXPECT_THAT(Errors("data: {images: {deviation: [x]}}\n"),
              ElementsAre(HasSubstr("data.images.deviation[0]: ")));
}

TEST(JobFileTest, NamesAreNotPathsAndPatternsAre) {
  const JobFile file = ParseJobFile(
      "model: {builtin: cifar-cnn, loss: mse}\ndata: {text: \"books/*.txt\"}\n", {}, "/jobs");

  ASSERT_THAT(file.errors, IsEmpty());
  EXPECT_EQ(file.spec.model().builtin(), "cifar-cnn");
  EXPECT_EQ(file.spec.model().loss(), "mse");
  EXPECT_EQ(file.spec.data().text(), "/jobs/books/*.txt");
}

TEST(JobFileTest, OverridesReplaceValuesAndHaveNoLine) {
  const JobFile good =
      ParseJobFile(kWhole, {{"adapt.batch.policy", "fixed"}, {"stop.time", "5s"}}, "/jobs");
  const JobFile bad = ParseJobFile(kWhole, {{"adapt.batch.policy", "fix"}}, "/jobs");
  const JobFile unknown = ParseJobFile(kWhole, {{"adapt.bach", "{}"}}, "/jobs");
  const JobFile broken = ParseJobFile(kWhole, {{"name.x", "1"}, {"seed", "["}}, "/jobs");

  ASSERT_THAT(good.errors, IsEmpty());
  EXPECT_EQ(good.spec.adapt().batch().policy(), v1::BATCH_POLICY_FIXED);
  EXPECT_EQ(good.spec.adapt().batch().per_worker(), 32u);
  EXPECT_EQ(good.spec.stop().time().seconds(), 5);
  EXPECT_THAT(
      bad.errors,
      ElementsAre("adapt.batch.policy: 'fix' is unknown; allowed: fixed, proportional, abs, auto"));
  EXPECT_THAT(unknown.errors,
              ElementsAre(HasSubstr("adapt.bach: unknown key; did you mean 'batch'?")));
  EXPECT_THAT(broken.errors, ElementsAre("--set name.x: 'x' is asked of what is not a map",
                                         HasSubstr("--set seed: line 1, column 1: ")));
}

TEST(JobFileTest, OverridesAreKeyEqualsValue) {
  Override parsed;

  EXPECT_TRUE(ParseOverride("a.b=c=d", &parsed));
  EXPECT_EQ(parsed.path, "a.b");
  EXPECT_EQ(parsed.value, "c=d");
  EXPECT_FALSE(ParseOverride("a.b", &parsed));
  EXPECT_FALSE(ParseOverride("=c", &parsed));
}

TEST(JobFileTest, FilesThatCannotBeReadAreNamedByTheirFault) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() + "/large.yaml") << std::string((1 << 20) + 1, '#');

  EXPECT_THAT(ReadJobFile(folder.path() + "/none.yaml", {}).errors,
              ElementsAre("No such file or directory"));
  EXPECT_THAT(ReadJobFile(folder.path(), {}).errors, ElementsAre("a folder; expected a job file"));
  EXPECT_THAT(ReadJobFile(folder.path() + "/large.yaml", {}).errors,
              ElementsAre("larger than 1048576 bytes, which is the most allowed"));
  EXPECT_THAT(ReadJobFile("/dev/null", {}).errors, ElementsAre(HasSubstr("the file is empty")));
}

TEST(JobFileTest, PathsOfAFileStartAtItsFolder) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() + "/job.yaml") << "data: {text: a.txt}\n";

  const JobFile file = ReadJobFile(folder.path() + "/job.yaml", {});

  EXPECT_EQ(file.spec.data().text(), folder.path() + "/a.txt");
}

// All job files among the examples.
std::vector<std::string> Examples() {
  std::vector<std::string> paths;
  const char* source = std::getenv("TACTUS_SOURCE");
  if (source == nullptr) return paths;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(source) + "/examples")) {
    const bool job = entry.path().extension() == ".yaml" && entry.path().stem() != "cluster";
    if (job) paths.push_back(entry.path().string());
  }
  return paths;
}

TEST(JobFileExamplesTest, EveryExampleReadsAndSurvivesARoundTrip) {
  const std::vector<std::string> examples = Examples();

  ASSERT_GE(examples.size(), 4u);
  for (const std::string& path : examples) {
    const JobFile file = ReadJobFile(path, {});
    ASSERT_THAT(file.errors, IsEmpty()) << path;
    const JobFile again = ParseJobFile(WriteMessage(file.spec), {}, "/elsewhere");
    ASSERT_THAT(again.errors, IsEmpty()) << path;
    EXPECT_TRUE(MessageDifferencer::Equals(file.spec, again.spec)) << WriteMessage(file.spec);
  }
}

TEST(JobFileTest, MapsAndListsOfTextsSayWhatTheyAre) {
  EXPECT_THAT(Errors("workers: {selector: [a]}\n"),
              ElementsAre("workers.selector: a list stands where a map is expected (line 1); "
                          "expected a map of texts, such as {zone: a}"));
  EXPECT_THAT(
      Errors("workers: {selector: {zone: [a]}}\n"),
      ElementsAre("workers.selector.zone: a list stands where a single value is expected (line "
                  "1); expected text"));
  EXPECT_THAT(Errors("workers:\n  selector:\n    zone: a\n    zone: b\n"),
              ElementsAre("workers.selector.zone: given twice (line 4); first on line 3"));
  EXPECT_THAT(Errors("workers: {tolerations: spot}\n"),
              ElementsAre("workers.tolerations: 'spot' stands where a list is expected (line 1); "
                          "expected a list of texts, such as [a, b]"));
  EXPECT_THAT(Errors("workers: {tolerations: [a, {b: c}]}\n"),
              ElementsAre("workers.tolerations[1]: is not a text (line 1)"));
}

TEST(JobFileTest, ControlCharactersAreRefused) {
  EXPECT_THAT(Errors("name: \"a\\e[1mb\"\n"),
              ElementsAre("name: 'a [1mb' holds a control character (line 1); allowed: printable "
                          "text"));
  EXPECT_THAT(Errors("workers: {tolerations: [\"a\\nb\"]}\n"),
              ElementsAre(HasSubstr("workers.tolerations[0]: 'a b' holds a control character")));
  EXPECT_THAT(Errors("workers: {selector: {\"a\\x7f\": b}}\n"),
              ElementsAre(HasSubstr("holds a control character")));
}

TEST(JobFileTest, NegativeDurationsAreRefused) {
  EXPECT_THAT(Errors("stop: {time: -5s}\n"),
              ElementsAre("stop.time: '-5s' is negative (line 1); allowed: durations of 0 or more, "
                          "such as 90s, 30m or 1h30m"));
}

TEST(JobFileTest, NamesOfTenMebibytesAreRefused) {
  EXPECT_THAT(Errors("name: " + std::string(10 << 20, 'a') + "\n"),
              ElementsAre(HasSubstr("larger than 1048576 bytes")));
}

TEST(JobFileTest, BlobsAreNoPaths) {
  const JobFile file =
      ParseJobFile("model: {torchscript: 'sha256:ab', loss: 'sha256:cd'}\n", {}, "/jobs");

  EXPECT_EQ(file.spec.model().torchscript(), "sha256:ab");
  EXPECT_EQ(file.spec.model().loss(), "sha256:cd");
}

// What ReadMessage requires of the schema.
void ExpectReadable(const google::protobuf::Descriptor& type) {
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    if (field.is_map()) {
      const auto* pair = field.message_type();
      EXPECT_EQ(pair->map_key()->cpp_type(), FieldDescriptor::CPPTYPE_STRING) << field.full_name();
      EXPECT_FALSE(pair->map_value()->is_repeated()) << field.full_name();
      if (pair->map_value()->message_type() != nullptr) {
        ExpectReadable(*pair->map_value()->message_type());
      }
      continue;
    }
    const bool message = field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    EXPECT_TRUE(!field.is_repeated() || message ||
                field.cpp_type() == FieldDescriptor::CPPTYPE_UINT64 ||
                field.cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE ||
                field.cpp_type() == FieldDescriptor::CPPTYPE_STRING)
        << field.full_name();
    if (message && field.message_type()->file()->package().starts_with("tactus.")) {
      ExpectReadable(*field.message_type());
    } else if (message) {
      EXPECT_EQ(field.message_type()->full_name(), "google.protobuf.Duration") << field.full_name();
    }
  }
}

TEST(JobFileTest, TheSchemaHasOnlyFieldsThatCanBeRead) {
  ExpectReadable(*v1::JobSpec::descriptor());
  ExpectReadable(*sim::v1::Cluster::descriptor());
  ExpectReadable(*cli::v1::Config::descriptor());
}

// One to eight bytes or lines of a good file are changed, lost or repeated.
std::string Mutate(std::string text, Rng& rng) {
  static const std::string kBytes = "{}[]:,-&*!|>'\"%@`#?\n\t \\~0a\xc3\xff";
  for (std::uint64_t n = 1 + rng.Below(8); n > 0 && !text.empty(); --n) {
    const std::size_t at = rng.Below(text.size());
    const std::size_t length = rng.Below(20);
    switch (rng.Below(4)) {
      case 0:
        text[at] = kBytes[rng.Below(kBytes.size())];
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, 1, kBytes[rng.Below(kBytes.size())]);
        break;
      default:
        text.insert(rng.Below(text.size()), text.substr(at, length));
        break;
    }
  }
  return text;
}

TEST(JobFilePropertyTest, MutatedFilesAreReadOrRefusedInShortLines) {
  int refused = 0;
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    Rng rng(seed);
    const std::string text = Mutate(kWhole, rng);
    const JobFile file = ParseJobFile(text, {}, "/jobs");
    refused += file.errors.empty() ? 0 : 1;
    for (const std::string& error : file.errors) {
      EXPECT_FALSE(error.empty()) << "seed " << seed;
      EXPECT_LT(error.size(), 600u) << "seed " << seed;
      EXPECT_EQ(error.find('\n'), std::string::npos) << "seed " << seed;
    }
    if (!file.errors.empty()) continue;
    const JobFile again = ParseJobFile(WriteMessage(file.spec), {}, "/jobs");
    EXPECT_TRUE(MessageDifferencer::Equals(file.spec, again.spec)) << "seed " << seed << "\n"
                                                                   << text;
  }
  EXPECT_GT(refused, 1000);
  EXPECT_LT(refused, 2000);
}

}  // namespace
}  // namespace tactus::client
