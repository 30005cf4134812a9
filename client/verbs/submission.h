// What a job file on this machine needs on its way to the coordinator.

#pragma once

#include <map>
#include <string>

#include "absl/status/status.h"
#include "client/api/client.h"
#include "client/render/exit_code.h"
#include "client/render/screen.h"
#include "tactus/v1/jobs.pb.h"

namespace tactus::client {

bool HasFilesToUpload(const v1::JobSpec& spec);

// Brings files to the coordinator, each once. One thread.
class Uploads {
 public:
  // Both outlive this.
  Uploads(api::Client& client, const Screen& screen) : client_(client), screen_(screen) {}

  // Uploads the files of models and the small ones of data that are found on this machine, and puts
  // sha256:HASH in their place. Names of files that are not here stay: the nodes may have them.
  absl::Status Upload(v1::JobSpec* spec);

 private:
  api::Client& client_;
  const Screen& screen_;
  std::map<std::string, std::string> uploaded_;  // sha256:HASH by path
};

// Whether the coordinator would take it. A job that would be refused brings no files along first.
absl::Status Validate(api::Client& client, v1::CreateJobRequest request);

// Says why a job was refused; the job file is to blame for its fields alone.
ExitCode ReportRefusal(const absl::Status& status, const std::string& job_file,
                       const Screen& screen);

// Nodes may have what this machine has not; where none has it the job waits in the queue to fail.
// A pattern of several files is not looked at.
void SayWhatIsNotHere(const v1::JobSpec& spec, const Screen& screen);

}  // namespace tactus::client
