// Whole command lines against a coordinator that tells what it was asked.

#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "client/cli/answer.h"
#include "client/local/surroundings.h"
#include "client/render/exit_code.h"
#include "client/render/screen.h"
#include "tests/client/fake_coordinator.h"
#include "tests/client/sample_job.h"
#include "tests/support/temporary_folder.h"

namespace tactus::client {

using Words = std::vector<std::string>;

struct Answered {
  ExitCode code = ExitCode::kOk;
  std::string out{};
  std::string err{};
};

class VerbsTest : public ::testing::Test {
 protected:
  VerbsTest() {
    coordinator_.job = FinishedJob();
    coordinator_.node.set_name("n0");
    surroundings_.folders.config = folder_.path();
  }

  Answered Tactus(Words words) {
    coordinator_.asked.clear();
    words.insert(words.end(), {"--server", coordinator_.address()});
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    Answered answered = {.code = Answer(words, surroundings_, Screen({}))};
    answered.out = ::testing::internal::GetCapturedStdout();
    answered.err = ::testing::internal::GetCapturedStderr();
    return answered;
  }

  // What is printed; it is said how where that goes wrong.
  std::string Printed(const Words& words) {
    const Answered answered = Tactus(words);
    EXPECT_EQ(answered.code, ExitCode::kOk) << answered.err;
    return answered.out;
  }

  // The calls that are made.
  std::vector<std::string> Asked(const Words& words) {
    Printed(words);
    return coordinator_.asked;
  }

  FakeCoordinator coordinator_;
  const TemporaryFolder folder_;
  Surroundings surroundings_;
};

}  // namespace tactus::client
