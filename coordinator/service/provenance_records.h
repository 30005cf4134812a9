// The records of where results come from: made when a job is over, signed, and kept beside its
// logs.

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/access/provenance.h"
#include "coordinator/job/records.h"
#include "coordinator/shell/core_runner.h"
#include "runtime/control_thread.h"

namespace tactus::service {

// What is on record of a job that is over, without times of its own and plans.
access::Provenance ProvenanceOf(const job::JobRecord& record);

// Makes access::kProvenanceFile and access::kPlansFile in the job's folder: the one is a DSSE
// envelope over the statement, signed by the key of --tls-dir where there is one, and the other the
// decisions of the job, of which the statement has the hash. Where a file came late, both are made
// anew. From any thread.
class ProvenanceRecords {
 public:
  // All outlive this; the threads are stopped before it is destroyed.
  struct Surroundings {
    CoreRunner& core;
    runtime::ControlThread& files;
    std::string state_folder{};
    std::string tls_dir{};  // empty: nothing is signed
  };
  explicit ProvenanceRecords(Surroundings surroundings) : around_(std::move(surroundings)) {}

  // True for the two names, which are no file's that a job made.
  static bool IsOne(const std::string& path);

  // Answers on the files' thread once both are there. Errors: NotFound, no such job, or nothing of
  // it to speak of; FailedPrecondition, it is not over, or the certificate is not valid; of the
  // store and the file system.
  using Done = std::function<void(const absl::Status&)>;
  void Make(const std::string& job, Done done) const;

 private:
  struct Order;  // what one Make gathers
  void GatherPlans(const std::shared_ptr<Order>& order, const std::string& page_token) const;
  absl::Status Write(const Order& order) const;

  const Surroundings around_;
};

}  // namespace tactus::service
