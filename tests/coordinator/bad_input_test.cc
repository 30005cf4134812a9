// What is wrong is refused with a code and a reason, and the server goes on serving others.

#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "coordinator/shell/job_watchers.h"
#include "tests/coordinator/server_fixture.h"

namespace tactus::service {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

class BadInputTest : public ServerFixture {
 protected:
  // Whatever the test did, others are served.
  void TearDown() override {
    jobs_ = v1::Jobs::NewStub(NewChannel());
    const absl::StatusOr<v1::Job> made = Create(SmallSpec());
    EXPECT_TRUE(made.ok()) << made.status();
    ServerFixture::TearDown();
  }

  static std::vector<std::string> FieldsOf(const absl::Status& status) {
    std::vector<std::string> fields;
    for (const auto& violation : runtime::FieldViolations(status))
      fields.push_back(violation.field);
    return fields;
  }

  std::vector<std::string> Refused(const v1::JobSpec& spec) {
    const absl::Status status = Create(spec).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_EQ(runtime::ReasonOf(status).reason, "INVALID_FIELDS");
    return FieldsOf(status);
  }
};

TEST_F(BadInputTest, AMessageThatIsTooLargeIsRefused) {
  v1::JobSpec spec = SmallSpec();
  spec.set_name(std::string(10 << 20, 'a'));

  const absl::Status status = Create(spec).status();

  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
}

TEST_F(BadInputTest, PathsThatEveryNodeWouldReadElsewhereAreRefused) {
  v1::JobSpec spec = SmallSpec();
  spec.mutable_data()->set_text("corpus.txt");
  EXPECT_THAT(Refused(spec), ElementsAre("data.text"));

  spec = SmallSpec();
  spec.mutable_model()->set_torchscript("m.pt");
  spec.mutable_model()->set_loss("losses/mine.pt");
  spec.mutable_data()->mutable_numpy()->set_inputs("x.npy");
  spec.mutable_data()->mutable_numpy()->set_targets("/y.npy");
  EXPECT_THAT(Refused(spec), ElementsAre("model.torchscript", "model.loss", "data.numpy.inputs"));
}

TEST_F(BadInputTest, ASpecificationThatIsTooLargeIsRefused) {
  v1::JobSpec spec = SmallSpec();
  spec.mutable_data()->set_text(std::string(300 << 10, 'a'));

  EXPECT_THAT(Refused(spec), ElementsAre("spec"));
}

TEST_F(BadInputTest, TextsThatAreTooLongOrNotForPeopleAreRefused) {
  v1::JobSpec spec = SmallSpec();
  spec.set_name("a\nb");
  spec.mutable_data()->set_text("/data/\x1b[31m");
  spec.mutable_model()->set_torchscript("sha256:ABC");
  spec.mutable_model()->set_loss(std::string(5000, '/'));
  (*spec.mutable_workers()->mutable_selector())["zone\t"] = "a";
  spec.mutable_workers()->add_tolerations(std::string(64, 'x'));

  EXPECT_THAT(Refused(spec), ElementsAre("name", "model.torchscript", "model.loss", "data.text",
                                         "workers.selector", "workers.tolerations"));
}

TEST_F(BadInputTest, NoControlCharacterComesBack) {
  v1::JobSpec spec = SmallSpec();
  spec.set_name("a\x1b[31m\n");

  const std::string message(Create(spec).status().message());

  EXPECT_THAT(message, Not(Contains('\x1b')));
  EXPECT_THAT(message, Not(Contains('\n')));
}

TEST_F(BadInputTest, LabelsAreBounded) {
  v1::CreateJobRequest request;
  *request.mutable_spec() = SmallSpec();
  for (int i = 0; i < 65; ++i) (*request.mutable_labels())["k" + std::to_string(i)] = "v";
  EXPECT_THAT(FieldsOf(Call(jobs_, &v1::Jobs::Stub::CreateJob, request).status()),
              ElementsAre("labels"));

  request.clear_labels();
  (*request.mutable_labels())["k"] = "a\x01";
  EXPECT_THAT(FieldsOf(Call(jobs_, &v1::Jobs::Stub::CreateJob, request).status()),
              ElementsAre("labels"));
}

TEST_F(BadInputTest, NumbersOutOfTheirBoundsAreRefused) {
  v1::JobSpec spec = SmallSpec();
  spec.set_priority(1001);
  spec.mutable_stop()->mutable_time()->set_seconds(-5);
  spec.mutable_adapt()->mutable_batch()->set_policy(static_cast<v1::BatchPolicy>(77));
  spec.mutable_workers()->set_device(static_cast<v1::DeviceKind>(9));

  EXPECT_THAT(Refused(spec), testing::UnorderedElementsAre("stop.time", "workers.device",
                                                           "adapt.batch.policy", "priority"));
}

TEST_F(BadInputTest, AGraceThatIsNegativeOrEndlessIsRefused) {
  ASSERT_TRUE(Create(SmallSpec()).ok());
  for (const std::int64_t seconds : {std::int64_t{-1}, std::int64_t{86401}, INT64_MAX, INT64_MIN}) {
    v1::CancelJobRequest request;
    request.set_name("small-1");
    request.mutable_grace()->set_seconds(seconds);
    const absl::Status status = Call(jobs_, &v1::Jobs::Stub::CancelJob, request).status();
    EXPECT_THAT(FieldsOf(status), ElementsAre("grace")) << seconds;
  }
  EXPECT_EQ(Get("small-1")->state(), v1::JOB_STATE_QUEUED);
}

TEST_F(BadInputTest, NamesThatLeadElsewhereAreRefused) {
  ASSERT_TRUE(Create(SmallSpec()).ok());
  for (const std::string name : {"../small-1", "projects/default/jobs/../../etc", "small-1/../x",
                                 "projects/other/jobs/small-1", "", "small-1\n", "SMALL-1"}) {
    EXPECT_THAT(FieldsOf(Get(name).status()), ElementsAre("name")) << name;
  }
  for (const std::string path : {"../coordinator.db", "/etc/passwd", "a/../../b", "", ".", "a\nb",
                                 "a\\b", "a/b/c/d/e/f/g/h/i"}) {
    grpc::ClientContext context;
    v1::DownloadArtifactRequest request;
    request.set_name("small-1");
    request.set_path(path);
    const auto reader = jobs_->DownloadArtifact(&context, request);
    v1::ArtifactChunk chunk;
    EXPECT_FALSE(reader->Read(&chunk)) << path;
    EXPECT_THAT(FieldsOf(runtime::FromGrpc(reader->Finish())), ElementsAre("path")) << path;
  }
  for (const std::string name : {"../node", "nodes/", "a b", "nodes/nodes/a"}) {
    v1::GetNodeRequest request;
    request.set_name(name);
    const absl::Status status = Call(nodes_, &v1::Nodes::Stub::GetNode, request).status();
    EXPECT_THAT(FieldsOf(status), ElementsAre("name")) << name;
  }
  for (const std::string hash : {"../../coordinator.db", "ab", ""}) {
    v1::GetBlobRequest request;
    request.set_sha256(hash);
    const absl::Status status = Call(artifacts_, &v1::Artifacts::Stub::GetBlob, request).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << hash;
  }
}

TEST_F(BadInputTest, PagesOfOtherListsAndSizesThatAreNoneAreRefused) {
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Create(SmallSpec()).ok());
  v1::ListJobsRequest jobs;
  jobs.set_page_size(1);
  jobs.set_page_token("of another server");
  EXPECT_THAT(FieldsOf(Call(jobs_, &v1::Jobs::Stub::ListJobs, jobs).status()),
              ElementsAre("page_token"));
  jobs.clear_page_token();
  const std::string token = Call(jobs_, &v1::Jobs::Stub::ListJobs, jobs)->next_page_token();
  ASSERT_NE(token, "");
  jobs.set_page_token(token);
  jobs.set_filter("state=QUEUED");
  EXPECT_THAT(FieldsOf(Call(jobs_, &v1::Jobs::Stub::ListJobs, jobs).status()),
              ElementsAre("page_token"));
  v1::ListRoundsRequest rounds;
  rounds.set_name("small-1");
  rounds.set_page_token(token);
  EXPECT_THAT(FieldsOf(Call(jobs_, &v1::Jobs::Stub::ListRounds, rounds).status()),
              ElementsAre("page_token"));
  rounds.clear_page_token();
  rounds.set_points_max(-1);
  EXPECT_THAT(FieldsOf(Call(jobs_, &v1::Jobs::Stub::ListRounds, rounds).status()),
              ElementsAre("points_max"));
  v1::ListNodesRequest nodes;
  nodes.set_page_token("a/b");
  EXPECT_THAT(FieldsOf(Call(nodes_, &v1::Nodes::Stub::ListNodes, nodes).status()),
              ElementsAre("page_token"));
  nodes.clear_page_token();
  nodes.set_page_size(-1);
  EXPECT_THAT(FieldsOf(Call(nodes_, &v1::Nodes::Stub::ListNodes, nodes).status()),
              ElementsAre("page_size"));
}

TEST_F(BadInputTest, AnUpdateOfWhatMayNotChangeIsRefused) {
  ASSERT_TRUE(Create(SmallSpec()).ok());
  for (const std::string path :
       {"", "*", "spec", "spec.name", "spec.model", "name", "spec.workers", "spec.workers.device",
        "spec.optimizer.adam.learning_rate", "spec.priority.x", "spec.stop.nothing", "labels.a"}) {
    v1::UpdateJobRequest request;
    request.set_name("small-1");
    request.mutable_update_mask()->add_paths(path);
    const absl::Status status = Call(jobs_, &v1::Jobs::Stub::UpdateJob, request).status();
    EXPECT_THAT(FieldsOf(status), ElementsAre("update_mask")) << path;
  }
}

TEST_F(BadInputTest, BytesThatAreNoMessageAreRefused) {
  grpc::GenericStub stub(channel_);
  for (const std::string path : {"/tactus.v1.Jobs/CreateJob", "/tactus.v1.Jobs/Nothing"}) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
    grpc::CompletionQueue queue;
    const grpc::Slice slice("\xff\xff\xff\xff");
    const grpc::ByteBuffer request(&slice, 1);
    const auto call = stub.PrepareUnaryCall(&context, path, request, &queue);
    call->StartCall();
    grpc::ByteBuffer response;
    grpc::Status status;
    call->Finish(&response, &status, &queue);
    void* tag = nullptr;
    bool ok = false;
    ASSERT_TRUE(queue.Next(&tag, &ok));
    EXPECT_FALSE(status.ok()) << path;
  }
}

// One connection has its share and no more; watches that nobody reads hold up nobody.
TEST_F(BadInputTest, AThousandWatchesThatNobodyReadsAreBounded) {
  constexpr std::size_t kWatches = 1000;
  ASSERT_TRUE(Create(SmallSpec()).ok());
  const std::unique_ptr<v1::Jobs::Stub> greedy = v1::Jobs::NewStub(NewChannel());
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReader<v1::JobEvent>>> readers;
  v1::WatchJobRequest watch;
  watch.set_name("small-1");
  for (std::size_t i = 0; i < kWatches; ++i) {
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    readers.push_back(greedy->WatchJob(contexts.back().get(), watch));
  }
  // All are open or refused once each gave its first event or its end; then nobody reads.
  std::size_t refused = 0;
  for (const auto& reader : readers) {
    v1::JobEvent event;
    if (reader->Read(&event)) continue;
    const absl::Status status = runtime::FromGrpc(reader->Finish());
    EXPECT_EQ(runtime::ReasonOf(status).reason, "TOO_MANY_WATCHES") << status;
    EXPECT_TRUE(runtime::RetryDelayOf(status).has_value());
    ++refused;
  }
  EXPECT_EQ(refused, kWatches - JobWatchers::kOfConnectionMax);
  for (int i = 1; i <= 20; ++i) {
    v1::UpdateJobRequest update;
    update.set_name("small-1");
    update.mutable_spec()->set_priority(i);
    update.mutable_update_mask()->add_paths("spec.priority");
    ASSERT_TRUE(Call(jobs_, &v1::Jobs::Stub::UpdateJob, update).ok());
  }
  ASSERT_TRUE(Cancel("small-1").ok());
  const std::unique_ptr<v1::Jobs::Stub> modest = v1::Jobs::NewStub(NewChannel());
  grpc::ClientContext context;
  const auto reader = modest->WatchJob(&context, watch);
  v1::JobEvent event;
  ASSERT_TRUE(reader->Read(&event));
  EXPECT_EQ(event.job().state(), v1::JOB_STATE_CANCELLED);
  EXPECT_FALSE(reader->Read(&event));
  EXPECT_TRUE(reader->Finish().ok());
  for (const auto& one : contexts) one->TryCancel();
}

}  // namespace
}  // namespace tactus::service
