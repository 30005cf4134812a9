#include "tests/agent/engine/survivors.h"

#include <optional>
#include <thread>
#include <utility>

#include "agent/collective/in_process.h"
#include "gtest/gtest.h"

namespace tactus::engine {

using collective::Transport;

namespace {

// Tells its member from some moment on that what was combined has failed, as where the connection
// breaks with the last bytes: the others have applied it.
class TornTransport : public Transport {
 public:
  explicit TornTransport(std::unique_ptr<Transport> inner) : inner_(std::move(inner)) {}

  void Tear() { torn_ = true; }

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  std::unique_ptr<collective::Collective> Start(const collective::Operation& operation) override {
    const bool combines = operation.kind != collective::Operation::Kind::kBarrier;
    if (!torn_ || !combines) return inner_->Start(operation);
    return std::make_unique<Torn>(inner_->Start(operation));
  }
  void Abort(const std::string& reason) override { inner_->Abort(reason); }

 private:
  class Torn : public collective::Collective {
   public:
    explicit Torn(std::unique_ptr<collective::Collective> inner) : inner_(std::move(inner)) {}

    collective::Progress Poll() override {
      const bool running = inner_->Poll() == collective::Progress::kRunning;
      return running ? collective::Progress::kRunning : collective::Progress::kFailed;
    }
    collective::Completion Wait() override {
      collective::Completion completion = inner_->Wait();
      completion.progress = collective::Progress::kFailed;
      completion.reason = "torn";
      return completion;
    }

   private:
    const std::unique_ptr<collective::Collective> inner_;
  };

  const std::unique_ptr<Transport> inner_;
  bool torn_ = false;  // its member's thread
};

}  // namespace

std::vector<std::unique_ptr<Transport>> NewGroup(std::size_t size) {
  return collective::MakeInProcessGroup(static_cast<int>(size), SurvivorTime);
}

void Train(std::vector<Survivor*>& members, const Stage& stage) {
  TrainOver(NewGroup(members.size()), members, stage);
}

void TrainOver(std::vector<std::unique_ptr<Transport>> transports, std::vector<Survivor*>& members,
               const Stage& stage) {
  std::vector<std::uint64_t> rounds;
  for (Survivor* const each : members) rounds.push_back(each->member().rounds);
  if (!stage.told_of_rounds) rounds.clear();
  std::vector<std::optional<Outcome>> outcomes(members.size());
  {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < members.size(); ++rank) {
      threads.emplace_back([&, rank] {
        Transport& transport = *transports[rank];
        outcomes[rank] = members[rank]->TrainIn(
            transport, stage.plan, rounds, stage.before_step,
            [&](RoundEngine& engine) { stage.after_step(engine, transport); });
        const bool together =
            outcomes[rank] == Outcome::kFinished || outcomes[rank] == Outcome::kRegrouped;
        if (!together) transports[rank].reset();
      });
    }
  }
  std::vector<Survivor*> alive;
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    if (outcomes[rank]) alive.push_back(members[rank]);
  }
  members = alive;
}

Members::Members(const EngineOptions& options, std::size_t count, std::size_t length) {
  for (std::size_t i = 0; i < count; ++i) {
    all_.push_back(std::make_unique<Survivor>(options, cuda::MakeHostDevice("cpu:0"), length));
  }
}

std::vector<Survivor*> Members::Everybody() const {
  std::vector<Survivor*> everybody;
  for (const auto& each : all_) everybody.push_back(each.get());
  return everybody;
}

Survivor::BeforeStep AbortIn(std::uint64_t rounds, int rank) {
  return [=](RoundEngine& engine, Transport& transport) {
    if (transport.rank() == rank && engine.rounds() == rounds) transport.Abort("told to");
    return true;
  };
}

Survivor::BeforeStep DieIn(std::uint64_t rounds, int rank) {
  return [=](RoundEngine& engine, Transport& transport) {
    return transport.rank() != rank || engine.rounds() != rounds;
  };
}

AfterEach LoseAfter(std::uint64_t rounds, const Batches& batches) {
  auto left = std::make_shared<Batches>(batches);  // each thread has its own of them
  return [=](RoundEngine& engine, Transport& transport) {
    if (engine.rounds() != rounds || engine.at_edge()) return;
    if (engine.outcome() != Outcome::kTraining) return;
    if (--(*left)[static_cast<std::size_t>(transport.rank())] > 0) return;
    transport.Abort("told to");
    engine.LoseGroup("told to");
  };
}

void TrainTorn(std::vector<Survivor*>& members, Stage stage, const Tear& tear) {
  std::vector<std::unique_ptr<Transport>> transports = NewGroup(members.size());
  std::vector<TornTransport*> ends;
  for (std::unique_ptr<Transport>& transport : transports) {
    auto end = std::make_unique<TornTransport>(std::move(transport));
    ends.push_back(end.get());
    transport = std::move(end);
  }
  stage.before_step = [&, before = stage.before_step](RoundEngine& engine, Transport& transport) {
    const auto rank = static_cast<std::size_t>(transport.rank());
    if (tear.ranks[rank] && engine.rounds() == tear.rounds) ends[rank]->Tear();
    return before(engine, transport);
  };
  TrainOver(std::move(transports), members, stage);
}

void ExpectAlike(const std::vector<Survivor*>& members) {
  for (const Survivor* const each : members) {
    EXPECT_EQ(each->parameters(), members[0]->parameters());
  }
  for (Survivor* const each : members) {
    EXPECT_EQ(each->member().rounds, members[0]->member().rounds);
    EXPECT_EQ(each->State().ledger, members[0]->State().ledger);
    EXPECT_EQ(each->State().losses, members[0]->State().losses);
    EXPECT_FALSE(each->member().window.has_value());
  }
}

}  // namespace tactus::engine
