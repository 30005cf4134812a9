#include "agent/daemon/preemption_watch.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <memory>
#include <optional>
#include <string>

#include "tests/agent/daemon/await.h"
#include "tests/agent/daemon/programs.h"
#include "tests/support/temporary_folder.h"

namespace tactus::agent {
namespace {

// Runs real commands.
class PreemptionWatchTest : public testing::Test {
 protected:
  ~PreemptionWatchTest() override {
    End();
    control_.Stop();
  }

  void Watch(const std::string& command) {
    control_.RunAndWait([&] {
      watch_ = std::make_unique<PreemptionWatch>(
          control_,
          PreemptionWatch::Options{
              .command = command,
              .environment = {"PATH=/usr/bin:/bin", "FOLDER=" + folder_.path()},
              .log_path = folder_.File("log"),
              .pause = {.initial = Seconds(0.001), .max = Seconds(0.002)}},
          [this](std::optional<Duration> within) { noticed_.Set(within); });
    });
  }
  void End() {
    control_.RunAndWait([this] { watch_.reset(); });
  }

  TemporaryFolder folder_;
  runtime::ControlThread control_;
  std::unique_ptr<PreemptionWatch> watch_;
  Once<std::optional<Duration>> noticed_;
};

TEST_F(PreemptionWatchTest, ACommandThatSucceedsIsTheNotice) {
  Watch("echo it comes; true");

  const auto noticed = noticed_.Await();

  ASSERT_TRUE(noticed.has_value());
  EXPECT_FALSE(noticed->has_value());
}

TEST_F(PreemptionWatchTest, ItsLastLineSaysHowLongTheMachineStays) {
  Watch("echo it comes; echo 110s");

  const auto noticed = noticed_.Await();

  ASSERT_TRUE(noticed.has_value());
  EXPECT_EQ(*noticed, std::optional<Duration>(Seconds(110)));
}

TEST_F(PreemptionWatchTest, ACommandThatFailsIsRunAgainUntilItDoesNot) {
  Watch("echo x >> $FOLDER/runs; test $(wc -l < $FOLDER/runs) -ge 3 || kill -9 $$");

  ASSERT_TRUE(noticed_.Await().has_value());

  EXPECT_EQ(ReadFile(folder_.File("runs")), "x\nx\nx\n");
}

TEST_F(PreemptionWatchTest, TheCommandEndsWithTheWatch) {
  const std::string pipe = folder_.File("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  Watch("echo $$ > $FOLDER/pipe; sleep 1000");
  const int pid = std::stoi(ReadFile(pipe));

  End();

  EXPECT_TRUE(AwaitProcessEnd(pid));
  EXPECT_FALSE(noticed_.IsSet());
}

TEST(DurationSaidLastTest, IsThatOfTheLastLineOrNone) {
  EXPECT_EQ(DurationSaidLast("110s"), std::optional<Duration>(Seconds(110)));
  EXPECT_EQ(DurationSaidLast("30s\n2m\n"), std::optional<Duration>(Seconds(120)));
  for (const char* none : {"", "\n", "soon", "2m\nsoon\n", "-5s", "1000d", "30"}) {
    EXPECT_EQ(DurationSaidLast(none), std::nullopt) << none;
  }
}

}  // namespace
}  // namespace tactus::agent
