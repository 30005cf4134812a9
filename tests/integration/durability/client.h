// A user who submits, changes and cancels jobs, and remembers what was acknowledged.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/rng.h"
#include "tactus/v1/jobs.grpc.pb.h"

namespace tactus {

// A job as its user knows it. A call without an answer may have been done or not.
struct KnownJob {
  std::string name{};  // empty: no answer to its CreateJob yet
  std::uint64_t edit = 0;
  std::optional<std::uint64_t> edit_in_doubt{};
  bool cancelled = false;
  bool cancel_in_doubt = false;
};

// Its jobs are told from those of others by the label "request". One thread at a time.
class Client {
 public:
  struct Tally {
    int submits = 0, updates = 0, cancels = 0, in_doubt = 0, repeated = 0;
  };

  Client(std::uint64_t number, std::uint64_t seed) : number_(number), rng_(seed) {}

  // Calls one after another until one is not answered because the coordinator is gone. Any other
  // failure is a failure of the test.
  void Work(const std::string& server);

  // Holds the jobs on record, by their label "request", against what was acknowledged; what was in
  // doubt is known from then on.
  void Check(const std::map<std::string, v1::Job>& on_record);

  const std::map<std::string, KnownJob>& jobs() const { return jobs_; }
  const Tally& tally() const { return tally_; }

 private:
  bool Submit(v1::Jobs::Stub& stub, const std::string& request);
  bool Update(v1::Jobs::Stub& stub, KnownJob& job, const std::string& request);
  bool Cancel(v1::Jobs::Stub& stub, KnownJob& job);
  bool Answered(const grpc::Status& status, const char* call);
  bool RepeatDoubtful(v1::Jobs::Stub& stub);

  const std::uint64_t number_;
  Rng rng_;
  Tally tally_;
  std::map<std::string, KnownJob> jobs_;  // by request
  std::vector<std::string> open_;         // requests of jobs that were not cancelled
  std::uint64_t last_request_ = 0;
};

}  // namespace tactus
