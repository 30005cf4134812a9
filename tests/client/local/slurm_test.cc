#include "client/local/slurm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "tests/support/temporary_folder.h"

namespace tactus::client {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

SlurmScript SampleScript() {
  return {.name = "demo",
          .binary_folder = "/usr/bin",
          .folder = "/home/you/demo.slurm",
          .job_file = "/home/you/demo.yaml",
          .groups = {{.nodes = 2, .partition = "a100", .gres = "gpu:4"}},
          .time = Seconds(2 * 3600)};
}

std::string Formatted(const SlurmScript& script) {
  const absl::StatusOr<std::string> text = FormatSlurmScript(script);
  EXPECT_TRUE(text.ok()) << text.status();
  return text.value_or("");
}

std::string Refusal(const SlurmScript& script) {
  return std::string(FormatSlurmScript(script).status().message());
}

// How bash reads a script without running it.
int Syntax(const std::string& text) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/script";
  std::ofstream(path) << text;
  return std::system(("bash -n '" + path + "'").c_str());
}

TEST(SlurmScriptTest, SaysWhatIsAskedForAndWhatItIsFor) {
  const std::string text = Formatted(SampleScript());
  EXPECT_THAT(text, StartsWith("#!/bin/bash\n"
                               "# Written by tactus slurm.\n"
                               "#SBATCH --job-name=demo\n"
                               "#SBATCH --output=/home/you/demo.slurm/slurm-%j.log\n"
                               "#SBATCH --open-mode=append\n"
                               "#SBATCH --signal=B:USR1@120\n"
                               "#SBATCH --no-kill\n"
                               "#SBATCH --time=120\n"
                               "#SBATCH --nodes=2\n"
                               "#SBATCH --ntasks-per-node=1\n"
                               "#SBATCH --partition=a100\n"
                               "#SBATCH --gres=gpu:4\n"
                               "\n"
                               "bin='/usr/bin'\n"));
  EXPECT_THAT(text, AllOf(HasSubstr("\ntls=yes\n"), HasSubstr("\nserver=''\n"),
                          HasSubstr("\nworkers_of=(1)\n"), Not(HasSubstr("hetjob\n"))));
  EXPECT_EQ(Syntax(text), 0);
}

TEST(SlurmScriptTest, UnequalNodesAreAHeterogeneousJobOfWhichEachPartHasItsOwnLines) {
  SlurmScript script = SampleScript();
  script.groups.push_back({.nodes = 8, .partition = "cpu", .workers = 4});
  script.lines = {"--account=vision"};
  const std::string text = Formatted(script);
  EXPECT_THAT(text, HasSubstr("#SBATCH --gres=gpu:4\n"
                              "#SBATCH --account=vision\n"
                              "#SBATCH hetjob\n"
                              "#SBATCH --no-kill\n"
                              "#SBATCH --time=120\n"
                              "#SBATCH --nodes=8\n"
                              "#SBATCH --ntasks-per-node=1\n"
                              "#SBATCH --partition=cpu\n"
                              "#SBATCH --exclusive\n"
                              "#SBATCH --account=vision\n"));
  EXPECT_THAT(text, HasSubstr("\nworkers_of=(1 4)\n"));
}

TEST(SlurmScriptTest, TextsReachTheShellAsTheyAre) {
  SlurmScript script = SampleScript();
  script.folder = "/home/you/it's $HOME";
  script.sets = {"stop.epochs=3", "name=a b"};
  const std::string text = Formatted(script);
  EXPECT_THAT(text, AllOf(HasSubstr("#SBATCH --output=\"/home/you/it's $HOME/slurm-%j.log\"\n"),
                          HasSubstr("\nfolder='/home/you/it'\\''s $HOME'\n"),
                          HasSubstr("\nsets=('stop.epochs=3' 'name=a b')\n")));
  EXPECT_EQ(Syntax(text), 0);
}

TEST(SlurmScriptTest, NodesForACoordinatorThatIsThereNeedNoJob) {
  SlurmScript script = SampleScript();
  script.job_file = "";
  EXPECT_THAT(Refusal(script), HasSubstr("job_file is required, or --server"));
  script.server = "head:7070";
  script.tls_dir = "/home/you/tls";
  EXPECT_THAT(Refusal(script), StartsWith("--agent-tls-dir is required"));
  script.agent_tls_dir = "/etc/tactus/%N";
  EXPECT_THAT(
      Formatted(script),
      AllOf(HasSubstr("\nserver='head:7070'\n"), HasSubstr("\nagent_tls='/etc/tactus/%N'\n"),
            HasSubstr("\nto_server=(--server 'head:7070' --tls-dir '/home/you/tls')\n")));
  script.finish = true;
  EXPECT_THAT(Refusal(script), StartsWith("--finish: allowed without --server"));
}

TEST(SlurmScriptTest, WhatSbatchCannotTakeIsRefused) {
  SlurmScript script = SampleScript();
  script.notice = Seconds(30);
  EXPECT_EQ(Refusal(script),
            "--notice: found 30s, allowed is 1m and more, as Slurm has no finer limits");
  script.notice = script.time;
  EXPECT_EQ(Refusal(script), "--notice: found 2h 00m, allowed is less than --time, 2h 00m");
  script = SampleScript();
  script.groups[0].partition = "a\n#SBATCH --uid=0";
  EXPECT_THAT(Refusal(script), StartsWith("partition: found \"a"));
  script = SampleScript();
  script.lines = {"account=vision"};
  EXPECT_EQ(Refusal(script),
            "--sbatch: found \"account=vision\", allowed is one option, such as --account=vision");
  script = SampleScript();
  script.agent_tls_dir = "/etc/tactus";
  EXPECT_THAT(Refusal(script), StartsWith("--agent-tls-dir: allowed with --server"));
}

TEST(NodeGroupTest, IsReadByTheNamesOfItsMembers) {
  NodeGroup group;
  ASSERT_TRUE(
      ReadNodeGroup("partition=v100,nodes=8,gres=gpu:2,cpus=16,memory=64G,constraint=ib,workers=3",
                    &group)
          .ok());
  EXPECT_EQ(group.nodes, 8u);
  EXPECT_EQ(group.partition + group.gres + group.memory + group.constraint, "v100gpu:264Gib");
  EXPECT_EQ(group.cpus, 16u);
  EXPECT_EQ(group.workers, 3u);
}

TEST(NodeGroupTest, WhatIsNoneOfThemIsSaid) {
  NodeGroup group;
  const auto said = [&group](const std::string& text) {
    return std::string(ReadNodeGroup(text, &group).message());
  };
  EXPECT_EQ(said("nodes=0"), "nodes: found \"0\", allowed is a whole number from 1 to 100000");
  EXPECT_EQ(said("nodes=2x"), "nodes: found \"2x\", allowed is a whole number from 1 to 100000");
  EXPECT_THAT(said("gpus=4"), StartsWith("found \"gpus\", allowed are nodes, partition, gres"));
  EXPECT_THAT(said("partition"), StartsWith("found \"partition\", allowed is KEY=VALUE,..."));
  EXPECT_THAT(said("nodes=2,"), StartsWith("found \"\", allowed is KEY=VALUE,..."));
}

}  // namespace
}  // namespace tactus::client
