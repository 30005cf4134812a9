#include "tests/coordinator/tls_fixture.h"

#include <sys/stat.h>

#include <fstream>

#include "identity/revocations.h"
#include "identity/secret_file.h"
#include "runtime/now.h"
#include "runtime/process.h"

namespace tactus::service {
namespace {

constexpr char kServerName[] = "coordinator.test";

std::int64_t Today() { return runtime::WallNow() / 1'000'000'000; }

}  // namespace

void TlsFixture::SetUp() {
  std::string pattern = testing::TempDir() + "tactus-XXXXXX";
  folder_ = ::mkdtemp(pattern.data());
  authority_ = *identity::MakeAuthority("tactus", Today(), 10);
  for (const char* who : {"coordinator", "user/vera", "user/alice", "user/bob", "user/root",
                          "user/mallory", "node/a", "node/b", "node/c"}) {
    certificates_[who] = Issue(authority_, who, Today(), 3600);
  }
  const identity::AuthorityTexts other = *identity::MakeAuthority("tactus", Today(), 10);
  certificates_["other"] = Issue(other, "user/root", Today(), 3600);
  certificates_["other"].authority = authority_.certificate;  // it trusts the coordinator
  certificates_["expired"] = Issue(authority_, "user/root", Today() - 7200, 3600);
  certificates_["revoked"] = Issue(authority_, "user/root", Today(), 3600);
  const identity::TlsTexts& own = certificates_["coordinator"];
  ASSERT_EQ(::mkdir(TlsFolder().c_str(), 0700), 0);
  for (const auto& [name, text] :
       {std::pair{"/ca.pem", own.authority}, std::pair{"/cert.pem", own.certificate},
        std::pair{"/key.pem", own.key}}) {
    ASSERT_TRUE(runtime::WriteFileWhole(TlsFolder() + name, text).ok());
  }
  // It gives certificates, so that strangers may connect: where it does not, no door is wider.
  ASSERT_EQ(::mkdir((folder_ + "/ca").c_str(), 0700), 0);
  ASSERT_TRUE(runtime::WriteFileWhole(folder_ + "/ca/ca.pem", authority_.certificate).ok());
  ASSERT_TRUE(identity::WriteNewFile(folder_ + "/ca/ca-key.pem", authority_.key, 0600).ok());
  options_.authority_folder = folder_ + "/ca";
  Revoke("serial " + identity::ReadCertificate(certificates_["revoked"].certificate)->serial);
  WritePolicy(kPolicy);
  options_.security.tls_dir = TlsFolder();
  options_.policy_file = folder_ + "/policy.json";
  options_.look_at_rules = Seconds(0.02);
  options_.state_dir = StateFolder();
  auto server = Server::Open(options_);
  ASSERT_TRUE(server.ok()) << server.status();
  server_ = *std::move(server);
}

void TlsFixture::TearDown() { ServerFixture::TearDown(); }

identity::TlsTexts TlsFixture::Issue(const identity::AuthorityTexts& authority,
                                     const std::string& who, std::int64_t begin,
                                     std::int64_t seconds) const {
  const identity::Name name = *identity::ParseShortName(who, "tactus");
  const auto issued = identity::IssueCertificate(authority, {.kind = name.kind,
                                                             .name = name.name,
                                                             .dns = {kServerName},
                                                             .now = begin,
                                                             .seconds = seconds});
  EXPECT_TRUE(issued.ok()) << issued.status();
  return *issued;
}

std::shared_ptr<grpc::Channel> TlsFixture::ChannelOf(const std::string& who) const {
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = authority_.certificate;
  if (who != "nobody") {
    options.pem_private_key = certificates_.at(who).key;
    options.pem_cert_chain = certificates_.at(who).certificate;
  }
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetString(GRPC_SSL_TARGET_NAME_OVERRIDE_ARG, kServerName);
  return grpc::CreateCustomChannel(server_->address(), grpc::SslCredentials(options), arguments);
}

void TlsFixture::WritePolicy(const std::string& json) const {
  ASSERT_TRUE(runtime::WriteFileWhole(folder_ + "/policy.json", json).ok());
}

void TlsFixture::Revoke(const std::string& entry) const {
  const absl::Status revoked = identity::Revoke(TlsFolder() + "/" + identity::kRevokedFile, entry);
  ASSERT_TRUE(revoked.ok()) << revoked;
}

}  // namespace tactus::service
