// The record of where a result comes from, as the coordinator makes and signs it.

#include "coordinator/access/provenance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "coordinator/access/envelope.h"
#include "identity/signature.h"
#include "runtime/now.h"
#include "runtime/sha256.h"
#include "tests/coordinator/fake_agent.h"
#include "tests/coordinator/tls_fixture.h"

namespace tactus::service {
namespace {

absl::StatusOr<std::string> Download(v1::Jobs::Stub& jobs, const std::string& path) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
  v1::DownloadArtifactRequest request;
  request.set_name("small-1");
  request.set_path(path);
  const auto reader = jobs.DownloadArtifact(&context, request);
  std::string content;
  for (v1::ArtifactChunk chunk; reader->Read(&chunk);) content += chunk.data();
  const absl::Status status = runtime::FromGrpc(reader->Finish());
  if (!status.ok()) return status;
  return content;
}

// A job that is over and has a file, a snapshot of its worker's.
template <typename Fixture>
class WithJob : public Fixture {
 protected:
  void EndJob(v1::Jobs::Stub& jobs, const std::shared_ptr<grpc::Channel>& node) {
    v1::CreateJobRequest request;
    *request.mutable_spec() = SmallSpec();
    request.mutable_spec()->mutable_workers()->set_min(1);
    (*request.mutable_labels())["team"] = "vision";
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
    v1::Job job;
    ASSERT_TRUE(jobs.CreateJob(&context, request, &job).ok());
    agent_ = std::make_unique<FakeAgent>(node, "a");
    agent_->Connect();
    const agent::v1::ToAgent told = agent_->Read();
    ASSERT_TRUE(told.has_start_worker()) << told.ShortDebugString();
    const grpc::Status brought = agent_->Upload("small-1", "snapshots/1.000.safetensors", "weights",
                                                7, told.start_worker().worker_id());
    ASSERT_TRUE(brought.ok()) << brought.error_message();
    grpc::ClientContext cancel_context;
    cancel_context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
    v1::CancelJobRequest cancel;
    cancel.set_name("small-1");
    cancel.set_discard(true);
    ASSERT_TRUE(jobs.CancelJob(&cancel_context, cancel, &job).ok());
    agent_->Exit(told.start_worker().worker_id());
    ASSERT_TRUE(Fixture::Eventually([&] {
      const auto text = Download(jobs, access::kProvenanceFile);
      return text.ok() || !absl::IsFailedPrecondition(text.status());
    }));
  }
  std::unique_ptr<FakeAgent> agent_;
};

class ProvenanceCallTest : public WithJob<TlsFixture> {};
class PlainProvenanceCallTest : public WithJob<ServerFixture> {};

TEST_F(ProvenanceCallTest, TheCoordinatorVouchesForTheFilesOfAJobThatIsOver) {
  const auto alice = v1::Jobs::NewStub(ChannelOf("user/alice"));
  EndJob(*alice, ChannelOf("node/a"));

  const auto text = Download(*alice, access::kProvenanceFile);
  const auto plans = Download(*alice, access::kPlansFile);

  ASSERT_TRUE(text.ok()) << text.status();
  ASSERT_TRUE(plans.ok()) << plans.status();
  const auto envelope = access::ReadEnvelope(*text);
  ASSERT_TRUE(envelope.ok()) << envelope.status();
  ASSERT_EQ(envelope->signatures.size(), 1u);
  const access::Envelope::Signature& signature = envelope->signatures[0];
  EXPECT_TRUE(identity::CheckSignature(signature.certificate, access::SignedBytes(*envelope),
                                       signature.signature)
                  .ok());
  const auto issued =
      identity::CheckIssued(signature.certificate, authority_.certificate, runtime::WallSeconds());
  ASSERT_TRUE(issued.ok()) << issued.status();
  EXPECT_EQ(SpiffeIdOf(issued->holder), "spiffe://tactus/coordinator");
  const auto record = access::ReadStatement(envelope->payload);
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->owner, "user/alice");
  EXPECT_EQ(record->job, "projects/default/jobs/small-1");
  ASSERT_EQ(record->files.size(), 1u);
  EXPECT_EQ(record->files[0].name, "snapshots/1.000.safetensors");
  EXPECT_EQ(record->files[0].sha256, runtime::Sha256Of("weights"));
  EXPECT_EQ(record->plans.sha256, runtime::Sha256Of(*plans));
  ASSERT_EQ(record->nodes.size(), 1u);
  EXPECT_EQ(record->nodes[0].id, "spiffe://tactus/node/a");
  const auto fields = nlohmann::json::parse(envelope->payload);
  EXPECT_EQ(fields["predicate"]["buildDefinition"]["externalParameters"]["labels"]["team"],
            "vision");
  // The same again, and after a restart: it is signed once.
  EXPECT_EQ(*Download(*alice, access::kProvenanceFile), *text);
}

TEST_F(PlainProvenanceCallTest, WithoutACertificateItIsNotSignedAndSaysSo) {
  EndJob(*jobs_, channel_);

  const auto text = Download(*jobs_, access::kProvenanceFile);

  ASSERT_TRUE(text.ok()) << text.status();
  const auto envelope = access::ReadEnvelope(*text);
  ASSERT_TRUE(envelope.ok()) << envelope.status();
  EXPECT_TRUE(envelope->signatures.empty());
  EXPECT_EQ(access::ReadStatement(envelope->payload)->builder, access::kUnidentified);
}

TEST_F(PlainProvenanceCallTest, OfAJobThatIsNotOverOrHasNoFilesThereIsNone) {
  ASSERT_TRUE(Create(SmallSpec()).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(Download(*jobs_, access::kProvenanceFile).status()));
  ASSERT_TRUE(Cancel("small-1").ok());

  EXPECT_TRUE(absl::IsNotFound(Download(*jobs_, access::kProvenanceFile).status()));
}

// A worker's own file of that name is somebody else's word.
TEST_F(PlainProvenanceCallTest, WhatAWorkerCallsSoIsNotGivenOut) {
  EndJob(*jobs_, channel_);
  const std::string folder = StateFolder() + "/jobs/small-1/";
  std::filesystem::remove(folder + access::kProvenanceFile);
  std::filesystem::create_directories(folder + "result");
  std::ofstream(folder + "result/" + access::kProvenanceFile) << "forged";

  EXPECT_NE(*Download(*jobs_, access::kProvenanceFile), "forged");
}

}  // namespace
}  // namespace tactus::service
