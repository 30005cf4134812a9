#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "client/cli/answer.h"
#include "client/render/story.h"
#include "client/render/summary.h"
#include "client/render/tables.h"
#include "runtime/status.h"
#include "tests/client/sample_job.h"
#include "tests/client/verbs/command_lines.h"

namespace tactus::client {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::string TextOfFile(const std::string& path) {
  std::ifstream in(path);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

TEST_F(VerbsTest, GetKnowsItsNouns) {
  const std::string name = R"(name: "demo-1")";

  EXPECT_THAT(Asked({"get", "jobs"}), ElementsAre(HasSubstr("ListJobs page_size: ")));
  EXPECT_THAT(Asked({"get", "nodes"}), ElementsAre(HasSubstr("ListNodes ")));
  EXPECT_THAT(Asked({"get", "job", "demo-1"}), ElementsAre("GetJob " + name));
  EXPECT_THAT(Asked({"get", "node", "n0"}), ElementsAre(R"(GetNode name: "n0")"));
  EXPECT_THAT(Asked({"get", "rounds", "demo-1", "--limit", "5"}),
              ElementsAre("ListRounds " + name + " page_size: 5"));
  EXPECT_THAT(Asked({"get", "decisions", "demo-1", "--limit", "7"}),
              ElementsAre("ListDecisions " + name + " page_size: 7"));
}

TEST_F(VerbsTest, ListsHaveFormats) {
  v1::ListNodesResponse nodes;
  *nodes.add_nodes() = coordinator_.node;
  coordinator_.decisions.add_decisions()->set_plan_version(3);

  EXPECT_EQ(Printed({"get", "nodes", "-o", "wide"}), Render(nodes, OutputFormat::kWide));
  EXPECT_EQ(Printed({"get", "decisions", "demo-1", "-o", "json"}),
            Render(coordinator_.decisions, OutputFormat::kJson));
  EXPECT_EQ(Printed({"get", "node", "n0"}), Render(coordinator_.node, OutputFormat::kTable));
  surroundings_.settings.output = "name";
  EXPECT_EQ(Printed({"get", "node", "n0"}), Render(coordinator_.node, OutputFormat::kName));
}

TEST_F(VerbsTest, ListsAreFilteredAndOrdered) {
  EXPECT_THAT(Asked({"get", "jobs", "--filter", "state=RUNNING", "--order-by", "priority desc"}),
              ElementsAre(AllOf(HasSubstr(R"(filter: "state=RUNNING")"),
                                HasSubstr(R"(order_by: "priority desc")"))));
}

TEST_F(VerbsTest, ListsAreWatchedUntilASignalComes) {
  coordinator_.when_asked = [] { raise(SIGINT); };

  EXPECT_EQ(Tactus({"get", "jobs", "--watch"}).code, ExitCode::kInterrupted);
  EXPECT_EQ(Tactus({"get", "nodes", "-w"}).code, ExitCode::kInterrupted);
}

TEST_F(VerbsTest, AWatchOutlastsACoordinatorThatIsRestarted) {
  constexpr int kAway = 5;  // more than the attempts of a call within its time
  int asked = 0;
  coordinator_.jobs = 1;
  coordinator_.list_jobs = [&] {
    ++asked;
    if (asked == 1) return grpc::Status::OK;
    if (asked <= 1 + kAway) return grpc::Status(grpc::StatusCode::UNAVAILABLE, "restarting");
    if (coordinator_.jobs == 2) raise(SIGINT);
    coordinator_.jobs = 2;
    return grpc::Status::OK;
  };

  const Answered watched =
      Tactus({"get", "jobs", "--watch", "-o", "name", "--request-timeout", "200ms"});

  EXPECT_EQ(watched.code, ExitCode::kInterrupted);
  EXPECT_EQ(watched.out, "job-0\njob-1\n");
  EXPECT_THAT(watched.err, HasSubstr("(restarting); trying again\n"));
}

TEST_F(VerbsTest, AWatchOfNobodyEndsAtOnce) {
  coordinator_.list_jobs = [] { return grpc::Status(grpc::StatusCode::UNAVAILABLE, "nobody"); };

  EXPECT_EQ(Tactus({"get", "jobs", "--watch", "--request-timeout", "200ms"}).code,
            ExitCode::kUnavailable);
}

TEST_F(VerbsTest, ExplainTellsAStoryOrPrintsTheDecisions) {
  coordinator_.decisions.add_decisions()->set_plan_version(1);

  EXPECT_EQ(Printed({"explain", "demo-1"}), Story(coordinator_.job, coordinator_.decisions, 80));
  EXPECT_THAT(coordinator_.asked, ElementsAre(HasSubstr(R"(ListDecisions name: "demo-1")"),
                                              R"(GetJob name: "demo-1")"));
  EXPECT_EQ(Printed({"explain", "demo-1", "-o", "yaml"}),
            Render(coordinator_.decisions, OutputFormat::kYaml));
}

TEST_F(VerbsTest, ExplainTellsWhatDevicesAreWorth) {
  coordinator_.device_values.set_useful_samples_per_second(812);
  coordinator_.device_values.add_devices()->set_node("n0");

  EXPECT_EQ(Printed({"explain", "demo-1", "--value-of-devices"}),
            Render(coordinator_.device_values, OutputFormat::kTable) + "\n" +
                DevicesStory(coordinator_.device_values, 80));
  EXPECT_THAT(coordinator_.asked, ElementsAre(R"(GetDeviceValues name: "demo-1")"));
  EXPECT_EQ(Printed({"explain", "demo-1", "--value-of-devices", "-o", "json"}),
            Render(coordinator_.device_values, OutputFormat::kJson));
}

TEST_F(VerbsTest, RevertNamesADecisionAndSaysHowItIsSetFree) {
  v1::Decision& decision = *coordinator_.decisions.add_decisions();
  decision.set_axis(v1::AXIS_LEARNING_RATE);
  decision.set_from("sqrt");

  const Answered ran = Tactus({"revert", "demo-1", "12-learning-rate"});

  EXPECT_EQ(ran.code, ExitCode::kOk);
  EXPECT_THAT(
      coordinator_.asked,
      ElementsAre(AllOf(HasSubstr(R"(RevertDecision name: "demo-1/decisions/12-learning-rate")"),
                        HasSubstr("request_id: "), Not(HasSubstr("validate_only")))));
  EXPECT_THAT(ran.err,
              HasSubstr("job demo-1: the learning rate goes back to sqrt and stays there"));
  EXPECT_THAT(ran.err, HasSubstr("tactus update demo-1 --unfreeze learning_rate sets it free"));
  EXPECT_THAT(Asked({"revert", "demo-1", "12-learning-rate", "--dry-run"}),
              ElementsAre(HasSubstr("validate_only: true")));
}

TEST_F(VerbsTest, DescribeKnowsJobsAndNodes) {
  EXPECT_THAT(Asked({"describe", "job", "demo-1"}), ElementsAre(R"(GetJob name: "demo-1")"));
  EXPECT_THAT(Asked({"describe", "node", "n0"}), ElementsAre(R"(GetNode name: "n0")"));
}

TEST_F(VerbsTest, DescriptionsHaveTheFormatsOfLists) {
  coordinator_.job.add_deadlines()->set_name("start");
  v1::Job deadlines;
  deadlines.set_name(coordinator_.job.name());
  deadlines.add_deadlines()->set_name("start");

  EXPECT_EQ(Printed({"describe", "job", "demo-1", "-o", "json"}),
            Render(coordinator_.job, OutputFormat::kJson));
  EXPECT_EQ(Printed({"describe", "node", "n0", "-o", "yaml"}),
            Render(coordinator_.node, OutputFormat::kYaml));
  EXPECT_EQ(Printed({"describe", "job", "demo-1", "--deadlines", "-o", "yaml"}),
            Render(deadlines, OutputFormat::kYaml));
}

class SubmitTest : public VerbsTest {
 protected:
  SubmitTest() {
    std::ofstream(file_) << "name: demo\n";
    coordinator_.create_job = [this](const v1::CreateJobRequest& request, v1::Job* job) {
      request_ = request;
      job->set_name("projects/default/jobs/demo-1");
      return grpc::Status::OK;
    };
  }

  const std::string file_ = folder_.path() + "/j.yaml";
  v1::CreateJobRequest request_;
};

TEST_F(SubmitTest, LabelsPriorityAndValuesGoWithTheFile) {
  const std::string out =
      Printed({"submit", "--set", "seed=7", file_, "--label", "team=vision", "--label",
               "x=", "--priority", "-5", "--from", "demo-7", "-o", "json"});

  EXPECT_EQ(request_.spec().name(), "demo");
  EXPECT_EQ(request_.spec().seed(), 7u);
  EXPECT_EQ(request_.labels().size(), 2u);
  EXPECT_EQ(request_.labels().at("team"), "vision");
  EXPECT_EQ(request_.labels().at("x"), "");
  EXPECT_EQ(request_.spec().priority(), -5);
  EXPECT_EQ(request_.from(), "demo-7");
  EXPECT_FALSE(request_.validate_only());
  EXPECT_THAT(out, HasSubstr("{"));
  EXPECT_EQ(coordinator_.watches_opened, 0);
}

TEST_F(SubmitTest, DataThatAreNotHereAreSaidAndLeftToTheNodes) {
  std::ofstream(file_) << "name: demo\ndata: {numpy: {inputs: none.npy, targets: .}}\n";
  const Answered submitted = Tactus({"submit", file_});
  EXPECT_EQ(submitted.code, ExitCode::kOk);
  EXPECT_EQ(submitted.err, "tactus: data.numpy.inputs: " + folder_.path() +
                               "/none.npy is not on this machine; every node that trains the job "
                               "needs it\n");

  std::ofstream(file_) << "name: demo\ndata: {text: '*.none'}\n";
  EXPECT_EQ(Tactus({"submit", file_}).err, "");
}

TEST_F(SubmitTest, SoAreModelsAndWeights) {
  std::ofstream(file_) << "name: demo\nmodel: {torchscript: m.pt, loss: ./l.pt, weights: w.st}\n";

  const Answered submitted = Tactus({"submit", file_});

  EXPECT_EQ(submitted.code, ExitCode::kOk);
  for (const char* field : {"model.torchscript: ", "model.loss: ", "model.weights: "}) {
    EXPECT_THAT(submitted.err, HasSubstr(std::string("tactus: ") + field + folder_.path()));
  }
}

TEST_F(SubmitTest, TheFileIsToBlameForItsFieldsAlone) {
  coordinator_.create_job = [](const v1::CreateJobRequest&, v1::Job*) {
    return runtime::ToGrpc(runtime::WithReason(absl::UnavailableError("store: the disk is full"),
                                               {.reason = "STORE_UNAVAILABLE"}));
  };
  const Answered full = Tactus({"submit", file_});
  EXPECT_EQ(full.code, ExitCode::kGeneric);
  EXPECT_EQ(full.err, "tactus: store: the disk is full\n");

  coordinator_.create_job = [](const v1::CreateJobRequest&, v1::Job*) {
    return runtime::ToGrpc(
        runtime::InvalidFields({{.field = "stop", .description = "is missing"}}));
  };
  const Answered wrong = Tactus({"submit", file_});
  EXPECT_EQ(wrong.code, ExitCode::kUsage);
  EXPECT_EQ(wrong.err, "tactus: " + file_ + ": stop: is missing\n");
}

TEST_F(SubmitTest, ADryRunIsOnlyChecked) {
  EXPECT_THAT(Tactus({"submit", file_, "--dry-run"}).err, HasSubstr("nothing was submitted"));
  EXPECT_TRUE(request_.validate_only());
}

TEST_F(SubmitTest, FollowingShowsTheJobUntilItsEnd) {
  v1::JobEvent over;
  *over.mutable_job() = FinishedJob();
  coordinator_.watches = {{over}, {over}};
  coordinator_.watch_end = [](int) { return grpc::Status::OK; };

  const Answered told = Tactus({"submit", file_, "--follow"});
  EXPECT_EQ(told.code, ExitCode::kOk);
  EXPECT_THAT(told.out, HasSubstr("\n" + Summary(FinishedJob(), {})));
  EXPECT_THAT(told.err, HasSubstr("its files: tactus download demo-1\n"));
  EXPECT_EQ(coordinator_.watches_opened, 1);

  EXPECT_THAT(Tactus({"submit", file_, "--follow", "-o", "json"}).out,
              Not(HasSubstr("utilisation  ")));
}

TEST_F(VerbsTest, WaitEndsWithTheStateThatIsWaitedFor) {
  coordinator_.watches = {{StateEvent(v1::JOB_STATE_PAUSED, "")},
                          {StateEvent(v1::JOB_STATE_SUCCEEDED, "")},
                          {StateEvent(v1::JOB_STATE_PAUSED, "")}};

  EXPECT_EQ(Tactus({"wait", "demo-1", "--for", "state=paused"}).code, ExitCode::kOk);
  EXPECT_EQ(Tactus({"wait", "demo-1"}).code, ExitCode::kOk);
  const Answered late = Tactus({"wait", "demo-1", "--timeout", "200ms"});
  EXPECT_EQ(late.code, ExitCode::kTimedOut);
  EXPECT_THAT(late.err, HasSubstr("not yet succeeded"));
}

TEST_F(VerbsTest, WaitPrintsTheJobWhereItIsAskedTo) {
  const v1::JobEvent paused = StateEvent(v1::JOB_STATE_PAUSED, "by the user");
  coordinator_.watches = {{paused}, {paused}};

  EXPECT_EQ(Printed({"wait", "demo-1", "--for", "state=paused"}), "");
  // What events leave out is printed, too; and it is the state that was waited for that counts.
  coordinator_.job.set_state(v1::JOB_STATE_RUNNING);
  coordinator_.job.add_snapshots()->set_path("snapshots/1.safetensors");
  EXPECT_EQ(Printed({"wait", "demo-1", "--for", "state=paused", "-o", "json"}),
            Render(coordinator_.job, OutputFormat::kJson));
}

TEST_F(VerbsTest, LogsTakeRanks) {
  EXPECT_THAT(Asked({"logs", "--rank", "0", "--rank", "3", "demo-1", "-f", "--tail", "10"}),
              ElementsAre(R"(StreamLogs name: "demo-1" ranks: 0 ranks: 3 follow: true )"
                          R"(tail_lines: 10)"));
  EXPECT_THAT(Asked({"logs", "demo-1"}), ElementsAre(R"(StreamLogs name: "demo-1")"));
  EXPECT_EQ(Tactus({"logs", "demo-1"}).err,
            "tactus: job demo-1: its workers have written nothing\n");
  EXPECT_EQ(Tactus({"logs", "demo-1", "--rank", "9"}).err,
            "tactus: job demo-1: rank 9 has written nothing, or not been there\n");
}

TEST_F(VerbsTest, UpdateTakesItsChanges) {
  (*coordinator_.job.mutable_labels())["c"] = "d";
  coordinator_.job.mutable_spec()->mutable_adapt()->add_frozen("learning_rate");

  const std::vector<std::string> asked =
      Asked({"update", "--freeze", "batch", "demo-1", "--set", "spec.stop.epochs=5", "--label",
             "a=b", "--label", "c-", "--unfreeze", "learning_rate", "--if-etag", "e", "--priority",
             "3", "--dry-run"});

  ASSERT_EQ(asked.size(), 2u);
  EXPECT_EQ(asked[0], R"(GetJob name: "demo-1")");
  for (const char* part : {R"(UpdateJob )", R"(name: "demo-1")", R"(paths: "spec.stop.epochs")",
                           "epochs: 5", R"(labels { key: "a" value: "b" })", R"(frozen: "batch")",
                           R"(etag: "e")", "priority: 3", "validate_only: true"}) {
    EXPECT_THAT(asked[1], HasSubstr(part));
  }
  EXPECT_THAT(asked[1], AllOf(Not(HasSubstr(R"("c")")), Not(HasSubstr(R"("learning_rate")"))));
}

TEST_F(VerbsTest, OfAJobThatIsNotThereTheNearestNameIsSaid) {
  coordinator_.jobs = 3;  // job-0 to job-2
  coordinator_.get_job = [] { return grpc::Status(grpc::StatusCode::NOT_FOUND, "no such job"); };

  const Answered near = Tactus({"get", "job", "jbo-1"});
  EXPECT_EQ(near.code, ExitCode::kNotFound);
  EXPECT_THAT(near.err, HasSubstr("tactus: did you mean job-1?\n"));
  EXPECT_THAT(Tactus({"get", "job", "mnist-1"}).err, Not(HasSubstr("did you mean")));
  EXPECT_THAT(Tactus({"get", "job", "job-1"}).err, Not(HasSubstr("did you mean")))
      << "it is something else of it that is not there";
}

TEST_F(VerbsTest, JobsAreEndedAndHeld) {
  const std::string name = R"( name: "demo-1")";
  coordinator_.job.set_state(v1::JOB_STATE_RUNNING);

  EXPECT_THAT(Asked({"cancel", "demo-1"}), ElementsAre("CancelJob" + name));
  EXPECT_THAT(Asked({"cancel", "demo-1", "--discard"}),
              ElementsAre("CancelJob" + name + " discard: true"));
  EXPECT_THAT(Asked({"cancel", "demo-1", "--grace", "2m"}),
              ElementsAre("CancelJob" + name + " grace { seconds: 120 }"));
  EXPECT_THAT(Asked({"pause", "demo-1"}), ElementsAre("PauseJob" + name));
  EXPECT_THAT(Asked({"resume", "demo-1"}), ElementsAre("ResumeJob" + name));
  EXPECT_THAT(Asked({"delete", "demo-1", "demo-2", "--yes"}),
              ElementsAre("DeleteJob" + name, R"(DeleteJob name: "demo-2")"));
}

TEST_F(VerbsTest, AJobThatEndedByItselfWasNotCancelled) {
  const Answered late = Tactus({"cancel", "demo-1"});

  EXPECT_EQ(late.code, ExitCode::kConflict);
  EXPECT_EQ(late.err, "tactus: job demo-1 was not cancelled: it has succeeded already\n");
  coordinator_.job.set_state(v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(Tactus({"cancel", "demo-1"}).code, ExitCode::kOk);
}

TEST_F(VerbsTest, ResultsAreFetchedIntoAFolder) {
  coordinator_.job.mutable_result()->mutable_artifacts(0)->set_size_bytes(3);
  coordinator_.chunks = {"abc"};

  Printed({"download", "demo-1", "--to", folder_.path() + "/d"});

  EXPECT_EQ(TextOfFile(folder_.path() + "/d/model.pt"), "abc");
}

// Whatever the file system says of them: a script tells them from what a coordinator lacks.
TEST_F(VerbsTest, FilesThatCannotBeWrittenHaveACodeOfTheirOwn) {
  coordinator_.job.mutable_result()->mutable_artifacts(0)->set_size_bytes(3);
  coordinator_.chunks = {"abc"};
  coordinator_.rounds.add_rounds()->set_seconds(0.5);
  const std::string folder = folder_.path() + "/f";
  std::ofstream(folder) << "a file";

  const std::vector<Words> commands = {{"download", "demo-1", "--to", "/proc/none"},
                                       {"download", "demo-1", "--to", folder + "/d"},
                                       {"plot", "demo-1", "--output", "/proc/none/f"},
                                       {"admin", "backup", "/proc/none/f"},
                                       {"man", "--to", "/proc/none"}};
  for (const Words& words : commands) {
    const Answered answered = Tactus(words);
    EXPECT_EQ(answered.code, ExitCode::kFile) << words[0] << ": " << answered.err;
    EXPECT_THAT(answered.err, HasSubstr(words.back().substr(0, 5)));
  }
}

TEST_F(VerbsTest, WhatRunsLeftIsShownAndRemovedWhereThatIsSaid) {
  surroundings_.folders.state = folder_.path() + "/state";
  const std::string run = folder_.path() + "/state/runs/20260101-000000-demo";
  std::filesystem::create_directories(run + "/result");
  std::ofstream(run + "/agent.log") << "12345";
  std::ofstream(run + "/result/model.pt") << "weights";
  const auto clean = [&](const Words& words) { return Tactus(words); };

  const Answered unsure = clean({"clean"});  // no terminal to ask on
  EXPECT_EQ(unsure.code, ExitCode::kUsage);
  EXPECT_THAT(unsure.out, HasSubstr(run + "  5 B      stays, 7 B\n"));
  EXPECT_TRUE(std::filesystem::exists(run + "/agent.log"));

  EXPECT_THAT(clean({"clean", "--yes"}).err, HasSubstr("5 B removed\n"));
  EXPECT_FALSE(std::filesystem::exists(run + "/agent.log"));
  EXPECT_TRUE(std::filesystem::exists(run + "/result/model.pt"));
  EXPECT_THAT(clean({"clean", "--yes"}).err, HasSubstr("there is nothing to remove\n"));

  EXPECT_THAT(clean({"clean", "--yes", "--results"}).err, HasSubstr("7 B removed\n"));
  EXPECT_FALSE(std::filesystem::exists(run));
}

TEST_F(VerbsTest, TheDoctorLooksAtThisMachineAndAtTheNodes) {
  surroundings_.folders.state = folder_.path();
  const Answered local = Tactus({"doctor", "--local"});
  EXPECT_THAT(local.out,
              AllOf(HasSubstr("disk"), HasSubstr("gpus"), Not(HasSubstr("coordinator  "))));

  const Answered all = Tactus({"doctor"});  // n0 has no agent
  EXPECT_EQ(all.code, ExitCode::kGeneric);
  EXPECT_THAT(all.out, AllOf(HasSubstr("ok    coordinator"), HasSubstr("bad   node n0"),
                             HasSubstr("its agent is not heard")));

  coordinator_.Shutdown();
  const Answered gone = Tactus({"doctor", "--request-timeout", "1s"});
  EXPECT_EQ(gone.code, ExitCode::kGeneric);
  EXPECT_THAT(gone.out, HasSubstr("bad   coordinator"));
}

TEST_F(VerbsTest, NobodyIsRevokedInAFolderThatIsNoCoordinators) {
  const Answered wrong = Tactus({"admin", "revoke", "--user", "alice", "--in", folder_.path()});
  EXPECT_EQ(wrong.code, ExitCode::kUsage);
  EXPECT_THAT(wrong.err, HasSubstr("has no coordinator's cert.pem; allowed is the --tls-dir"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() + "/revoked"));
}

TEST_F(VerbsTest, NodesAreForgotten) {
  EXPECT_THAT(Asked({"delete", "node", "n0", "n1", "--yes"}),
              ElementsAre(R"(DeleteNode name: "n0")", R"(DeleteNode name: "n1")"));
  EXPECT_EQ(Tactus({"delete", "--yes", "node", "n0"}).err, "tactus: node n0 deleted\n");
  EXPECT_EQ(Tactus({"delete", "node", "n0"}).code, ExitCode::kUsage);  // no terminal to ask on
}

TEST_F(VerbsTest, NodesAreCordonedAndDrained) {
  EXPECT_THAT(Asked({"cordon", "n0"}), ElementsAre(R"(CordonNode name: "n0")"));
  EXPECT_THAT(Asked({"uncordon", "n0"}), ElementsAre(R"(UncordonNode name: "n0")"));
  EXPECT_THAT(Asked({"drain", "n0"}), ElementsAre(R"(DrainNode name: "n0")"));
  EXPECT_THAT(Asked({"drain", "n0", "--wait"}),
              ElementsAre(R"(DrainNode name: "n0")", R"(GetNode name: "n0")"));

  coordinator_.node.add_devices()->set_job("demo-1");
  EXPECT_EQ(Tactus({"drain", "n0", "--wait", "--timeout", "10ms"}).code, ExitCode::kTimedOut);
}

TEST_F(VerbsTest, TheCoordinatorIsLookedAfter) {
  const std::string file = folder_.path() + "/f";
  Printed({"admin", "backup", file});
  EXPECT_EQ(TextOfFile(file), "a copy");
  EXPECT_EQ(Tactus({"admin", "backup", file}).code, ExitCode::kConflict);

  EXPECT_EQ(Printed({"admin", "integrity-check", "-o", "json"}).front(), '{');
  EXPECT_EQ(Printed({"admin", "integrity-check"}), "0 jobs and 0 blobs are sound\n");
  EXPECT_THAT(Asked({"admin", "log-level", "debug", "--node", "a"}),
              ElementsAre(R"(SetLogLevel level: "debug" node: "a")"));
}

TEST_F(VerbsTest, ChaosHasToBeMeant) {
  const Answered answered = Tactus({"chaos", "demo-1"});

  EXPECT_EQ(answered.code, ExitCode::kUsage);
  EXPECT_THAT(answered.err, HasSubstr("--i-know-that-it-kills"));
  EXPECT_TRUE(coordinator_.asked.empty());
}

TEST_F(VerbsTest, ChaosNeedsAJobThatTrainsHere) {
  const Words words = {"chaos", "a-job-that-runs-nowhere", "--i-know-that-it-kills"};
  EXPECT_EQ(Tactus(words).code, ExitCode::kConflict);  // it is over

  coordinator_.job.set_state(v1::JOB_STATE_RUNNING);
  coordinator_.job.set_name("projects/default/jobs/a-job-that-runs-nowhere");
  coordinator_.job.mutable_progress()->mutable_workers(0)->set_node("n7");
  const Answered answered = Tactus(words);

  EXPECT_EQ(answered.code, ExitCode::kNotFound);
  EXPECT_THAT(answered.err, HasSubstr("they are on: n7, local"));
}

TEST_F(VerbsTest, TheProgramItselfHasVerbs) {
  const std::string config = folder_.path() + "/config.yaml";
  std::ofstream(config) << "contexts:\n  lab: {server: 'h:1'}\n";

  EXPECT_THAT(Printed({"config", "show"}), HasSubstr(coordinator_.address()));
  EXPECT_EQ(Printed({"config", "get-contexts", "-o", "name"}), "lab\n");
  EXPECT_EQ(Tactus({"config", "use-context", "lab"}).err, "tactus: context lab is in use\n");
  EXPECT_THAT(TextOfFile(config), HasSubstr("context: lab"));
  surroundings_.settings.server = "h:2";
  EXPECT_THAT(Tactus({"config", "use-context", "lab"}).err,
              HasSubstr("but TACTUS_SERVER is set and counts before it\n"));
  surroundings_.settings.server.clear();
  EXPECT_THAT(Printed({"completion", "fish"}), HasSubstr("complete -c tactus"));
  EXPECT_THAT(Printed({"man", "--to", folder_.path() + "/d"}), HasSubstr("/d/tactus.1\n"));
  EXPECT_THAT(Printed({"version"}), HasSubstr("tactus "));
}

TEST_F(VerbsTest, TopIsPrintedOnceWhereThereIsNoTerminal) {
  EXPECT_THAT(Printed({"top"}), HasSubstr("n0"));
  EXPECT_THAT(Printed({"top", "--once"}), HasSubstr("n0"));
}

// Of a job with so many rounds, of which those from 100 to 150 are on record.
class HistoryTest : public VerbsTest {
 protected:
  HistoryTest() {
    coordinator_.job.mutable_progress()->set_rounds(300);
    for (std::uint64_t i = 100; i <= 150; ++i) {
      v1::Round& round = *coordinator_.rounds.add_rounds();
      round.set_round(i);
      round.set_seconds(0.5);
    }
  }

  // What a trace of these rounds says.
  std::string Said(const std::string& rounds) {
    return Tactus({"trace", "demo-1", "--rounds", rounds}).err;
  }
};

TEST_F(HistoryTest, ATraceHasARangeOfRounds) {
  EXPECT_THAT(Said("100:200"), HasSubstr("rounds 100 to 150 of rounds 100 to 200 are on record"));
  EXPECT_THAT(Said("100:150"), Not(HasSubstr("on record")));
  EXPECT_THAT(Said("100:"), Not(HasSubstr("on record")));
  EXPECT_THAT(Said(":150"), HasSubstr("rounds 100 to 150 of rounds 0 to 150 are on record"));
  EXPECT_THAT(Said("7:7"), HasSubstr("rounds 7 to 7 are not on record"));
  EXPECT_THAT(Said("400:"), HasSubstr("found round 400, its last one is 299"));
  EXPECT_THAT(Asked({"trace", "demo-1"})[1], HasSubstr("first_round: 100"));  // the last 200
}

TEST_F(HistoryTest, APlotIsOverTimeOrOverRounds) {
  const std::string file = folder_.path() + "/f";

  EXPECT_THAT(Printed({"plot", "demo-1"}), HasSubstr("training time [s]"));
  EXPECT_EQ(Printed({"plot", "demo-1", "--over", "rounds", "--output", file}), file + "\n");
  EXPECT_THAT(TextOfFile(file), AllOf(HasSubstr("<svg"), Not(HasSubstr("training time"))));
}

}  // namespace
}  // namespace tactus::client
