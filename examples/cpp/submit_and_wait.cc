// Submits a small job with the client library, shows how it goes, and fetches the model.
//
//   submit_and_wait HOST:PORT TEXT_FILE MODEL_FILE

#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>

#include "client/api/client.h"
#include "runtime/status.h"

namespace {

using tactus::api::Client;
namespace v1 = tactus::v1;

int Fail(const absl::Status& status) {
  for (const auto& [field, description] : tactus::runtime::FieldViolations(status)) {
    std::fprintf(stderr, "%s: %s\n", field.c_str(), description.c_str());
  }
  const std::string reason = tactus::runtime::ReasonOf(status).reason;
  std::fprintf(stderr, "%s %s\n", reason.c_str(), status.ToString().c_str());
  return 1;
}

// A byte-level language model on a text that is readable on every node.
v1::CreateJobRequest SmallJob(const std::string& text_file) {
  v1::CreateJobRequest request;
  v1::JobSpec* spec = request.mutable_spec();
  spec->set_name("example");
  spec->mutable_model()->set_builtin("bytes-lm");
  spec->mutable_model()->mutable_options()->set_width(16);
  spec->mutable_model()->mutable_options()->set_heads(2);
  spec->mutable_model()->mutable_options()->set_layers(1);
  spec->mutable_data()->set_text(text_file);
  spec->mutable_stop()->set_rounds(50);
  (*request.mutable_labels())["from"] = "submit_and_wait";
  return request;
}

absl::Status Save(Client& client, const v1::Job& job, const std::string& path) {
  for (const v1::Artifact& artifact : job.result().artifacts()) {
    if (artifact.path() != "model.pt") continue;
    std::ofstream out(path, std::ios::binary);
    v1::DownloadArtifactRequest request;
    request.set_name(job.name());
    request.set_path(artifact.path());
    return client.DownloadArtifact(
        request, {.size_bytes = artifact.size_bytes(), .sha256 = artifact.sha256()},
        [&out](std::string_view data) -> absl::Status {
          out.write(data.data(), static_cast<std::streamsize>(data.size()));
          return out ? absl::OkStatus() : absl::ResourceExhaustedError("the disk is full");
        });
  }
  return absl::NotFoundError("the result has no model.pt");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: submit_and_wait HOST:PORT TEXT_FILE MODEL_FILE\n");
    return 2;
  }
  const tactus::api::ClientOptions options = {.server = argv[1]};
  if (const absl::Status status = options.Validate(); !status.ok()) return Fail(status);
  Client client(options);

  const absl::StatusOr<v1::Job> created = client.CreateJob(SmallJob(argv[2]));
  if (!created.ok()) return Fail(created.status());
  std::printf("%s\n", created->name().c_str());

  v1::WatchJobRequest watch;
  watch.set_name(created->name());
  v1::Job job;
  const absl::Status watched = client.WatchJob(watch, [&job](const v1::JobEvent& event) {
    if (event.has_job()) {
      job = event.job();
      std::printf("%s %s\n", v1::JobState_Name(job.state()).c_str(), job.state_reason().c_str());
    } else if (event.has_progress()) {
      std::printf("round %llu, loss %.4f\n",
                  static_cast<unsigned long long>(event.progress().rounds()),
                  event.progress().loss());
    }
    return true;
  });
  if (!watched.ok()) return Fail(watched);
  if (job.state() != v1::JOB_STATE_SUCCEEDED) return 1;
  if (const absl::Status saved = Save(client, job, argv[3]); !saved.ok()) return Fail(saved);
  std::printf("saved %s\n", argv[3]);
  return 0;
}
