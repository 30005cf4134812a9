#include "coordinator/access/policy.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <utility>

namespace tactus::access {
namespace {

constexpr char kEverybody[] = "*";

using Names = google::protobuf::RepeatedPtrField<std::string>;

bool Has(const Names& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end() ||
         std::ranges::find(names, kEverybody) != names.end();
}

absl::Status CheckNames(const char* list, const Names& names, bool nodes) {
  for (const std::string& name : names) {
    const bool right = nodes ? identity::IsLabel(name) : identity::IsUserName(name);
    if (right || name == kEverybody) continue;
    return absl::InvalidArgumentError(
        std::string(list) + ": found \"" + name + "\", allowed is \"*\" or " +
        (nodes ? "1 to 63 of [a-z0-9-.]" : "1 to 128 of [a-zA-Z0-9-._@]"));
  }
  return absl::OkStatus();
}

}  // namespace

Policy::Policy() {
  lists_.add_nodes(kEverybody);
  lists_.add_submitters(kEverybody);
  lists_.add_admins("admin");
}

absl::StatusOr<Policy> Policy::Parse(const std::string& json) {
  v1::Policy lists;
  const auto read = google::protobuf::util::JsonStringToMessage(json, &lists);
  if (!read.ok()) return absl::InvalidArgumentError(std::string(read.message()));
  absl::Status status = CheckNames("viewers", lists.viewers(), false);
  if (status.ok()) status = CheckNames("submitters", lists.submitters(), false);
  if (status.ok()) status = CheckNames("admins", lists.admins(), false);
  if (status.ok()) status = CheckNames("nodes", lists.nodes(), true);
  if (!status.ok()) return status;
  return Policy(std::move(lists));
}

v1::Role Policy::RoleOf(const identity::Name& name) const {
  switch (name.kind) {
    case identity::Kind::kCoordinator:
      return v1::ROLE_UNSPECIFIED;
    case identity::Kind::kNode:
      return Has(lists_.nodes(), name.name) ? v1::ROLE_NODE : v1::ROLE_UNSPECIFIED;
    case identity::Kind::kUser:
      break;
  }
  if (Has(lists_.admins(), name.name)) return v1::ROLE_ADMIN;
  if (Has(lists_.submitters(), name.name)) return v1::ROLE_SUBMITTER;
  return Has(lists_.viewers(), name.name) ? v1::ROLE_VIEWER : v1::ROLE_UNSPECIFIED;
}

}  // namespace tactus::access
