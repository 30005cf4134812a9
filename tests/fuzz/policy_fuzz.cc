// The file of --policy: one that is taken gives roles to people and to nodes as it says, and to the
// coordinator none.

#include <google/protobuf/stubs/logging.h>

#include <cstdint>
#include <string>

#include "coordinator/access/policy.h"
#include "tests/fuzz/require.h"

namespace tactus::fuzz {
namespace {

void Check(const std::string& json) {
  const auto policy = access::Policy::Parse(json);
  if (!policy.ok()) return;
  for (const char* id :
       {"spiffe://tactus/user/alice", "spiffe://tactus/node/a", "spiffe://tactus/coordinator"}) {
    const identity::Name name = *identity::ParseSpiffeId(id);
    const v1::Role role = policy->RoleOf(name);
    const bool of_node = role == v1::ROLE_NODE;
    const bool of_user = role >= v1::ROLE_VIEWER && role <= v1::ROLE_ADMIN;
    Require(!of_node || name.kind == identity::Kind::kNode, "a node's role is a node's");
    Require(!of_user || name.kind == identity::Kind::kUser, "a user's role is a user's");
    Require(role == v1::ROLE_UNSPECIFIED || json.find(name.name) != std::string::npos ||
                json.find('*') != std::string::npos || json.find('\\') != std::string::npos,
            "who has a role is named");
  }
}

}  // namespace
}  // namespace tactus::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tactus::fuzz::Check({reinterpret_cast<const char*>(data), size});
  return 0;
}

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  google::protobuf::SetLogHandler(nullptr);
  return 0;
}
