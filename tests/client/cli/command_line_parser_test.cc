#include "client/cli/command_line_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>

#include "client/ask/simulate_command.h"
#include "client/local/run.h"

namespace tactus::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Of a verb that fills a struct; tests/client/verbs/verbs_test.cc looks at what the others ask.
template <typename Command>
Command Parsed(const std::vector<std::string>& words) {
  const ParsedCommandLine parsed = ParseCommandLine(words);
  EXPECT_EQ(parsed.error, "");
  const auto* verb = dynamic_cast<const CommandVerb<Command>*>(parsed.verb.get());
  EXPECT_NE(verb, nullptr) << "another verb";
  return verb == nullptr ? Command{} : verb->command();
}

TEST(CommandLineTest, RunTakesItsOptions) {
  const auto run = Parsed<RunCommand>({"run", "job.yaml", "--speeds", "1,1,0.5,0.25", "--set",
                                       "adapt.batch.policy=fixed", "--set", "seed=3", "--output",
                                       "r", "--keep", "-o", "json"});

  EXPECT_EQ(run.job_file, "job.yaml");
  EXPECT_THAT(run.speeds, ElementsAre(1, 1, 0.5, 0.25));
  ASSERT_EQ(run.overrides.size(), 2u);
  EXPECT_EQ(run.overrides[0].path, "adapt.batch.policy");
  EXPECT_EQ(run.overrides[1].value, "3");
  EXPECT_EQ(run.output_folder, "r");
  EXPECT_TRUE(run.keep);
  EXPECT_TRUE(run.json);
}

TEST(CommandLineTest, OptionsMayStandBeforeTheFile) {
  const auto run = Parsed<RunCommand>({"run", "--set", "seed=3", "--speeds", "1,0.5", "job.yaml"});

  EXPECT_THAT(run.speeds, ElementsAre(1, 0.5));
  EXPECT_EQ(run.job_file, "job.yaml");
  EXPECT_EQ(run.overrides.size(), 1u);
}

TEST(CommandLineTest, TapesAreWrittenByRunAndReadByReplay) {
  EXPECT_EQ(Parsed<RunCommand>({"run", "job.yaml", "--tape", "t"}).tape, "t");

  EXPECT_THAT(ParseCommandLine({"replay"}).error, HasSubstr("tape"));
  EXPECT_THAT(ParseCommandLine({"replay", "t", "-o", "yaml"}).error, HasSubstr("table"));
}

TEST(CommandLineTest, ListsAreLongUnlessTheyAreLimited) {
  for (const char* noun : {"jobs", "rounds", "decisions"}) {
    EXPECT_THAT(ParseCommandLine({"get", noun, "--help"}).help,
                HasSubstr("--limit UINT:WHOLE=100000 "));
  }
  EXPECT_NE(ParseCommandLine({"get", "job", "demo-1", "--watch"}).error, "");
}

TEST(CommandLineTest, ExplainTakesAJobAndAFormat) {
  EXPECT_THAT(ParseCommandLine({"explain"}).error, HasSubstr("job is required"));
  EXPECT_THAT(ParseCommandLine({"explain", "demo-1", "-o", "name"}).error, HasSubstr("name"));
}

TEST(CommandLineTest, GlobalOptionsMayFollowTheVerb) {
  const ParsedCommandLine parsed =
      ParseCommandLine({"watch", "demo-1", "--server", "h:1", "--request-timeout", "500ms"});

  ASSERT_NE(parsed.verb, nullptr) << parsed.error;
  EXPECT_EQ(parsed.flags.server, "h:1");
  EXPECT_EQ(parsed.flags.request_timeout, "500ms");
}

TEST(CommandLineTest, LabelsAndPrioritiesHaveAForm) {
  EXPECT_EQ(ParseCommandLine({"submit", "j", "--priority", "1001"}).error,
            "tactus: --priority: found \"1001\", allowed is a whole number from -1000 to 1000\n");
  EXPECT_EQ(ParseCommandLine({"submit", "j", "--label", "team"}).error,
            "tactus: --label: found \"team\", allowed is KEY=VALUE, such as team=vision\n");
}

TEST(CommandLineTest, WaitTakesACondition) {
  for (const char* wrong : {"paused", "state=", "state=UNSPECIFIED", "state=done"}) {
    EXPECT_THAT(ParseCommandLine({"wait", "demo-1", "--for", wrong}).error,
                HasSubstr("allowed is state=STATE with one of: QUEUED, STARTING, RUNNING"))
        << wrong;
  }
}

TEST(CommandLineTest, RanksAreNotNegative) {
  EXPECT_NE(ParseCommandLine({"logs", "demo-1", "--rank", "-1"}).error, "");
}

TEST(CommandLineTest, WhatIsFrozenIsAnAxis) {
  EXPECT_THAT(ParseCommandLine({"update", "demo-1", "--freeze", "batches"}).error,
              HasSubstr("learning_rate"));
}

// CLI11 gives such an option every word up to the next option, unless told not to; it spares those
// that operands need, but only at the end of the line.
TEST(CommandLineTest, OptionsThatMayBeRepeatedTakeOneValueEach) {
  const std::vector<std::vector<std::string>> lines = {
      {"run", "--set", "seed=1", "j.yaml"},
      {"submit", "--set", "seed=1", "j.yaml"},
      {"submit", "--label", "a=b", "--label", "c=d", "j.yaml"},
      {"update", "--set", "seed=1", "demo-1"},
      {"update", "--label", "a=b", "demo-1"},
      {"update", "--freeze", "batch", "demo-1"},
      {"logs", "--rank", "0", "demo-1"},
      {"simulate", "--set", "seed=1", "c.yaml", "j.yaml"}};

  for (std::vector<std::string> words : lines) {
    words.insert(words.end(), {"--request-timeout", "1s"});
    EXPECT_EQ(ParseCommandLine(words).error, "") << words[0] << " " << words[1];
  }
}

TEST(CommandLineTest, NounsAreSuggested) {
  EXPECT_THAT(ParseCommandLine({"config", "shw"}).error, HasSubstr("did you mean 'show'?"));
}

TEST(CommandLineTest, ATraceHasARangeOfRounds) {
  for (const char* wrong : {"7", "8:7", "-1:7", "a:b", "1:2:3", "1 :2", "18446744073709551616:"}) {
    EXPECT_THAT(ParseCommandLine({"trace", "demo-1", "--rounds", wrong}).error,
                HasSubstr("FIRST:LAST"))
        << wrong;
  }
}

TEST(CommandLineTest, AServerAndAContextContradictEachOther) {
  const ParsedCommandLine parsed =
      ParseCommandLine({"get", "jobs", "--server", "h:1", "--context", "lab"});

  EXPECT_THAT(parsed.error, HasSubstr("excludes"));
}

TEST(CommandLineTest, AServerThatIsEmptyIsNotTakenForNone) {
  EXPECT_THAT(ParseCommandLine({"get", "jobs", "--server", ""}).error,
              HasSubstr("--server: found nothing, allowed is HOST:PORT"));
}

TEST(CommandLineTest, HelpDocumentsTheExitCodes) {
  const ParsedCommandLine parsed = ParseCommandLine({"--help"});

  EXPECT_EQ(parsed.verb, nullptr);
  EXPECT_EQ(parsed.error, "");
  EXPECT_THAT(parsed.help, HasSubstr("130 interrupted"));
}

TEST(CommandLineTest, TheVersionIsAnOptionToo) {
  const ParsedCommandLine parsed = ParseCommandLine({"--version"});

  EXPECT_EQ(parsed.error, "");
  EXPECT_THAT(parsed.help, testing::MatchesRegex("tactus [0-9.]+\n"));
}

TEST(CommandLineTest, WhatIsNotExpectedIsToldInItsOrder) {
  EXPECT_EQ(ParseCommandLine({"top", "-o", "json"}).error, "tactus: not expected: -o json\n");
  EXPECT_EQ(ParseCommandLine({"get", "jobs", "demo-1"}).error,
            "tactus: not expected: demo-1; one of them is shown by tactus get job NAME\n");
  EXPECT_EQ(ParseCommandLine({"get", "nodes", "a"}).error,
            "tactus: not expected: a; one of them is shown by tactus get node NAME\n");
}

TEST(CommandLineTest, DecisionsAreChosenAmong) {
  EXPECT_THAT(ParseCommandLine({"explain", "demo-1", "--axis", "time"}).error, HasSubstr("time"));
  EXPECT_THAT(ParseCommandLine({"explain", "demo-1", "--last", "0"}).error, HasSubstr("0"));
  EXPECT_THAT(ParseCommandLine({"explain", "demo-1", "--last", "3", "--value-of-devices"}).error,
              HasSubstr("no decisions to choose from"));
  EXPECT_EQ(ParseCommandLine({"explain", "demo-1", "--axis", "batch", "--since", "10m"}).error, "");
}

TEST(CommandLineTest, DeleteTakesJobsOrNodes) {
  EXPECT_EQ(ParseCommandLine({"delete", "demo-1", "demo-2"}).error, "");
  EXPECT_EQ(ParseCommandLine({"delete", "node", "n0", "n1"}).error, "");
  EXPECT_EQ(ParseCommandLine({"delete"}).error,
            "tactus: job is required; --help says what is allowed\n");
  EXPECT_EQ(ParseCommandLine({"delete", "node"}).error,
            "tactus: node is required; --help says what is allowed\n");
  EXPECT_EQ(ParseCommandLine({"delete", "demo-1", "node", "n0"}).error,
            "tactus: delete: found jobs and nodes, allowed are either\n");
}

TEST(CommandLineTest, MistakesAreNamed) {
  EXPECT_THAT(ParseCommandLine({}).error, HasSubstr("a verb is missing; allowed: run, "));
  EXPECT_THAT(ParseCommandLine({"run"}).error, HasSubstr("job_file is required"));
  EXPECT_THAT(ParseCommandLine({"get", "jobs", "-o", "xml"}).error, HasSubstr("xml"));
  EXPECT_THAT(ParseCommandLine({"run", "j", "--speeds", "1,0"}).error, HasSubstr("found \"0\""));
  EXPECT_THAT(ParseCommandLine({"run", "j", "--speeds", "1,nan"}).error,
              HasSubstr("found \"nan\""));
  EXPECT_THAT(ParseCommandLine({"run", "j", "--workers", "0"}).error, HasSubstr("0"));
  EXPECT_THAT(ParseCommandLine({"run", "j", "--set", "x"}).error,
              HasSubstr("allowed is KEY=VALUE"));
  EXPECT_THAT(ParseCommandLine({"get", "jobs", "--request-timeout", "5"}).error,
              HasSubstr("\"5\""));
  EXPECT_THAT(ParseCommandLine({"get", "jobs", "--request-timeout", "0s"}).error,
              HasSubstr("more than 0"));
  EXPECT_EQ(
      ParseCommandLine({"sumbit"}).error,
      "tactus: 'sumbit' is unknown; did you mean 'submit'? allowed: run, demo, simulate, layouts, "
      "replay, submit, sweep, get, describe, explain, watch, wait, logs, update, revert, "
      "cancel, delete, pause, resume, download, verify, top, plot, trace, cordon, drain, "
      "uncordon, admin, login, slurm, chaos, doctor, clean, config, completion, man, "
      "version\n");
  EXPECT_EQ(ParseCommandLine({"get", "frob"}).error,
            "tactus: 'frob' is unknown; allowed: jobs, job, sweep, nodes, node, rounds, "
            "validations, decisions\n");
}

struct FitCase {
  std::uint32_t workers;
  std::vector<double> speeds;
  std::uint32_t min;  // 0: not in the file
  std::uint32_t max;
  std::uint32_t count;
};

// In the names of the tests.
void PrintTo(const FitCase& given, std::ostream* out) {
  *out << given.workers << " workers, " << given.speeds.size() << " speeds, file " << given.min
       << " to " << given.max;
}

class FitWorkersTest : public ::testing::TestWithParam<FitCase> {};

v1::JobSpec SpecWith(std::uint32_t min, std::uint32_t max) {
  v1::JobSpec spec;
  if (min > 0) spec.mutable_workers()->set_min(min);
  if (max > 0) spec.mutable_workers()->set_max(max);
  return spec;
}

TEST_P(FitWorkersTest, TakesFlagsThenFileThenTwo) {
  const FitCase& given = GetParam();
  v1::JobSpec spec = SpecWith(given.min, given.max);

  const absl::StatusOr<std::uint32_t> count =
      FitWorkers({.workers = given.workers, .speeds = given.speeds}, &spec);

  ASSERT_TRUE(count.ok()) << count.status();
  EXPECT_EQ(*count, given.count);
  EXPECT_EQ(spec.workers().min(), given.min > 0 ? given.min : given.count);
  EXPECT_EQ(spec.workers().max(), given.max > 0 ? given.max : given.count);
}

INSTANTIATE_TEST_SUITE_P(All, FitWorkersTest,
                         ::testing::Values(FitCase{0, {}, 0, 0, 2}, FitCase{3, {}, 0, 0, 3},
                                           FitCase{0, {1, 0.5, 0.5}, 0, 0, 3},
                                           FitCase{0, {}, 0, 6, 6}, FitCase{0, {}, 5, 0, 5},
                                           FitCase{0, {}, 2, 6, 6},
                                           FitCase{4, {1, 1, 1, 1}, 2, 8, 4}));

TEST(FitWorkersTest, RefusesContradictions) {
  v1::JobSpec four = SpecWith(4, 4);
  v1::JobSpec many = SpecWith(0, 100'000);
  v1::JobSpec cuda;
  cuda.mutable_workers()->set_device(v1::DEVICE_KIND_CUDA);
  v1::JobSpec none;

  EXPECT_EQ(FitWorkers({.workers = 2}, &four).status().message(),
            "workers.min: the job file says 4, but 2 workers are asked for");
  EXPECT_EQ(FitWorkers({.workers = 5}, &four).status().message(),
            "workers.max: the job file says 4, but 5 workers are asked for");
  EXPECT_EQ(FitWorkers({}, &many).status().message(),
            "workers: found 100000, allowed is 1 to 256 on one machine");
  EXPECT_FALSE(FitWorkers({}, &cuda).ok());
  EXPECT_EQ(FitWorkers({.workers = 3, .speeds = {1, 1}}, &none).status().message(),
            "--speeds: found 2 speeds, allowed is one for each of 3 workers");
}

TEST(CommandLineTest, SimulateTakesItsOptions) {
  const auto simulate = Parsed<SimulateCommand>(
      {"simulate", "cluster.yaml", "job.yaml", "--seed",     "18446744073709551615",
       "--set",    "seed=3",       "--loss",   "perceptron", "--target-loss",
       "1.5",      "-o",           "json",     "--csv",      "c.csv",
       "--trace",  "t.json",       "--tape",   "t.tape",     "--validate-every",
       "1.5s"});

  EXPECT_EQ(simulate.cluster_file, "cluster.yaml");
  EXPECT_EQ(simulate.job_file, "job.yaml");
  EXPECT_EQ(simulate.seed, 18446744073709551615u);
  EXPECT_EQ(simulate.count, 1u);
  ASSERT_EQ(simulate.overrides.size(), 1u);
  EXPECT_EQ(simulate.overrides[0].path, "seed");
  EXPECT_EQ(simulate.loss, "perceptron");
  EXPECT_EQ(simulate.target_loss, 1.5);
  EXPECT_EQ(simulate.output, OutputFormat::kJson);
  EXPECT_EQ(simulate.curve_file, "c.csv");
  EXPECT_EQ(simulate.trace_file, "t.json");
  EXPECT_EQ(simulate.tape_file, "t.tape");
  EXPECT_EQ(simulate.validate_every, Seconds(1.5));
}

TEST(CommandLineTest, LossesOnTheWayAreOfOneSeedAndInJson) {
  const std::vector<std::string> wanted = {"simulate", "c.yaml", "j.yaml", "--validate-every",
                                           "1s"};
  std::vector<std::string> several = wanted;
  several.insert(several.end(), {"-o", "json", "--count", "3"});

  EXPECT_EQ(ParseCommandLine(wanted).error,
            "tactus: simulate: --validate-every needs -o json, which alone has the losses\n");
  EXPECT_THAT(ParseCommandLine(several).error, HasSubstr("--count"));
}

TEST(CommandLineTest, SimulateNeedsNoMoreThanItsFiles) {
  const auto simulate = Parsed<SimulateCommand>({"simulate", "cluster.yaml", "job.yaml"});

  EXPECT_EQ(simulate.seed, 1u);
  EXPECT_EQ(simulate.target_loss, std::nullopt);
  EXPECT_EQ(simulate.output, OutputFormat::kTable);
  EXPECT_EQ(simulate.trace_file, "");
}

TEST(CommandLineTest, SimulationsOfSeveralSeedsWriteNoFiles) {
  for (const char* option : {"--csv", "--trace", "--tape"}) {
    const std::string error =
        ParseCommandLine({"simulate", "c.yaml", "j.yaml", "--count", "3", option, "f"}).error;

    EXPECT_THAT(error, HasSubstr("--count")) << option;
    EXPECT_THAT(error, HasSubstr(option));
  }
  EXPECT_EQ(Parsed<SimulateCommand>({"simulate", "c.yaml", "j.yaml", "--count", "3"}).count, 3u);
}

std::string ErrorOf(std::vector<std::string> words) {
  words.insert(words.begin(), {"simulate", "c.yaml", "j.yaml"});
  return ParseCommandLine(words).error;
}

TEST(CommandLineTest, SimulateSaysInOneLineWhatIsAllowed) {
  EXPECT_EQ(ErrorOf({"--count", "0"}),
            "tactus: --count: found \"0\", allowed is a whole number from 1 to 100000\n");
  for (const std::string seed : {"-1", "1.5", "18446744073709551616", "one"}) {
    EXPECT_EQ(ErrorOf({"--seed", seed}),
              "tactus: --seed: found \"" + seed +
                  "\", allowed is a whole number from 0 to 18446744073709551615\n");
  }
  for (const std::string loss : {"nan", "-inf", "1,5"}) {
    EXPECT_EQ(
        ErrorOf({"--target-loss", loss}),
        "tactus: --target-loss: found \"" + loss + "\", allowed is a finite number, such as 1.5\n");
  }
}

TEST(CommandLineTest, WhatIsSimulatedComesFromOneSource) {
  const std::string needed =
      "tactus: simulate: allowed are CLUSTER_FILE JOB_FILE, --from JOB, or --random\n";

  EXPECT_EQ(ParseCommandLine({"simulate"}).error, needed);
  EXPECT_EQ(ParseCommandLine({"simulate", "c.yaml"}).error, needed);
  EXPECT_EQ(ErrorOf({"--random"}),
            "tactus: simulate: found files and --from or --random, allowed is one\n");
  EXPECT_EQ(ErrorOf({"--from", "demo-1"}),
            "tactus: simulate: found files and --from or --random, allowed is one\n");
  EXPECT_THAT(ErrorOf({"--rate", "1gbit"}), HasSubstr("--rate requires --from"));
  EXPECT_TRUE(Parsed<SimulateCommand>({"simulate", "--random", "--seed", "5"}).random);
}

TEST(CommandLineTest, ChangesOfAHistoryAreTakenInTheirOrder) {
  const auto simulate = Parsed<SimulateCommand>(
      {"simulate", "--from", "demo-1", "--add", "2xspeed=0.5", "--add", "speed=1", "--remove",
       "rank-0", "--rate", "1gbit", "--write-cluster", "c.yaml"});

  EXPECT_EQ(simulate.from, "demo-1");
  EXPECT_THAT(simulate.add, ElementsAre("2xspeed=0.5", "speed=1"));
  EXPECT_THAT(simulate.remove, ElementsAre("rank-0"));
  EXPECT_EQ(simulate.rate, "1gbit");
  EXPECT_EQ(simulate.cluster_output, "c.yaml");
}

TEST(CommandLineTest, NoFileIsForTwoThings) {
  EXPECT_EQ(ErrorOf({"--csv", "out", "--trace", "./out"}),
            "tactus: simulate: found ./out twice, allowed are different files\n");
  EXPECT_THAT(ErrorOf({"--tape", "j.yaml"}), HasSubstr("found j.yaml twice"));
  EXPECT_THAT(ParseCommandLine({"simulate", "-", "-"}).error, HasSubstr("found - twice"));
  EXPECT_THAT(ParseCommandLine({"simulate", "--from", "demo-1", "--write-cluster", "c.yaml",
                                "--csv", "c.yaml.curve.csv"})
                  .error,
              HasSubstr("found c.yaml.curve.csv twice"));
  EXPECT_EQ(ErrorOf({"--csv", "a", "--trace", "b", "--tape", "c"}), "");
}

}  // namespace
}  // namespace tactus::client
