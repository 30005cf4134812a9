// Any text as a job file: it is refused with a reason, or it is a JobSpec that the coordinator can
// judge.

#include <cstdint>
#include <string_view>

#include "client/yaml/job_file.h"
#include "coordinator/spec/spec_validation.h"
#include "tests/fuzz/require.h"

namespace tactus::fuzz {
namespace {

void Check(const job::JobSettings& settings) {
  Require(settings.workers_min >= 1, "an accepted job takes a worker");
  Require(settings.workers_min <= settings.workers_max, "an accepted job's bounds are in order");
  Require(settings.priority >= -1000 && settings.priority <= 1000, "a priority is in its range");
}

void Run(std::string_view text) {
  const client::JobFile file = client::ParseJobFile(text, {}, "/folder");
  for (const std::string& error : file.errors) Require(!error.empty(), "a refusal says why");
  if (!file.errors.empty()) return;
  v1::JobSpec sent;
  Require(sent.ParseFromString(file.spec.SerializeAsString()), "what was read can be sent");
  const absl::StatusOr<job::JobSettings> settings = spec::ParseSpec(sent);
  Require(settings.ok() == spec::SpecViolations(sent).empty(), "a refusal names the fields");
  if (settings.ok()) Check(*settings);
}

}  // namespace
}  // namespace tactus::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tactus::fuzz::Run({reinterpret_cast<const char*>(data), size});
  return 0;
}
