#include "client/local/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "client/api/options.h"
#include "tests/support/temporary_folder.h"

namespace tactus::client {
namespace {

using ::testing::HasSubstr;

class SettingsTest : public ::testing::Test {
 protected:
  void Write(const std::string& text) { std::ofstream(path_) << text; }

  std::string Read() {
    std::ifstream in(path_);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  absl::StatusOr<Settings> Resolve(const GivenSettings& flags,
                                   const GivenSettings& environment = {}) {
    return ResolveSettings({flags, environment, path_});
  }

  std::string ErrorOf(const GivenSettings& flags, const GivenSettings& environment = {}) {
    return std::string(Resolve(flags, environment).status().message());
  }

  TemporaryFolder folder_;
  std::string path_ = folder_.path() + "/config.yaml";
};

constexpr const char* kFile =
    "# mine\n"
    "context: lab\n"
    "server: file:1\n"
    "request_timeout: 3s\n"
    "contexts:\n"
    "  lab: {server: lab-1:7070}\n"
    "  home: {server: home:7071}\n";

TEST_F(SettingsTest, DefaultsNeedNoFile) {
  const auto settings = Resolve({});

  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->server.value, api::kServerDefault);
  EXPECT_EQ(settings->server.source, "default");
  EXPECT_EQ(settings->request_timeout.value, "10s");
  EXPECT_EQ(settings->output.value, "table");
  EXPECT_EQ(settings->context.value, "");
}

TEST_F(SettingsTest, TheStrongestServerWins) {
  Write(kFile);

  EXPECT_EQ(Resolve({.server = "f:1"}, {.server = "e:1", .context = "home"})->server.value, "f:1");
  EXPECT_EQ(Resolve({.context = "home"}, {.server = "e:1"})->server.value, "home:7071");
  EXPECT_EQ(Resolve({}, {.server = "e:1", .context = "home"})->server.value, "e:1");
  EXPECT_EQ(Resolve({}, {.context = "home"})->server.value, "home:7071");
  EXPECT_EQ(Resolve({})->server.value, "lab-1:7070");
  EXPECT_EQ(Resolve({})->server.source, "context lab (file " + path_ + ")");
  Write("server: file:1\n");
  EXPECT_EQ(Resolve({})->server.value, "file:1");
  EXPECT_EQ(Resolve({.server = "[::1]:7070"})->server.value, "[::1]:7070");
}

TEST_F(SettingsTest, OtherValuesHaveTheSameOrder) {
  Write(kFile);

  const auto flag = Resolve({.request_timeout = "1s"}, {.request_timeout = "2s"});
  const auto environment = Resolve({}, {.request_timeout = "2s", .output = "wide"});

  EXPECT_EQ(flag->request_timeout.value, "1s");
  EXPECT_EQ(flag->request_timeout.source, "flag --request-timeout");
  EXPECT_EQ(environment->request_timeout.source, "environment TACTUS_REQUEST_TIMEOUT");
  EXPECT_EQ(environment->output.value, "wide");
  EXPECT_EQ(Resolve({})->request_timeout.value, "3s");
}

TEST_F(SettingsTest, MistakesAreNamedWithTheirSource) {
  for (const char* address : {"host", "host:", ":5", "host:0", "host:65536", "host:1x"}) {
    EXPECT_THAT(ErrorOf({.server = address}),
                HasSubstr(std::string("flag --server: '") + address + "' is not an address"));
  }
  EXPECT_THAT(ErrorOf({}, {.server = "x"}), HasSubstr("environment TACTUS_SERVER: 'x'"));
  EXPECT_THAT(ErrorOf({}, {.request_timeout = "5"}), HasSubstr("TACTUS_REQUEST_TIMEOUT"));
  EXPECT_THAT(ErrorOf({}, {.output = "xml"}), HasSubstr("found \"xml\", allowed is one of: table"));
  EXPECT_THAT(ErrorOf({.context = "lab"}), HasSubstr("the file has no contexts"));
  Write(kFile);
  EXPECT_THAT(ErrorOf({.context = "labb"}),
              HasSubstr("flag --context: 'labb' is not a context; did you mean 'lab'? allowed: "
                        "lab, home"));
}

TEST_F(SettingsTest, AWrongFileIsNamedWithTheLine) {
  Write("sever: h:1\n");
  EXPECT_THAT(ErrorOf({}), HasSubstr("sever: unknown key (line 1); did you mean 'server'?"));
  Write("contexts:\n  lab: {sever: h:1}\n");
  EXPECT_THAT(ErrorOf({}), HasSubstr("contexts.lab.sever: unknown key (line 2); did you mean"));
  Write("contexts:\n  lab: {}\n");
  EXPECT_THAT(ErrorOf({}), HasSubstr("contexts.lab.server: is missing; give HOST:PORT (line 2)"));
  Write("contexts: [a]\n");
  EXPECT_THAT(ErrorOf({}),
              HasSubstr("contexts: a list stands where a map is expected (line 1); expected names, "
                        "each with a map of: server"));
  Write("context: [\n");
  EXPECT_THAT(ErrorOf({}), HasSubstr(path_ + ": line "));
  Write("context: lab\n");
  EXPECT_THAT(ErrorOf({}), HasSubstr("'lab' is not a context"));
}

TEST_F(SettingsTest, UsingAContextChangesItsLineAlone) {
  Write(kFile);

  ASSERT_TRUE(UseContext(path_, "home").ok());

  std::string expected = kFile;
  expected.replace(expected.find("context: lab"), 12, "context: home");
  EXPECT_EQ(Read(), expected);
  EXPECT_EQ(Resolve({})->server.value, "home:7071");
  EXPECT_EQ(UseContext(path_, "none").code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Read(), expected);
}

TEST_F(SettingsTest, TheFirstUseOfAContextAddsALine) {
  Write("contexts: {a: {server: 'h:1'}}\n");

  ASSERT_TRUE(UseContext(path_, "a").ok());

  EXPECT_EQ(Read(), "context: a\ncontexts: {a: {server: 'h:1'}}\n");
}

TEST_F(SettingsTest, TheLineIsAddedToTheDocumentAndNotBeforeIt) {
  Write("---\ncontexts: {a: {server: 'h:1'}}\n");

  ASSERT_TRUE(UseContext(path_, "a").ok());

  EXPECT_EQ(Read(), "---\ncontext: a\ncontexts: {a: {server: 'h:1'}}\n");
  EXPECT_EQ(Resolve({})->server.value, "h:1");
}

TEST_F(SettingsTest, AFileThatALineWouldBreakIsLeftAsItIs) {
  const std::string text = "# mine\n---\ncontexts: {a: {server: 'h:1'}}\n";
  Write(text);

  const absl::Status status = UseContext(path_, "a");

  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("give it the line context: a"));
  EXPECT_EQ(Read(), text);
}

TEST_F(SettingsTest, AContextIsAddedAndTheRestStays) {
  const Context lab = {.name = "10.0.0.1", .server = "10.0.0.1:7070", .tls_dir = "/home/me/a b"};
  for (const std::string before :
       {"", "# mine\noutput: json", "contexts:\n    home: {server: 'home:1'}\noutput: json\n",
        "contexts:\n  home:\n    server: home:1\n"}) {
    Write(before);

    ASSERT_TRUE(AddContext(path_, lab).ok()) << before;
    ASSERT_TRUE(AddContext(path_, lab).ok()) << before;  // it has it
    ASSERT_TRUE(UseContext(path_, lab.name).ok()) << before;

    const auto settings = Resolve({});
    ASSERT_TRUE(settings.ok()) << settings.status() << Read();
    EXPECT_EQ(settings->server.value, lab.server);
    EXPECT_EQ(settings->tls_dir.value, lab.tls_dir);
    EXPECT_EQ(settings->contexts.size(), before.find("home") == std::string::npos ? 1u : 2u);
    EXPECT_EQ(settings->output.value, before.find("json") == std::string::npos ? "table" : "json");
  }
}

TEST_F(SettingsTest, AContextForElsewhereIsNotChanged) {
  Write(kFile);

  const absl::Status status = AddContext(path_, {.name = "lab", .server = "other:1"});

  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("contexts.lab: is there already, for lab-1:7070"));
  EXPECT_EQ(Read(), kFile);
}

TEST_F(SettingsTest, ContextsInBracesAreLeftToTheirOwner) {
  const std::string text = "contexts: {a: {server: 'h:1'}}\n";
  Write(text);

  const absl::Status status = AddContext(path_, {.name = "b", .server = "h:2", .tls_dir = "/t"});

  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("give its contexts b: {server: "));
  EXPECT_EQ(Read(), text);
}

TEST_F(SettingsTest, WhatIsInForceIsShownWithItsSource) {
  Write(kFile);
  const auto settings = Resolve({}, {.output = "json"});

  EXPECT_THAT(RenderSettings(*settings, OutputFormat::kTable),
              HasSubstr("output           json        environment TACTUS_OUTPUT\n"));
  const auto json = nlohmann::json::parse(RenderSettings(*settings, OutputFormat::kJson));
  EXPECT_EQ(json["server"]["value"], "lab-1:7070");
  EXPECT_EQ(json["config_file"], path_);
  EXPECT_EQ(RenderContexts(*settings, OutputFormat::kTable),
            "IN USE  NAME  SERVER\n"
            "*       lab   lab-1:7070\n"
            "        home  home:7071\n");
  EXPECT_EQ(RenderContexts(*settings, OutputFormat::kName), "lab\nhome\n");
}

}  // namespace
}  // namespace tactus::client
