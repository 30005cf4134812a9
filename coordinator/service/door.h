// The door that every call comes in by and goes out by: who makes it, whether it is for them, and
// what is counted and written down of it.

#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "coordinator/access/audit_log.h"
#include "coordinator/access/bounds.h"
#include "coordinator/access/gate.h"
#include "coordinator/access/object_rules.h"
#include "coordinator/access/principal.h"
#include "coordinator/access/rate.h"
#include "metrics/coordinator_metrics.h"

namespace tactus::service {

// Outlives all calls. From any thread.
class Door {
 public:
  // `gate` is null where nobody is asked who they are.
  struct Surroundings {
    metrics::CoordinatorMetrics& metrics;
    access::AuditLog& audit;
    const access::Gate* gate;
    access::BoundsOptions bounds{};
  };
  explicit Door(const Surroundings& surroundings)
      : around_(surroundings), calls_(surroundings.bounds.calls_per_user) {}

  const access::Gate* gate() const { return around_.gate; }
  const access::BoundsOptions& bounds() const { return around_.bounds; }

  // A call that the gate itself refuses, before it is one of ours.
  void Refused(const std::string& who, const std::string& certificate, const std::string& path,
               const absl::Status& status) const;

  // So many connections were refused, the last of them from this host, and why.
  void RefusedConnections(std::uint64_t count, const std::string& host,
                          const std::string& why) const;

 private:
  friend class Visit;
  const Surroundings around_;
  mutable access::CallCounts calls_;  // has a lock of its own
  // Refusals of those without a certificate, who are whoever reaches the port: more of them are not
  // written down.
  const access::Rate strangers_{{.burst = 20, .per_second = 0.1}};
};

// A call, from its coming in until it is answered. Copies stand for the same call. One thread at a
// time.
class Visit {
 public:
  // `method` is "Jobs/GetJob"; static storage. The door outlives the visit.
  Visit(const Door& door, grpc::CallbackServerContext* context, const char* method);

  // Whether the call may go on; of one that changes something, a line of the audit log is promised
  // then, but for an agent's stream and an enrolment, for which Promise asks. Errors: of
  // access::Gate; PermissionDenied, NOT_LOCAL, an admin's call from elsewhere where nobody is
  // asked; Unavailable, AUDIT_FULL, it could not be written down; access::Bound::kCalls, they have
  // too many.
  const absl::Status& admitted() const { return state_->admitted; }
  // Requires: admitted.
  const access::Principal& who() const { return state_->who; }
  const std::string& peer() const { return state_->peer; }

  // What bounds know the caller as; see access::BoundedName.
  std::string bounded_name() const { return access::BoundedName(state_->who, state_->peer); }
  const access::BoundsOptions& bounds() const { return state_->door.bounds(); }

  // Of an agent's stream that is open: it is bounded as a node from now on, and not as a call.
  void StopCounting() const { state_->place.reset(); }

  // access::Allow of who makes the call.
  absl::Status Allow(const access::Deed& deed) const { return access::Allow(state_->who, deed); }

  // Of a call that lasts: whether it would be admitted now, too.
  absl::Status Still() const;

  // What it is about, for the audit log: "jobs/shakespeare-1".
  void About(const std::string& what) const { state_->about = what; }

  // Takes the place of a line. Once. Error: AUDIT_FULL.
  absl::Status Promise() const;

  // Counts it, and writes it down if it is a change or a refusal. Once.
  void Leave(const absl::Status& status) const;
  // Of a call that lasts: writes down that it has begun. Once, before Leave, which then writes down
  // a refusal alone.
  void WriteDown(const absl::Status& status) const;

 private:
  struct State {
    const Door& door;
    const char* const method;
    std::string path{};
    std::string peer{};
    access::Principal who{};
    absl::Status admitted{};
    std::unique_ptr<access::AuditLog::Slot> slot{};  // of a change that is not written down yet
    std::string about{};
    std::optional<access::CallCounts::Place> place{};  // until it leaves
  };
  void Identify(grpc::CallbackServerContext* context) const;
  void Count(const grpc::CallbackServerContext& context) const;
  access::AuditEntry Entry(const absl::Status& status) const;

  std::shared_ptr<State> state_;
};

// True for a caller on this machine, by its name as gRPC has it: "ipv4:127.0.0.1:5000",
// "ipv6:%5B::1%5D:5000", "unix:...".
bool IsLocal(const std::string& peer);

}  // namespace tactus::service
