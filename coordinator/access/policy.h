// Who has which role.

#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "identity/name.h"
#include "tactus/v1/access.pb.h"

namespace tactus::access {

class Policy {
 public:
  // Where there is no file: every node is a node, every user a submitter, and the user "admin" an
  // admin.
  Policy();

  // v1::Policy as JSON. Errors: InvalidArgument, it is not, or names what nobody can be called.
  static absl::StatusOr<Policy> Parse(const std::string& json);

  // ROLE_UNSPECIFIED: none; so the coordinator itself, which calls nobody.
  v1::Role RoleOf(const identity::Name& name) const;

 private:
  explicit Policy(v1::Policy lists) : lists_(std::move(lists)) {}
  v1::Policy lists_;
};

}  // namespace tactus::access
