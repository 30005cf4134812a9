// A coordinator with TLS, an authority of its own, and folders of certificates for everybody.

#pragma once

#include <grpcpp/grpcpp.h>

#include <map>
#include <memory>
#include <string>

#include "identity/authority.h"
#include "tests/coordinator/server_fixture.h"

namespace tactus::service {

// The policy names vera (viewer), alice and bob (submitters), root (admin) and the nodes a and b.
class TlsFixture : public ServerFixture {
 protected:
  void SetUp() override;
  void TearDown() override;

  // A channel of its own with that certificate; see Issue for the names. "nobody" has none.
  std::shared_ptr<grpc::Channel> ChannelOf(const std::string& who) const;

  // Issues "user/alice", "node/a" or "coordinator" by the authority in `authority`.
  identity::TlsTexts Issue(const identity::AuthorityTexts& authority, const std::string& who,
                           std::int64_t begin, std::int64_t seconds) const;

  void WritePolicy(const std::string& json) const;
  void Revoke(const std::string& entry) const;
  std::string TlsFolder() const { return folder_ + "/tls"; }

  static constexpr const char* kPolicy =
      R"({"viewers": ["vera"], "submitters": ["alice", "bob"], "admins": ["root"],
          "nodes": ["a", "b"]})";

  identity::AuthorityTexts authority_;
  std::map<std::string, identity::TlsTexts> certificates_;  // by who: "user/alice"
};

}  // namespace tactus::service
