#include "coordinator/page/answers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <string>
#include <utility>
#include <vector>

namespace tactus::page {
namespace {

using runtime::HttpResponse;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

Instant At(double seconds) { return Instant(Seconds(seconds)); }

// Questions that the test answers when it likes; all on the server's thread.
class AnswersTest : public ::testing::Test {
 protected:
  AnswersTest() : server_(*runtime::HttpServer::Open({})) {}
  ~AnswersTest() override { server_->Stop(); }

  template <typename Task>
  void OnServer(Task task) {
    std::promise<void> done;
    server_->Post([&] {
      task();
      done.set_value();
    });
    done.get_future().wait();
  }

  void Ask(const std::string& question, Instant now) {
    OnServer([&] {
      answers_.Answer(
          question,
          [this, question](Answers::Give give) { asked_.emplace_back(question, std::move(give)); },
          now,
          [this, question](const HttpResponse& answer) {
            got_.push_back(question + ": " + std::to_string(answer.status) + " " + answer.body);
          });
    });
  }

  // Of the i-th question that was asked; what comes of it has happened afterwards.
  void Give(std::size_t i, const std::string& body) {
    asked_.at(i).second({.body = body});
    OnServer([] {});
  }

  std::vector<std::string> Asked() const {
    std::vector<std::string> questions;
    for (const auto& [question, give] : asked_) questions.push_back(question);
    return questions;
  }

  const std::unique_ptr<runtime::HttpServer> server_;
  Answers answers_{*server_, {.under_way = 2, .waiting = 4, .kept = 2}};
  std::vector<std::pair<std::string, Answers::Give>> asked_;
  std::vector<std::string> got_;
};

TEST_F(AnswersTest, WhatSeveralAskAtOnceIsAskedOnce) {
  Ask("a", At(1));
  Ask("a", At(1.1));
  EXPECT_THAT(got_, IsEmpty());

  Give(0, "yes");

  EXPECT_THAT(Asked(), ElementsAre("a"));
  EXPECT_THAT(got_, ElementsAre("a: 200 yes", "a: 200 yes"));
}

TEST_F(AnswersTest, AnAnswerIsGivenAgainWhileItIsFresh) {
  Ask("a", At(1));
  Give(0, "first");

  Ask("a", At(1.9));
  Ask("a", At(2.1));
  Give(1, "second");

  EXPECT_THAT(got_, ElementsAre("a: 200 first", "a: 200 first", "a: 200 second"));
}

TEST_F(AnswersTest, FewAreUnderWayAndTheOthersWaitTheirTurn) {
  Ask("a", At(1));
  Ask("b", At(1));
  Ask("c", At(1));
  EXPECT_THAT(Asked(), ElementsAre("a", "b"));

  Give(1, "");

  EXPECT_THAT(Asked(), ElementsAre("a", "b", "c"));
}

TEST_F(AnswersTest, WhoAsksBeyondTheBoundIsToldToComeAgain) {
  for (const char* question : {"a", "b", "c", "a"}) Ask(question, At(1));

  Ask("d", At(1));
  Ask("a", At(1));

  EXPECT_THAT(got_, ElementsAre("d: 503 too many questions wait; ask again in a moment\n",
                                "a: 503 too many questions wait; ask again in a moment\n"));
  Give(0, "");
  got_.clear();
  Ask("d", At(1));
  Give(1, "");
  Give(2, "");
  Give(3, "late");
  EXPECT_THAT(got_, ElementsAre("b: 200 ", "c: 200 ", "d: 200 late"));
}

TEST_F(AnswersTest, TheOldestOfTooManyAnswersIsForgotten) {
  for (const char* question : {"a", "b", "c"}) {
    Ask(question, At(1 + 0.1 * static_cast<double>(asked_.size())));
    Give(asked_.size() - 1, "");
  }

  Ask("d", At(1.4));
  Ask("a", At(1.5));

  EXPECT_THAT(Asked(), ElementsAre("a", "b", "c", "d", "a"));
}

}  // namespace
}  // namespace tactus::page
