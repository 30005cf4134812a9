#include "coordinator/page/answers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <optional>
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
  AnswersTest() : server_(*runtime::HttpServer::Open({})) {
    Limit(
        {.under_way = 2, .waiting = 4, .kept = 2, .share = 0.25, .burst = std::chrono::seconds(1)});
  }
  ~AnswersTest() override { server_->Stop(); }

  void Limit(const Answers::Limits& limits) {
    answers_.emplace(*server_, limits, [this] { return now_; });
  }

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
      now_ = now;
      answers_->Answer(
          question,
          [this, question](Answers::Give give) { asked_.emplace_back(question, std::move(give)); },
          [this, question](const HttpResponse& answer) {
            got_.push_back(question + ": " + std::to_string(answer.status) + " " + answer.body);
          });
    });
  }

  // Of the i-th question that was asked; what comes of it has happened afterwards.
  void Give(std::size_t i, const std::string& body) { Give(i, body, now_); }
  void Give(std::size_t i, const std::string& body, Instant now) {
    OnServer([&] { now_ = now; });
    asked_.at(i).second({.body = body});
    OnServer([] {});
  }

  std::vector<std::string> Asked() const {
    std::vector<std::string> questions;
    for (const auto& [question, give] : asked_) questions.push_back(question);
    return questions;
  }

  const std::unique_ptr<runtime::HttpServer> server_;
  Instant now_{};  // the server's thread's
  std::optional<Answers> answers_;
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

TEST_F(AnswersTest, QuestionsAreUnderWayForAShareOfTheTime) {
  Ask("a", At(1));
  Give(0, "", At(3));  // 2 s, of which 1 was allowed at once, and half of one came meanwhile

  Ask("b", At(3.1));
  Ask("c", At(4.9));
  EXPECT_THAT(Asked(), ElementsAre("a"));
  Ask("d", At(5.1));

  EXPECT_THAT(Asked(), ElementsAre("a", "b", "c"));
}

TEST_F(AnswersTest, AQuestionThatTookVeryLongIsNotHeldAgainstTheNextForLong) {
  Ask("a", At(1));
  Give(0, "", At(100));

  Ask("b", At(103.9));
  EXPECT_THAT(Asked(), ElementsAre("a"));
  Ask("c", At(104.1));

  EXPECT_THAT(Asked(), ElementsAre("a", "b", "c"));
}

TEST_F(AnswersTest, ManyShortQuestionsAreUnderWayNoLongerThanALongOne) {
  Limit({.under_way = 2, .waiting = 1000, .share = 0.25, .burst = std::chrono::seconds(1)});
  int busy_tenths = 0;
  for (int tenth = 0; tenth < 400; ++tenth) {
    const std::size_t answered = asked_.size();
    Ask("q" + std::to_string(tenth), At(0.1 * tenth));
    busy_tenths += asked_.size() > answered ? 1 : 0;
    for (std::size_t i = answered; i < asked_.size(); ++i) Give(i, "", At(0.1 * tenth + 0.1));
  }

  // Of 40 s a quarter, and the second that is allowed at once.
  EXPECT_NEAR(busy_tenths, 110, 2);
}

TEST_F(AnswersTest, WhatPagesAskAsTheyOpenWaitsForNothing) {
  for (int i = 0; i < 6; ++i) {
    Ask("q" + std::to_string(i), At(1 + 0.1 * i));
    ASSERT_EQ(asked_.size(), static_cast<std::size_t>(i) + 1);
    Give(asked_.size() - 1, "", At(1.09 + 0.1 * i));
  }
}

TEST_F(AnswersTest, WhatHasToWaitIsAskedWhenItMay) {
  Ask("a", At(1));
  Ask("b", At(1));
  Ask("c", At(1));
  Give(0, "", At(2.5));
  OnServer([&] { EXPECT_THAT(Asked(), ElementsAre("a", "b")); });

  Give(1, "", At(2.5));
  std::size_t asked = 2;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (asked < 3 && std::chrono::steady_clock::now() < deadline) {
    OnServer([&] {
      now_ += std::chrono::milliseconds(1);
      asked = asked_.size();
    });
  }

  OnServer([&] { EXPECT_THAT(Asked(), ElementsAre("a", "b", "c")); });
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
