// The file of --policy: whatever is in it, nobody gets a role that no list gives.

#include <google/protobuf/stubs/logging.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "coordinator/access/policy.h"
#include "tests/fuzz/require.h"

namespace tactus::fuzz {
namespace {

void Run(const std::string& text) {
  const absl::StatusOr<access::Policy> policy = access::Policy::Parse(text);
  if (!policy.ok()) return;
  const bool everybody = text.find('*') != std::string::npos ||
                         text.find("\\u") != std::string::npos ||
                         text.find("\\x") != std::string::npos;
  const identity::Name stranger = {
      .domain = "tactus", .kind = identity::Kind::kUser, .name = "stranger-of-no-list"};
  const bool named = text.find("stranger") != std::string::npos;
  Require(everybody || named || policy->RoleOf(stranger) == v1::ROLE_UNSPECIFIED,
          "who is on no list has no role");
  Require(policy->RoleOf({.domain = "tactus", .kind = identity::Kind::kCoordinator}) ==
              v1::ROLE_UNSPECIFIED,
          "the coordinator calls nobody");
  const v1::Role node =
      policy->RoleOf({.domain = "tactus", .kind = identity::Kind::kNode, .name = "gpu-7"});
  Require(node == v1::ROLE_UNSPECIFIED || node == v1::ROLE_NODE, "a node is a node or nothing");
}

}  // namespace
}  // namespace tactus::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tactus::fuzz::Run({reinterpret_cast<const char*>(data), size});
  return 0;
}

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  google::protobuf::SetLogHandler(nullptr);
  return 0;
}
