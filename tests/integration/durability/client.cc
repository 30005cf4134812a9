#include "tests/integration/durability/client.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

namespace tactus {
namespace {

constexpr std::uint64_t kPriorities = 100;

std::string Uuid(std::uint64_t client, std::uint64_t number) {
  char text[37];
  std::snprintf(text, sizeof text, "%08x-0000-4000-8000-%012llx", static_cast<unsigned>(client),
                static_cast<unsigned long long>(number));
  return text;
}

void SetDeadline(grpc::ClientContext& context) {
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
}

}  // namespace

void Client::Work(const std::string& server) {
  // A connection of its own in each life: one to a former coordinator would be shared.
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  const auto channel =
      grpc::CreateCustomChannel(server, grpc::InsecureChannelCredentials(), arguments);
  const std::unique_ptr<v1::Jobs::Stub> stub = v1::Jobs::NewStub(channel);
  bool goes_on = RepeatDoubtful(*stub);
  while (goes_on && !testing::Test::HasFailure()) {
    const double draw = rng_.Uniform();
    if (open_.empty() || draw < 0.3) {
      goes_on = Submit(*stub, Uuid(number_, ++last_request_));
      continue;
    }
    const std::size_t place = rng_.Below(open_.size());
    const std::string request = open_[place];
    KnownJob& job = jobs_[request];
    if (draw < 0.7) {
      goes_on = Update(*stub, job, request);
    } else {
      std::swap(open_[place], open_.back());
      open_.pop_back();
      goes_on = Cancel(*stub, job);
    }
  }
}

// True when the call was answered; false when the coordinator is gone.
bool Client::Answered(const grpc::Status& status, const char* call) {
  if (status.ok()) return true;
  ++tally_.in_doubt;
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE)
      << call << ": " << status.error_message();
  return false;
}

bool Client::Submit(v1::Jobs::Stub& stub, const std::string& request_id) {
  grpc::ClientContext context;
  SetDeadline(context);
  v1::CreateJobRequest request;
  v1::JobSpec& spec = *request.mutable_spec();
  spec.set_name("durable");
  spec.mutable_model()->set_builtin("bytes-lm");
  spec.mutable_data()->set_text("/corpus.txt");
  spec.mutable_stop()->set_rounds(1);
  (*request.mutable_labels())["request"] = request_id;
  (*request.mutable_labels())["edit"] = "0";
  request.set_request_id(request_id);
  KnownJob& known = jobs_[request_id];
  v1::Job job;
  if (!Answered(stub.CreateJob(&context, request, &job), "CreateJob")) return false;
  ++tally_.submits;
  EXPECT_TRUE(known.name.empty() || known.name == job.name())
      << "a repeated CreateJob answers with the first one's job";
  known.name = job.name();
  open_.push_back(request_id);
  return true;
}

bool Client::Update(v1::Jobs::Stub& stub, KnownJob& job, const std::string& request_id) {
  const std::uint64_t edit = job.edit + 1;
  grpc::ClientContext context;
  SetDeadline(context);
  v1::UpdateJobRequest request;
  request.set_name(job.name);
  request.mutable_spec()->set_priority(static_cast<std::int32_t>(edit % kPriorities));
  (*request.mutable_labels())["request"] = request_id;
  (*request.mutable_labels())["edit"] = std::to_string(edit);
  request.mutable_update_mask()->add_paths("labels");
  request.mutable_update_mask()->add_paths("spec.priority");
  job.edit_in_doubt = edit;
  v1::Job answer;
  if (!Answered(stub.UpdateJob(&context, request, &answer), "UpdateJob")) return false;
  ++tally_.updates;
  EXPECT_EQ(answer.labels().at("edit"), std::to_string(edit));
  job.edit = edit;
  job.edit_in_doubt.reset();
  return true;
}

bool Client::Cancel(v1::Jobs::Stub& stub, KnownJob& job) {
  grpc::ClientContext context;
  SetDeadline(context);
  v1::CancelJobRequest request;
  request.set_name(job.name);
  job.cancel_in_doubt = true;
  v1::Job answer;
  if (!Answered(stub.CancelJob(&context, request, &answer), "CancelJob")) return false;
  ++tally_.cancels;
  EXPECT_EQ(answer.state(), v1::JOB_STATE_CANCELLED);
  job.cancelled = true;
  job.cancel_in_doubt = false;
  return true;
}

// Submits without an answer are repeated with the same request id.
bool Client::RepeatDoubtful(v1::Jobs::Stub& stub) {
  std::vector<std::string> doubtful;
  for (const auto& [request, job] : jobs_) {
    const bool open = std::find(open_.begin(), open_.end(), request) != open_.end();
    if (!open && !job.cancelled && !job.cancel_in_doubt) doubtful.push_back(request);
  }
  for (const std::string& request : doubtful) {
    ++tally_.repeated;
    if (!Submit(stub, request)) return false;
  }
  return true;
}

void Client::Check(const std::map<std::string, v1::Job>& on_record) {
  for (auto& [request, job] : jobs_) {
    const auto found = on_record.find(request);
    if (found == on_record.end()) {
      EXPECT_TRUE(job.name.empty()) << job.name << " was acknowledged and is not there";
      continue;
    }
    const v1::Job& record = found->second;
    EXPECT_TRUE(job.name.empty() || job.name == record.name()) << job.name << " was renamed";
    job.name = record.name();
    const std::string edit = record.labels().at("edit");
    if (job.edit_in_doubt.has_value() && edit == std::to_string(*job.edit_in_doubt)) {
      job.edit = *job.edit_in_doubt;
    }
    job.edit_in_doubt.reset();
    EXPECT_EQ(edit, std::to_string(job.edit)) << job.name << ": labels";
    EXPECT_EQ(record.spec().priority(), static_cast<std::int32_t>(job.edit % kPriorities))
        << job.name << ": half of an update";
    const bool cancelled = record.state() == v1::JOB_STATE_CANCELLED;
    EXPECT_TRUE(cancelled || !job.cancelled) << job.name << ": its cancel was acknowledged";
    EXPECT_TRUE(!cancelled || job.cancelled || job.cancel_in_doubt)
        << job.name << ": nobody cancelled it";
    if (job.cancel_in_doubt && !cancelled) open_.push_back(request);
    job.cancelled = cancelled;
    job.cancel_in_doubt = false;
  }
}

}  // namespace tactus
