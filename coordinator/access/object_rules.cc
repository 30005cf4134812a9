#include "coordinator/access/object_rules.h"

#include "runtime/status.h"

namespace tactus::access {
namespace {

absl::Status NotYours(const std::string& message) {
  return runtime::WithReason(absl::PermissionDeniedError(message), {.reason = "NOT_YOURS"});
}

struct Judge {
  const Principal& who;

  absl::Status operator()(const ChangeOfJob& deed) const {
    if (who.role == v1::ROLE_ADMIN) return absl::OkStatus();
    // Of a job that was made while nobody was asked, there is no owner.
    const bool owns = who.kind == Principal::Kind::kUser && !deed.owner.empty() &&
                      deed.owner == NameOf(who) && who.role == v1::ROLE_SUBMITTER;
    if (owns) return absl::OkStatus();
    return NotYours(deed.job + ": is " +
                    (deed.owner.empty() ? "nobody's in particular" : "that of " + deed.owner) +
                    ", and " + NameOf(who) + " asks; allowed are its owner and admins");
  }

  absl::Status operator()(const SpeakingAs& deed) const {
    if (who.kind == Principal::Kind::kNode && who.name == deed.node) return absl::OkStatus();
    return NotYours("hello.node: found " + deed.node + ", and the certificate is that of " +
                    NameOf(who) + "; allowed is the node of the certificate");
  }

  absl::Status operator()(const FileOfJob& deed) const {
    if (who.kind == Principal::Kind::kNode && !deed.maker_node.empty() &&
        who.name == deed.maker_node) {
      return absl::OkStatus();
    }
    return NotYours(deed.job + ": files are brought by the node of the worker that made " +
                    "them, rank 0, and " + NameOf(who) + " is not that node");
  }

  absl::Status operator()(const ReadingBlob& deed) const {
    if (who.kind == Principal::Kind::kStranger) return NotYours("sha256:" + deed.sha256);
    if (who.kind != Principal::Kind::kNode || deed.of_its_jobs) return absl::OkStatus();
    return NotYours("sha256:" + deed.sha256 + ": is of no job that has workers on " + who.name);
  }
};

}  // namespace

absl::Status Allow(const Principal& who, const Deed& deed) {
  if (who.kind == Principal::Kind::kLocal) return absl::OkStatus();
  return std::visit(Judge{who}, deed);
}

}  // namespace tactus::access
