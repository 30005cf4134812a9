#include "coordinator/access/provenance.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "coordinator/access/envelope.h"
#include "identity/authority.h"
#include "identity/signature.h"

namespace tactus::access {
namespace {

constexpr std::int64_t kThen = 1'700'000'000;

Provenance Record() {
  return {.files = {{.name = "model.pt", .sha256 = std::string(64, 'a')}},
          .job = "jobs/small-1",
          .uid = "11-22",
          .owner = "user/alice",
          .spec = R"({"name": "small", "stop": {"rounds": "1"}})",
          .labels = {{"team", "vision"}},
          .inputs = {{.field = "model.torchscript",
                      .file = "sha256:" + std::string(64, 'b'),
                      .sha256 = std::string(64, 'b')},
                     {.field = "data.text", .file = "/corpus.txt"}},
          .nodes = {{.name = "a", .id = "spiffe://tactus/node/a", .devices = {"cpu:0", "cpu:1"}}},
          .attempts = 2,
          .stop_reason = "rounds",
          .plans = {.name = kPlansFile, .sha256 = std::string(64, 'c')},
          .builder = "spiffe://tactus/coordinator",
          .version = "0.1.0",
          .created = kThen,
          .started = kThen + 1,
          .ended = kThen + 2,
          .signed_at = kThen + 3};
}

TEST(ProvenanceTest, IsAStatementAsInTotoAndSlsaHaveIt) {
  const auto fields = nlohmann::json::parse(StatementOf(Record()));

  EXPECT_EQ(fields["_type"], "https://in-toto.io/Statement/v1");
  EXPECT_EQ(fields["subject"][0]["name"], "model.pt");
  EXPECT_EQ(fields["subject"][0]["digest"]["sha256"], std::string(64, 'a'));
  EXPECT_EQ(fields["predicateType"], "https://slsa.dev/provenance/v1");
  const auto& definition = fields["predicate"]["buildDefinition"];
  EXPECT_EQ(definition["externalParameters"]["submittedBy"], "user/alice");
  EXPECT_EQ(definition["externalParameters"]["spec"]["stop"]["rounds"], "1");
  EXPECT_EQ(definition["internalParameters"]["nodes"][0]["id"], "spiffe://tactus/node/a");
  EXPECT_EQ(definition["resolvedDependencies"][0]["digest"]["sha256"], std::string(64, 'b'));
  EXPECT_FALSE(definition["resolvedDependencies"][1].contains("digest"));
  const auto& run = fields["predicate"]["runDetails"];
  EXPECT_EQ(run["builder"]["id"], "spiffe://tactus/coordinator");
  EXPECT_EQ(run["metadata"]["finishedOn"], "2023-11-14T22:13:22Z");
  EXPECT_EQ(run["byproducts"][0]["uri"], "tactus:jobs/small-1/decisions");
  EXPECT_EQ(StatementOf(Record()), StatementOf(Record()));
}

TEST(ProvenanceTest, WhatIsWrittenIsRead) {
  const auto read = ReadStatement(StatementOf(Record()));

  ASSERT_TRUE(read.ok()) << read.status();
  const Provenance record = Record();
  ASSERT_EQ(read->files.size(), 1u);
  EXPECT_EQ(read->files[0].sha256, record.files[0].sha256);
  EXPECT_EQ(read->plans.name, kPlansFile);
  EXPECT_EQ(read->job, record.job);
  EXPECT_EQ(read->owner, record.owner);
  EXPECT_EQ(read->builder, record.builder);
  EXPECT_EQ(read->nodes[0].id, record.nodes[0].id);
  EXPECT_EQ(read->signed_at, record.signed_at);
  EXPECT_EQ(read->started, record.started);
}

TEST(ProvenanceTest, WhatIsNoneIsSaidToBe) {
  const std::string right = StatementOf(Record());
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"in-toto.io/Statement/v1", "in-toto.io/Statement/v9"},
           {"slsa.dev/provenance/v1", "slsa.dev/provenance/v9"},
           {"urn:tactus:training-job:v1", "urn:another"},
           {std::string(64, 'a'), "short"},
           {"\"model.pt\"", "7"},
           {"\"subject\"", "\"object\""},
           {"tactus_signedOn", "signed"},
           {"\"runDetails\"", "\"walkDetails\""}}) {
    std::string text = right;
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    EXPECT_TRUE(absl::IsInvalidArgument(ReadStatement(text.replace(at, from.size(), to)).status()))
        << from;
  }
  for (const char* text : {"", "null", "[]", "{", "7"}) EXPECT_FALSE(ReadStatement(text).ok());
}

class EnvelopeTest : public testing::Test {
 protected:
  Envelope Signed() const {
    Envelope envelope = {.payload_type = kStatementPayload, .payload = StatementOf(Record())};
    const absl::Status status = AddSignature(own_.certificate, own_.key, envelope);
    EXPECT_TRUE(status.ok()) << status;
    return envelope;
  }
  const identity::AuthorityTexts authority_ = *identity::MakeAuthority("tactus", kThen, 10);
  const identity::TlsTexts own_ =
      *identity::IssueCertificate(authority_, {.kind = identity::Kind::kCoordinator, .now = kThen});
};

// The example of DSSE's protocol.md.
TEST_F(EnvelopeTest, WhatIsSignedIsAsDsseHasIt) {
  EXPECT_EQ(
      SignedBytes({.payload_type = "http://example.com/HelloWorld", .payload = "hello world"}),
      "DSSEv1 29 http://example.com/HelloWorld 11 hello world");
}

TEST_F(EnvelopeTest, WhatIsWrittenIsReadAndStillSigned) {
  const std::string text = TextOf(Signed());
  const auto read = ReadEnvelope(text);

  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->signatures.size(), 1u);
  EXPECT_EQ(read->payload, StatementOf(Record()));
  EXPECT_EQ(text.find('\n'), text.size() - 1);
  EXPECT_TRUE(identity::CheckSignature(read->signatures[0].certificate, SignedBytes(*read),
                                       read->signatures[0].signature)
                  .ok());
  EXPECT_EQ(read->signatures[0].key_id, identity::ReadCertificate(own_.certificate)->fingerprint);
}

TEST_F(EnvelopeTest, FieldsThatOthersAddAreLeftOut) {
  auto fields = nlohmann::json::parse(TextOf(Signed()));
  fields["more"] = 1;
  fields["signatures"][0]["timestamp"] = "then";
  fields["signatures"][0].erase("keyid");
  EXPECT_TRUE(ReadEnvelope(fields.dump()).ok());
}

TEST_F(EnvelopeTest, WhatIsNoneIsSaidToBe) {
  const std::string right = TextOf(Signed());
  auto fields = nlohmann::json::parse(right);
  for (const char* key : {"payload", "payloadType", "signatures"}) {
    auto less = fields;
    less.erase(key);
    EXPECT_TRUE(absl::IsInvalidArgument(ReadEnvelope(less.dump()).status())) << key;
    less[key] = 7;
    EXPECT_TRUE(absl::IsInvalidArgument(ReadEnvelope(less.dump()).status())) << key;
  }
  auto wrong = fields;
  wrong["signatures"][0]["sig"] = "!";
  EXPECT_FALSE(ReadEnvelope(wrong.dump()).ok());
  wrong["signatures"] = std::vector<int>{1};
  EXPECT_FALSE(ReadEnvelope(wrong.dump()).ok());
  wrong["signatures"] = std::vector<nlohmann::json>(17, fields["signatures"][0]);
  EXPECT_FALSE(ReadEnvelope(wrong.dump()).ok());
  for (const char* text : {"", "null", "[]", "{"}) EXPECT_FALSE(ReadEnvelope(text).ok());
}

}  // namespace
}  // namespace tactus::access
