// The coordinator's server over real gRPC, with agents that do what the test says.

#include "coordinator/service/server.h"

#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "coordinator/tape/replay.h"
#include "coordinator/tape/tape_folder.h"
#include "runtime/status.h"
#include "tactus/v1/jobs.grpc.pb.h"
#include "tactus/v1/nodes.grpc.pb.h"
#include "tests/coordinator/fake_agent.h"

namespace tactus::service {
namespace {

v1::JobSpec Spec() {
  v1::JobSpec spec;
  spec.set_name("shakespeare");
  spec.mutable_model()->set_builtin("bytes-lm");
  spec.mutable_data()->set_text("/corpus.txt");
  spec.mutable_stop()->set_rounds(1);
  spec.mutable_workers()->set_min(2);
  spec.mutable_workers()->set_max(2);
  return spec;
}

v1::CreateJobRequest Create(const std::string& request_id = "") {
  v1::CreateJobRequest request;
  *request.mutable_spec() = Spec();
  request.set_request_id(request_id);
  return request;
}

void SetDeadline(grpc::ClientContext& context) {
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
}

class ServerTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "tactus-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    Start();
  }

  void TearDown() override {
    Stop();
    std::filesystem::remove_all(folder_);
  }

  ServerOptions Options() const {
    return {.listen = "127.0.0.1:0",
            .state_dir = folder_ + "/state",
            .metrics_listen = "off",
            .tape_bytes = tape_bytes_};
  }

  void Start() {
    auto server = Server::Open(Options());
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    channel_ = grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials());
    jobs_ = v1::Jobs::NewStub(channel_);
    nodes_ = v1::Nodes::NewStub(channel_);
  }

  void Stop() {
    jobs_.reset();
    nodes_.reset();
    channel_.reset();
    if (server_ != nullptr) server_->Shutdown();
    server_.reset();
  }

  // One unary call with a deadline.
  template <typename Request, typename Response>
  absl::Status Call(grpc::Status (v1::Jobs::Stub::*method)(grpc::ClientContext*, const Request&,
                                                           Response*),
                    const Request& request, Response& response) {
    grpc::ClientContext context;
    SetDeadline(context);
    return runtime::FromGrpc((jobs_.get()->*method)(&context, request, &response));
  }

  absl::StatusOr<v1::Job> CreateJob(const v1::CreateJobRequest& request) {
    v1::Job job;
    const absl::Status status = Call(&v1::Jobs::Stub::CreateJob, request, job);
    return status.ok() ? absl::StatusOr<v1::Job>(job) : status;
  }

  absl::StatusOr<v1::Job> GetJob(const std::string& name) {
    v1::GetJobRequest request;
    request.set_name(name);
    v1::Job job;
    const absl::Status status = Call(&v1::Jobs::Stub::GetJob, request, job);
    return status.ok() ? absl::StatusOr<v1::Job>(job) : status;
  }

  absl::StatusOr<v1::Job> CancelJob(const std::string& name) {
    v1::CancelJobRequest request;
    request.set_name(name);
    v1::Job job;
    const absl::Status status = Call(&v1::Jobs::Stub::CancelJob, request, job);
    return status.ok() ? absl::StatusOr<v1::Job>(job) : status;
  }

  absl::StatusOr<std::string> Download(const std::string& name, const std::string& path) {
    grpc::ClientContext context;
    SetDeadline(context);
    v1::DownloadArtifactRequest request;
    request.set_name(name);
    request.set_path(path);
    const auto reader = jobs_->DownloadArtifact(&context, request);
    std::string content;
    v1::ArtifactChunk chunk;
    while (reader->Read(&chunk)) content += chunk.data();
    const absl::Status status = runtime::FromGrpc(reader->Finish());
    return status.ok() ? absl::StatusOr<std::string>(content) : status;
  }

  // All events of a watch until it ends.
  std::vector<v1::JobEvent> Watch(const std::string& name, absl::Status& end) {
    grpc::ClientContext context;
    SetDeadline(context);
    v1::WatchJobRequest request;
    request.set_name(name);
    const auto reader = jobs_->WatchJob(&context, request);
    std::vector<v1::JobEvent> events;
    v1::JobEvent event;
    while (reader->Read(&event)) events.push_back(event);
    end = runtime::FromGrpc(reader->Finish());
    return events;
  }

  std::string folder_;
  std::uint64_t tape_bytes_ = tape::TapeWriter::kBytesDefault;
  std::unique_ptr<Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Jobs::Stub> jobs_;
  std::unique_ptr<v1::Nodes::Stub> nodes_;
};

v1::FromWorker Ready() {
  v1::FromWorker message;
  message.mutable_ready()->set_parameters(10);
  message.mutable_ready()->set_train_samples(1000);
  return message;
}

v1::FromWorker EndpointOf(std::uint64_t generation, const std::string& endpoint) {
  v1::FromWorker message;
  message.mutable_endpoint()->set_generation(generation);
  message.mutable_endpoint()->set_endpoint(endpoint);
  return message;
}

v1::FromWorker ReportOf(std::uint64_t generation, std::uint32_t rank, std::uint64_t plan) {
  v1::FromWorker message;
  v1::RoundReport* report = message.mutable_report();
  report->set_generation(generation);
  report->set_plan_version(plan);
  report->set_rank(rank);
  report->set_samples(32);
  report->set_samples_global(64);
  report->set_loss_sum(64);
  report->set_loss_mean_global(2);
  report->set_compute_seconds(0.1);
  report->set_blocked_seconds(0.02);
  report->set_bytes_sent(4096);
  report->set_round_seconds(0.1);
  report->set_epoch_consumed(64);
  return message;
}

v1::FromWorker FinishedWith(const std::vector<std::string>& files) {
  v1::FromWorker message;
  message.mutable_finished()->set_reason("1 round");
  message.mutable_finished()->set_rounds(1);
  message.mutable_finished()->set_samples(32);
  message.mutable_finished()->set_samples_global(64);
  message.mutable_finished()->set_train_loss(2);
  message.mutable_finished()->set_parameters_hash(7);
  message.mutable_finished()->mutable_files()->Add(files.begin(), files.end());
  return message;
}

// Takes the two workers of a job from their start to the first round's report. Returns their ids by
// rank.
std::vector<std::uint64_t> RunFirstRound(FakeAgent& agent) {
  std::vector<std::uint64_t> workers;
  for (int i = 0; i < 2; ++i) workers.push_back(agent.Read().start_worker().worker_id());
  for (const std::uint64_t worker : workers) agent.Say(worker, Ready());
  std::vector<std::uint64_t> by_rank(2);
  v1::Group group;
  std::set<std::string> secrets;
  for (int i = 0; i < 2; ++i) {
    const agent::v1::ToAgent message = agent.Read();
    group = message.to_worker().message().group();
    by_rank.at(group.rank()) = message.to_worker().worker_id();
    secrets.insert(group.secret());
  }
  EXPECT_EQ(secrets.size(), 1u) << "members are told one secret";
  EXPECT_EQ(secrets.begin()->size(), 32u);
  for (const std::uint64_t worker : by_rank) {
    agent.Say(worker, EndpointOf(group.generation(), std::to_string(worker)));
  }
  for (int i = 0; i < 2; ++i) agent.Read();  // Peers
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    agent.Say(by_rank[rank], ReportOf(group.generation(), rank, group.plan().version()));
  }
  return by_rank;
}

TEST_F(ServerTest, AJobRunsFromItsSubmissionToItsResult) {
  FakeAgent agent(server_->address(), "a");
  agent.Connect();
  const absl::StatusOr<v1::Job> created = CreateJob(Create());
  ASSERT_TRUE(created.ok()) << created.status();
  EXPECT_EQ(created->name(), "projects/default/jobs/shakespeare-1");
  absl::Status watch_end = absl::UnknownError("");
  auto watch = std::async(std::launch::async, [&] { return Watch("shakespeare-1", watch_end); });

  const std::vector<std::uint64_t> workers = RunFirstRound(agent);
  v1::FromWorker evaluated;
  evaluated.mutable_evaluated()->set_loss(1.5);
  evaluated.mutable_evaluated()->set_samples(100);
  agent.Say(workers[0], evaluated);
  agent.Say(workers[0], FinishedWith({"model.pt"}));
  agent.Say(workers[1], FinishedWith({}));
  const grpc::Status uploaded = agent.Upload("shakespeare-1", "model.pt", "weights", 7);
  agent.Exit(workers[0]);
  agent.Exit(workers[1]);

  ASSERT_TRUE(uploaded.ok()) << uploaded.error_message();
  const std::vector<v1::JobEvent> events = watch.get();
  EXPECT_TRUE(watch_end.ok()) << watch_end;
  ASSERT_FALSE(events.empty());
  EXPECT_TRUE(events.front().has_job());
  EXPECT_EQ(events.back().job().state(), v1::JOB_STATE_SUCCEEDED);
  const absl::StatusOr<v1::Job> job = GetJob(created->name());
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(job->result().validation().loss(), 1.5);
  ASSERT_EQ(job->result().artifacts_size(), 1);
  EXPECT_EQ(job->result().artifacts(0).path(), "model.pt");
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(job->spec(), Spec()));
  EXPECT_EQ(*Download("shakespeare-1", "model.pt"), "weights");
}

TEST_F(ServerTest, RoundsOfAJobAreOnRecordOnceItIsOver) {
  FakeAgent agent(server_->address(), "a");
  agent.Connect();
  ASSERT_TRUE(CreateJob(Create()).ok());
  const std::vector<std::uint64_t> workers = RunFirstRound(agent);
  agent.Say(workers[0], FinishedWith({}));
  agent.Say(workers[1], FinishedWith({}));
  absl::Status end;
  Watch("shakespeare-1", end);

  v1::ListRoundsRequest request;
  request.set_name("shakespeare-1");
  v1::ListRoundsResponse response;
  const absl::Status status = Call(&v1::Jobs::Stub::ListRounds, request, response);

  ASSERT_TRUE(status.ok()) << status;
  ASSERT_EQ(response.rounds_size(), 1);
  EXPECT_EQ(response.rounds(0).samples(), 64u);
  EXPECT_THAT(response.rounds(0).worker_samples(), testing::ElementsAre(32, 32));
  EXPECT_THAT(response.rounds(0).worker_compute_seconds(), testing::ElementsAre(0.1, 0.1));
  EXPECT_THAT(response.rounds(0).worker_blocked_seconds(), testing::ElementsAre(0.02, 0.02));
  EXPECT_EQ(response.rounds(0).bytes(), 4096u);
}

TEST_F(ServerTest, TheTapesOfAJobThatOutlivesTheCoordinatorShowNoDifference) {
  FakeAgent agent(server_->address(), "a");
  agent.Connect();
  ASSERT_TRUE(CreateJob(Create()).ok());
  RunFirstRound(agent);
  Stop();
  const std::string tapes = folder_ + "/state/tapes";
  const absl::StatusOr<std::string> first = tape::NewestTape(tapes);
  ASSERT_TRUE(first.ok()) << first.status();
  Start();
  ASSERT_TRUE(CancelJob("shakespeare-1").ok());
  Stop();
  const absl::StatusOr<std::string> second = tape::NewestTape(tapes);
  ASSERT_TRUE(second.ok()) << second.status();

  ASSERT_NE(*first, *second);
  for (const std::string& path : {*first, *second}) {
    const absl::StatusOr<tape::Replayed> replayed = tape::Replay(path, {});
    ASSERT_TRUE(replayed.ok()) << replayed.status();
    EXPECT_FALSE(replayed->difference) << replayed->difference->difference.place;
    EXPECT_EQ(replayed->jobs, 1u);
    EXPECT_GT(replayed->events, 0u);
    EXPECT_EQ(replayed->end, tape::EndReason::kClean);
    EXPECT_FALSE(replayed->header.program_version.empty());
  }
}

TEST_F(ServerTest, NoTapeIsWrittenWhenItsBoundIsZero) {
  Stop();
  std::filesystem::remove_all(folder_ + "/state/tapes");
  tape_bytes_ = 0;
  Start();
  ASSERT_TRUE(CreateJob(Create()).ok());
  Stop();

  EXPECT_FALSE(std::filesystem::exists(folder_ + "/state/tapes"));
}

TEST_F(ServerTest, OneRequestIdMakesOneJob) {
  auto other = std::async(std::launch::async, [this] { return CreateJob(Create("r-1")); });
  const absl::StatusOr<v1::Job> first = CreateJob(Create("r-1"));
  const absl::StatusOr<v1::Job> second = other.get();
  const absl::StatusOr<v1::Job> third = CreateJob(Create("r-1"));
  const absl::StatusOr<v1::Job> another = CreateJob(Create("r-2"));

  ASSERT_TRUE(first.ok() && second.ok() && third.ok() && another.ok());
  EXPECT_EQ(first->uid(), second->uid());
  EXPECT_EQ(first->uid(), third->uid());
  EXPECT_NE(first->uid(), another->uid());
}

TEST_F(ServerTest, ValidateOnlyMakesNothing) {
  v1::CreateJobRequest request = Create();
  request.set_validate_only(true);

  const absl::StatusOr<v1::Job> job = CreateJob(request);

  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->name(), "");
  v1::ListJobsResponse listed;
  ASSERT_TRUE(Call(&v1::Jobs::Stub::ListJobs, v1::ListJobsRequest(), listed).ok());
  EXPECT_EQ(listed.jobs_size(), 0);
}

TEST_F(ServerTest, EveryWrongFieldComesBackWithTheError) {
  v1::CreateJobRequest request = Create();
  request.mutable_spec()->set_name("A");
  request.mutable_spec()->clear_stop();
  request.set_request_id("no spaces allowed");

  const absl::Status status = CreateJob(request).status();

  std::vector<std::string> fields;
  for (const auto& violation : runtime::FieldViolations(status)) fields.push_back(violation.field);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(fields, testing::ElementsAre("name", "stop", "request_id"));
}

TEST_F(ServerTest, UnaryCallsWithoutADeadlineAreRefused) {
  grpc::ClientContext context;
  v1::Job job;

  const absl::Status status = runtime::FromGrpc(jobs_->CreateJob(&context, Create(), &job));

  EXPECT_TRUE(absl::IsInvalidArgument(status));
  ASSERT_EQ(runtime::FieldViolations(status).size(), 1u);
  EXPECT_EQ(runtime::FieldViolations(status)[0].field, "deadline");
}

TEST_F(ServerTest, JobsAreListedNewestFirstInPages) {
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(CreateJob(Create()).ok());
  v1::ListJobsRequest request;
  request.set_page_size(2);
  v1::ListJobsResponse first;
  ASSERT_TRUE(Call(&v1::Jobs::Stub::ListJobs, request, first).ok());
  request.set_page_token(first.next_page_token());
  v1::ListJobsResponse second;
  ASSERT_TRUE(Call(&v1::Jobs::Stub::ListJobs, request, second).ok());

  ASSERT_EQ(first.jobs_size(), 2);
  EXPECT_EQ(first.jobs(0).name(), "projects/default/jobs/shakespeare-3");
  ASSERT_EQ(second.jobs_size(), 1);
  EXPECT_EQ(second.next_page_token(), "");
}

TEST_F(ServerTest, CancellingTwiceIsCancellingOnce) {
  ASSERT_TRUE(CreateJob(Create()).ok());

  const absl::StatusOr<v1::Job> first = CancelJob("shakespeare-1");
  const absl::StatusOr<v1::Job> second = CancelJob("shakespeare-1");

  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->state(), v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(second->state(), v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(first->etag(), second->etag());
}

TEST_F(ServerTest, AJobThatIsNotThereIsNotFoundWithAReason) {
  absl::Status watched;
  Watch("nothing-7", watched);
  const absl::Status got = GetJob("nothing-7").status();

  EXPECT_TRUE(absl::IsNotFound(got));
  EXPECT_EQ(runtime::ReasonOf(got).reason, "JOB_NOT_FOUND");
  EXPECT_TRUE(absl::IsNotFound(watched));
  EXPECT_TRUE(absl::IsNotFound(CancelJob("nothing-7").status()));
  EXPECT_TRUE(absl::IsNotFound(Download("nothing-7", "model.pt").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(GetJob("../etc").status()));
}

TEST_F(ServerTest, FilesOutsideTheResultAreNotHandedOut) {
  ASSERT_TRUE(CreateJob(Create()).ok());

  for (const char* path : {"../../../lock", "/etc/passwd", "a/../../b", ""}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Download("shakespeare-1", path).status())) << path;
  }
  EXPECT_TRUE(absl::IsNotFound(Download("shakespeare-1", "model.pt").status()));
}

TEST_F(ServerTest, AnUploadThatIsNotWholeLeavesNothing) {
  FakeAgent agent(server_->address(), "a");
  ASSERT_TRUE(CreateJob(Create()).ok());

  EXPECT_EQ(agent.Upload("shakespeare-1", "model.pt", "weights", 9).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(agent.Upload("shakespeare-1", "model.pt", "weights", 3).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(agent.Upload("shakespeare-1", "../model.pt", "weights", 7).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(agent.Upload("nothing-7", "model.pt", "weights", 7).error_code(),
            grpc::StatusCode::NOT_FOUND);
  EXPECT_TRUE(absl::IsNotFound(Download("shakespeare-1", "model.pt").status()));
}

TEST_F(ServerTest, ABrokenStreamLosesAndRepeatsNothing) {
  FakeAgent agent(server_->address(), "a");
  agent.Connect();
  ASSERT_TRUE(CreateJob(Create()).ok());
  const std::uint64_t first = agent.Read().start_worker().worker_id();
  agent.running_workers = {first};

  agent.Break();
  agent.Connect();
  const std::uint64_t second = agent.Read().start_worker().worker_id();
  agent.Say(first, Ready());
  agent.SayAgain(1);
  agent.Say(second, Ready());
  std::vector<std::uint64_t> grouped;
  for (int i = 0; i < 2; ++i) grouped.push_back(agent.Read().to_worker().worker_id());

  EXPECT_NE(first, second);
  EXPECT_THAT(grouped, testing::UnorderedElementsAre(first, second));
}

TEST_F(ServerTest, NodesAreListedWithTheirJobs) {
  FakeAgent agent(server_->address(), "a");
  agent.Connect();
  ASSERT_TRUE(CreateJob(Create()).ok());
  agent.Read();
  grpc::ClientContext context;
  SetDeadline(context);
  v1::ListNodesResponse response;

  const grpc::Status status = nodes_->ListNodes(&context, v1::ListNodesRequest(), &response);

  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(response.nodes_size(), 1);
  EXPECT_EQ(response.nodes(0).name(), "nodes/a");
  EXPECT_TRUE(response.nodes(0).connected());
  ASSERT_EQ(response.nodes(0).devices_size(), 2);
  EXPECT_EQ(response.nodes(0).devices(0).job(), "projects/default/jobs/shakespeare-1");
}

TEST_F(ServerTest, JobsSurviveARestartAndNumbersGoOn) {
  const absl::StatusOr<v1::Job> before = CreateJob(Create("r-1"));
  ASSERT_TRUE(before.ok()) << before.status();
  Stop();

  Start();

  const absl::StatusOr<v1::Job> after = GetJob("shakespeare-1");
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_EQ(after->uid(), before->uid());
  EXPECT_EQ(after->state(), v1::JOB_STATE_QUEUED);
  EXPECT_EQ(CreateJob(Create("r-1"))->uid(), before->uid());
  EXPECT_EQ(CreateJob(Create())->name(), "projects/default/jobs/shakespeare-2");
}

TEST_F(ServerTest, ATrainingJobGoesOnUnderTheNextCoordinator) {
  FakeAgent agent(server_->address(), "a");
  agent.Connect();
  ASSERT_TRUE(CreateJob(Create()).ok());
  const std::vector<std::uint64_t> workers = RunFirstRound(agent);
  while (GetJob("shakespeare-1")->state() != v1::JOB_STATE_RUNNING) std::this_thread::yield();
  Stop();
  Start();

  FakeAgent same(server_->address(), "a");
  same.running_workers = workers;
  same.Connect();
  same.Say(workers[0], FinishedWith({}));
  same.Say(workers[1], FinishedWith({}));
  absl::Status end;
  const std::vector<v1::JobEvent> events = Watch("shakespeare-1", end);

  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events.back().job().state(), v1::JOB_STATE_SUCCEEDED)
      << events.back().job().state_reason();
}

TEST_F(ServerTest, StreamsEndWhenTheCoordinatorStops) {
  FakeAgent agent(server_->address(), "a");
  agent.Connect();
  ASSERT_TRUE(CreateJob(Create()).ok());
  for (int i = 0; i < 2; ++i) agent.Read();
  grpc::ClientContext context;
  SetDeadline(context);
  v1::WatchJobRequest request;
  request.set_name("shakespeare-1");
  const auto reader = jobs_->WatchJob(&context, request);
  v1::JobEvent event;
  ASSERT_TRUE(reader->Read(&event));  // it is open

  server_->Shutdown();

  EXPECT_EQ(agent.Read().sequence(), 0u);
  EXPECT_EQ(agent.Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  while (reader->Read(&event)) {
  }
  const absl::Status watch_end = runtime::FromGrpc(reader->Finish());
  EXPECT_TRUE(absl::IsUnavailable(watch_end)) << watch_end;
  EXPECT_EQ(runtime::ReasonOf(watch_end).reason, "COORDINATOR_STOPPING");
}

TEST_F(ServerTest, ATakenPortIsUnavailableAndNamed) {
  ServerOptions options = Options();
  options.listen = server_->address();
  options.state_dir = folder_ + "/other";

  const absl::Status status = Server::Open(options).status();

  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr(server_->address()));
}

TEST_F(ServerTest, TwoCoordinatorsDoNotShareAFolder) {
  const absl::Status status = Server::Open(Options()).status();

  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr(folder_));
}

TEST_F(ServerTest, AFolderThatCannotBeMadeIsRefused) {
  ServerOptions options = Options();
  options.state_dir = "/proc/tactus";

  EXPECT_FALSE(Server::Open(options).ok());
}

// The health service's answer for one service name, as bytes; both messages are one field.
TEST_F(ServerTest, EveryServiceIsHealthy) {
  for (const std::string name :
       {"", "tactus.v1.Jobs", "tactus.v1.Nodes", "tactus.v1.Artifacts", "tactus.v1.Admin",
        "tactus.v1.Enrolment", "tactus.agent.v1.AgentSession"}) {
    const std::string request =
        name.empty() ? "" : std::string("\x0a") + static_cast<char>(name.size()) + name;
    const grpc::Slice slice(request);
    const grpc::ByteBuffer sent(&slice, 1);
    grpc::ByteBuffer received;
    grpc::ClientContext context;
    SetDeadline(context);
    grpc::GenericStub stub(channel_);
    std::promise<grpc::Status> done;
    stub.UnaryCall(&context, "/grpc.health.v1.Health/Check", {}, &sent, &received,
                   [&done](grpc::Status status) { done.set_value(std::move(status)); });

    const grpc::Status status = done.get_future().get();

    ASSERT_TRUE(status.ok()) << name << ": " << status.error_message();
    grpc::Slice answer;
    ASSERT_TRUE(received.DumpToSingleSlice(&answer).ok());
    EXPECT_EQ(std::string(answer.begin(), answer.end()), "\x08\x01") << name;
  }
}

}  // namespace
}  // namespace tactus::service
