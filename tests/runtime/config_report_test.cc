#include "runtime/config_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace tactus::runtime {
namespace {

using ::testing::ElementsAre;

// An app with an option of each kind, parsed from a command line.
class ConfigReportTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "tactus-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    app_.set_config("--config", "", "A file");
    app_.add_option("--listen", listen_, "Where")
        ->envname("TACTUS_TEST_LISTEN")
        ->capture_default_str();
    app_.add_option("--bytes", bytes_, "How much")
        ->envname("TACTUS_TEST_BYTES")
        ->transform(CLI::AsSizeValue(false))
        ->capture_default_str();
    app_.add_option("--name", name_, "Who");
    app_.add_flag("--loud", loud_, "Whether");
  }
  void TearDown() override {
    ::unsetenv("TACTUS_TEST_LISTEN");
    std::filesystem::remove_all(folder_);
  }

  std::vector<ConfigEntry> InForce(const std::vector<std::string>& arguments) {
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
    app_.parse(reversed);
    return ConfigInForce(app_, arguments);
  }
  std::string File(const std::string& content) const {
    std::ofstream(folder_ + "/file") << content;
    return folder_ + "/file";
  }

  CLI::App app_{"An app"};
  std::string folder_;
  std::string listen_ = "127.0.0.1:1";
  std::uint64_t bytes_ = 7;
  std::string name_;
  bool loud_ = false;
};

TEST_F(ConfigReportTest, WithoutAnythingAllAreDefaults) {
  EXPECT_THAT(InForce({}),
              ElementsAre(ConfigEntry{"listen", "127.0.0.1:1", "default"},
                          ConfigEntry{"bytes", "7", "default"}, ConfigEntry{"name", "", "default"},
                          ConfigEntry{"loud", "false", "default"}));
}

TEST_F(ConfigReportTest, EachValueSaysWhereItCameFrom) {
  ::setenv("TACTUS_TEST_LISTEN", "0.0.0.0:2", 1);
  const std::string file = File("bytes = 2KiB\n");

  EXPECT_THAT(InForce({"--config", file, "--name=x y", "--loud"}),
              ElementsAre(ConfigEntry{"listen", "0.0.0.0:2", "environment"},
                          ConfigEntry{"bytes", "2048", "file " + file},
                          ConfigEntry{"name", "x y", "flag"}, ConfigEntry{"loud", "true", "flag"}));
}

TEST_F(ConfigReportTest, AFlagGoesBeforeTheFileAndTheFileBeforeTheEnvironment) {
  ::setenv("TACTUS_TEST_LISTEN", "0.0.0.0:2", 1);
  const std::string file = File("listen = 0.0.0.0:3\nbytes = 3\n");

  const std::vector<ConfigEntry> entries = InForce({"--config", file, "--bytes", "4"});

  EXPECT_EQ(entries[0], (ConfigEntry{"listen", "0.0.0.0:3", "file " + file}));
  EXPECT_EQ(entries[1], (ConfigEntry{"bytes", "4", "flag"}));
  EXPECT_EQ(listen_, "0.0.0.0:3");
}

TEST_F(ConfigReportTest, WhatIsPrintedIsAConfigurationFile) {
  const std::string text = FormatConfig(InForce({"--name", "a \"b\" #c", "--bytes", "9"}));
  EXPECT_EQ(text,
            "listen = 127.0.0.1:1  # default\n"
            "bytes = 9             # flag\n"
            "name = 'a \"b\" #c'     # flag\n"
            "loud = false          # default\n");
}

TEST_F(ConfigReportTest, WhatIsNotSetIsAComment) {
  EXPECT_EQ(FormatConfig(InForce({})),
            "listen = 127.0.0.1:1  # default\n"
            "bytes = 7             # default\n"
            "# name is not set     # default\n"
            "loud = false          # default\n");
}

}  // namespace
}  // namespace tactus::runtime
