// A program beside a worker's life: what it is asked, in which order, and what its answers come to.

#include "sdk/session.h"

#include <atomic>
#include <chrono>
#include <cmath>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tactus::sdk {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Kind = Request::Kind;

Program LineOf(std::uint64_t samples) {
  Program program;
  program.segments = {{.name = "x", .length = 1, .shape = {1}}};
  cuda::AssignOffsets(program.segments);
  program.train_samples = samples;
  program.batch = 4;
  program.micro_batch = 4;
  program.optimizer = {.kind = "sgd", .is_linear = true, .has_step_counts = false};
  program.stop.epochs = 1;
  program.adapt.batch_policy = "fixed";
  program.adapt.batch.per_worker = 4;
  return program;
}

// Tells of a job, and of no group.
class SilentAgent final : public worker::Agent {
 public:
  explicit SilentAgent(worker::StartMessage start) : start_(std::move(start)) {}

  std::optional<worker::ToWorker> Poll() override { return std::nullopt; }
  absl::StatusOr<worker::ToWorker> Receive() override {
    if (start_) return *std::exchange(start_, std::nullopt);
    hung_up_now_.wait();
    return absl::UnavailableError("it has hung up");
  }
  bool Await(Duration limit) override {
    return start_ || hung_up_now_.wait_for(limit) == std::future_status::ready;
  }
  void Send(const worker::FromWorker& message) override {
    if (const auto* ready = std::get_if<worker::ReadyMessage>(&message)) ready_.set_value(*ready);
    if (const auto* failed = std::get_if<worker::FailedMessage>(&message)) {
      failed_.set_value(*failed);
    }
  }
  void Send(const worker::SnapshottedMessage&) override {}
  bool Flush(Duration) override { return true; }
  void BeginStandings() override {}
  worker::Standpoint& standpoint() override { return standpoint_; }
  void HangUp() override {
    if (!hangs_up_.exchange(true)) hung_up_.set_value();
  }

  std::future<worker::ReadyMessage> ready() { return ready_.get_future(); }
  std::future<worker::FailedMessage> failed() { return failed_.get_future(); }

 private:
  std::optional<worker::StartMessage> start_;
  worker::Standpoint standpoint_;
  std::atomic<bool> hangs_up_ = false;
  std::promise<void> hung_up_;
  const std::shared_future<void> hung_up_now_ = hung_up_.get_future().share();
  std::promise<worker::ReadyMessage> ready_;
  std::promise<worker::FailedMessage> failed_;
};

Program MemberOf(std::uint64_t samples) {
  Program program = LineOf(samples);
  program.joins = true;
  program.clip_norm = 2;
  program.adapt.optimizer = "sgd";
  program.adapt.momentum = 0.9;
  return program;
}

// Gradient descent on (x - 1)^2 / 2 from 0, at the rate 0.5, as a program takes part in it.
class Descent {
 public:
  explicit Descent(const Program& program) : session_(program) {}
  Descent(const Program& program, std::unique_ptr<worker::Agent> agent)
      : session_(program, std::move(agent)) {}

  // Does what is asked, until `kind` is; that is left to the caller.
  const Request& Until(Kind kind) {
    while (true) {
      const Request* asked = session_.Await(Seconds(30)).value();
      EXPECT_NE(asked, nullptr);
      if (asked->kind == kind || asked->kind == Kind::kEnd) return *asked;
      kinds_.push_back(asked->kind);
      Do(*asked);
    }
  }

  void Compute(const Request& asked) {
    const auto samples = static_cast<double>(asked.indices.size());
    const double x = static_cast<double>(parameters_[0]);
    gradients_[0] += static_cast<float>((x - 1) * samples / asked.unit);
    EXPECT_TRUE(session_.Reply({.loss_sum = samples * (x - 1) * (x - 1) / 2}).ok());
  }

  Session& session() { return session_; }
  float x() const { return parameters_[0]; }
  const std::vector<Kind>& kinds() const { return kinds_; }

 private:
  void Do(const Request& asked) {
    if (asked.kind == Kind::kCompute) return Compute(asked);
    if (asked.kind == Kind::kBind) {
      parameters_ = asked.parameters;
      gradients_ = asked.gradients;
    }
    if (asked.kind == Kind::kStep) {
      parameters_[0] -= 0.5f * static_cast<float>(asked.gain) * asked.gradients[0];
    }
    EXPECT_TRUE(session_.Reply({}).ok());
  }

  Session session_;
  std::span<float> parameters_;
  std::span<float> gradients_;
  std::vector<Kind> kinds_;
};

TEST(SessionTest, AProgramThatRunsAloneTrainsToItsEnd) {
  Descent descent(LineOf(10));

  const Request& end = descent.Until(Kind::kEnd);

  EXPECT_TRUE(end.end.ok()) << end.end;
  EXPECT_EQ(end.reason, "1 epoch completed");
  EXPECT_THAT(descent.kinds(),
              ElementsAre(Kind::kBind, Kind::kBind, Kind::kCompute, Kind::kStep, Kind::kCompute,
                          Kind::kStep, Kind::kCompute, Kind::kStep));
  EXPECT_EQ(descent.x(), 0.875f) << "half of the way, three times";
  const Standing standing = descent.session().standing();
  EXPECT_EQ(standing.rounds, 3u);
  EXPECT_EQ(standing.samples, 10u);
  EXPECT_EQ(standing.last->epoch_consumed, 10u);
  EXPECT_THAT(standing.plan.batch_sizes, ElementsAre(4u));
}

TEST(SessionTest, TheMemoryIsTheProgramsAsLongAsTheSessionIsThere) {
  Descent descent(LineOf(10));
  descent.Until(Kind::kEnd);
  EXPECT_EQ(descent.session().Await(Seconds(30)).value()->kind, Kind::kEnd) << "it stays";
  descent.session().End("enough");
  descent.session().End("once more");
  EXPECT_EQ(descent.x(), 0.875f);
}

TEST(SessionTest, WhatTheProgramCouldNotDoEndsTraining) {
  Descent descent(LineOf(1000));
  descent.Until(Kind::kCompute);
  ASSERT_TRUE(descent.session().Reply({.status = absl::AbortedError("it broke")}).ok());
  EXPECT_THAT(std::string(descent.Until(Kind::kEnd).end.message()), HasSubstr("it broke"));
}

// A failed step has changed who knows what: nothing goes on from there.
TEST(SessionTest, AStepThatFailedIsTheLast) {
  Descent descent(LineOf(1000));
  descent.Until(Kind::kStep);
  ASSERT_TRUE(descent.session().Reply({.status = absl::AbortedError("no memory")}).ok());
  EXPECT_THAT(std::string(descent.Until(Kind::kEnd).end.message()), HasSubstr("no memory"));
}

TEST(SessionTest, ClosingEndsItAtAnyMoment) {
  for (const Kind kind : {Kind::kBind, Kind::kCompute, Kind::kStep}) {
    Descent descent(LineOf(1000));
    descent.Until(kind);
    descent.session().End("enough");
    EXPECT_FALSE(descent.session().Reply({}).ok());
  }
  const Descent at_once(LineOf(1000));
}

TEST(SessionTest, AStopIsAtARoundsEdge) {
  Descent descent(LineOf(1000));
  descent.Until(Kind::kStep);
  descent.session().RequestStop("enough");

  const Request& end = descent.Until(Kind::kEnd);

  EXPECT_TRUE(end.end.ok()) << end.end;
  EXPECT_THAT(end.reason, HasSubstr("enough"));
  EXPECT_LE(descent.session().standing().rounds, 3u);
}

TEST(SessionTest, CallsInTheWrongPlaceAreRefusedAndChangeNothing) {
  Descent descent(LineOf(8));
  const auto refused = [&](const absl::Status& status) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  };
  refused(descent.session().Reply({}));
  refused(descent.session().SegmentReady(0));
  const Request& asked = descent.Until(Kind::kCompute);
  EXPECT_TRUE(asked.last_of_round);
  EXPECT_EQ(asked.early_segments, 0u) << "nobody waits for any";
  refused(descent.session().SegmentReady(0));
  descent.Compute(asked);
  refused(descent.session().Reply({}));

  EXPECT_EQ(descent.Until(Kind::kEnd).reason, "1 epoch completed");
  refused(descent.session().Reply({}));
  EXPECT_EQ(descent.x(), 0.75f);
}

TEST(SessionTest, NothingIsAskedWhileTheProgramWorks) {
  Descent descent(LineOf(8));
  descent.Until(Kind::kCompute);
  ASSERT_TRUE(descent.session().Reply({}).ok());
  descent.Until(Kind::kEnd);
  EXPECT_EQ(descent.session().Await(Seconds(0)).value()->kind, Kind::kEnd);
}

// A program may train in a thread of its own, but not in two at once.
TEST(SessionTest, OneThreadAtATimeCallsWhicheverItIs) {
  Descent descent(LineOf(8));
  std::thread([&] { descent.Until(Kind::kCompute); }).join();
  std::thread([&] { descent.Until(Kind::kStep); }).join();
  EXPECT_EQ(descent.Until(Kind::kEnd).reason, "1 epoch completed");
  EXPECT_EQ(descent.x(), 0.75f);

  auto agent = std::make_unique<SilentAgent>(worker::StartMessage{});
  std::future<worker::ReadyMessage> ready = agent->ready();
  Descent member(MemberOf(10), std::move(agent));
  ASSERT_EQ(member.Until(Kind::kBind).kind, Kind::kBind);
  ASSERT_TRUE(member.session().Reply({}).ok());
  std::thread waits([&] { EXPECT_EQ(member.session().Await(Seconds(1)).value(), nullptr); });
  ready.wait();  // within that call
  const absl::Status refused = member.session().Await(Seconds(1)).status();
  waits.join();

  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("another thread is in a call"));
}

TEST(SessionTest, ADeviceThatIsNoneIsNamed) {
  Program program = LineOf(8);
  program.device = "cpu:nine";
  Descent descent(program);
  EXPECT_THAT(std::string(descent.Until(Kind::kEnd).end.message()), HasSubstr("cpu:nine"));
}

// ---- Of a group that an agent tells it of

TEST(SessionTest, WhatAProgramIsComesBeforeTheGroupAndNothingHangsWhereNoneComes) {
  auto agent = std::make_unique<SilentAgent>(worker::StartMessage{});
  std::future<worker::ReadyMessage> ready = agent->ready();
  Descent descent(MemberOf(10), std::move(agent));
  ASSERT_EQ(descent.Until(Kind::kBind).kind, Kind::kBind);
  ASSERT_TRUE(descent.session().Reply({}).ok());
  // It comes back in between, as the worker looks whether it is told to go.
  for (int turn = 0; turn < 1000 && ready.wait_for(Seconds(0)) != std::future_status::ready;
       ++turn) {
    EXPECT_EQ(descent.session().Await(Seconds(0)).value(), nullptr) << "no group has come";
  }
  ASSERT_EQ(ready.wait_for(Seconds(0)), std::future_status::ready);
  const std::optional<protocol::ProgramFacts> facts = ready.get().program;

  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->batch, 4u);
  EXPECT_EQ(facts->optimizer, "sgd");
  EXPECT_EQ(facts->momentum, 0.9);
  EXPECT_EQ(facts->clip_norm, 2);
  EXPECT_NE(facts->hash, 0u);
  descent.session().End("enough");
}

TEST(SessionTest, AMemberSaysWhenItEnds) {
  Program program = MemberOf(10);
  program.stop = {};
  auto agent = std::make_unique<SilentAgent>(worker::StartMessage{});
  std::future<worker::FailedMessage> failed = agent->failed();
  Descent descent(program, std::move(agent));
  EXPECT_FALSE(descent.Until(Kind::kEnd).end.ok());
  ASSERT_EQ(failed.wait_for(Seconds(0)), std::future_status::ready);

  const worker::FailedMessage message = failed.get();
  EXPECT_EQ(message.field, "stop");
  EXPECT_THAT(message.message, HasSubstr("members end together: give epochs="));
}

}  // namespace
}  // namespace tactus::sdk
