// A worker's life: load, meet the group, train, evaluate, write the result. A group is a part of
// it: where one falls apart, the life goes on in the next one from the last round that was applied.

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/life/failure.h"
#include "agent/life/mail.h"
#include "agent/life/running_checkpoints.h"
#include "agent/life/world.h"
#include "base/time.h"
#include "protocol/worker_messages.h"

namespace tactus::life {

// The sequence and what is decided in it: what is said when, and of whom a failure is. What is done
// is its world's, the worker process or a simulated one. One thread.
class Life {
 public:
  // Both outlive it.
  Life(Mail& mail, World& world) : mail_(mail), world_(world) {}

  // Runs to the end. What went wrong is said as the last word and returned.
  std::optional<protocol::FailedMessage> Run();

 private:
  // The phases, in their order. Each needs what those before it left in the members below; one that
  // finds itself asked to leave sets left_ and succeeds.

  // All of them; the first failure ends the life, if it is not the group's.
  std::optional<Failure> RunToEnd();
  std::optional<Failure> Load();
  // Waits for a group newer than the one before; refuses one whose plan does not fit it.
  std::optional<Failure> AwaitGroup();
  // From meeting it to the end.
  std::optional<Failure> LiveInGroup();
  std::optional<Failure> Meet();
  // Of the generation that is met; those of former ones are left unread.
  std::vector<std::string> ExchangeEndpoints(std::string own);
  std::string WhyGiveUp();
  // Takes what has come, without waiting.
  bool IsToLeave();
  // A message that comes while there is no training.
  void Note(const protocol::ToWorker& message);
  void NoteGroup(const protocol::GroupMessage& group);
  // It is lost: leaves it and says so.
  void LeaveGroup(const Failure& failure);
  // Rounds until the engine says that it is over. Reports leave and messages are taken between two
  // batches, never within one.
  std::optional<Failure> Train();
  // Who is found wrong is made right, and of those who were the lowest rank says so.
  void Compare();
  // At the edges where all members know that it is due. A failure ends training.
  std::optional<Failure> StandWhereDue();
  std::optional<Failure> ValidateWhereDue();
  std::optional<Failure> ChooseWhereDue();
  // Counts it and tells of it. What it was of is kept, where that is the best so far.
  void TakeValidation(engine::Validation validation);
  // Of rank 0, where they are wanted.
  void OpenCheckpoints();
  void Report();
  // Plans and requests to stop that have come, without waiting. A newer group ends this one.
  void TakeMessages();
  void LookForLoss();
  // While it trains; the engine says the rest.
  void GiveUpGroup(const std::string& reason);
  std::optional<Failure> EndTraining();
  bool EndsByItself() const;
  void KeepEnd();
  // Evaluates and writes results, a checkpoint instead where the job is suspended, nothing where it
  // is discarded. All members evaluate; rank 0 alone writes.
  std::optional<Failure> Conclude();
  // Before there is a result: they compare, or, where members on unlike devices may differ in last
  // bits, take rank 0's parameters.
  std::optional<Failure> AgreeOnParameters();
  Failure LossOfGroup() const;
  std::optional<Failure> ConcludeSuspended(protocol::FinishedMessage finished);
  std::optional<Failure> ConcludeFinished(protocol::FinishedMessage finished);
  // At training's end; not again where the last edge was validated.
  OrFailure<engine::Validation> ValidateEnd();
  bool ResultIsFormer() const;
  protocol::EvaluatedMessage EvaluationOfResult(const engine::Validation& at_end) const;
  std::optional<Failure> KeepResult(protocol::FinishedMessage& finished,
                                    const protocol::EvaluatedMessage& evaluated);
  // What is known of training at its end.
  protocol::FinishedMessage Facts() const;

  engine::RoundEngine& engine() const { return met_->engine; }

  Mail& mail_;
  World& world_;
  Loaded loaded_;
  protocol::GroupMessage group_;                      // the last one, maybe left
  std::optional<protocol::GroupMessage> next_group_;  // that came before this one was left
  std::optional<Met> met_;                            // while it is in the group
  std::uint64_t rounds_ = 0;                          // applied, when the last group was left
  std::unique_ptr<RunningCheckpoints> checkpoints_;   // null: none are taken
  bool left_ = false;                                 // asked to leave before training began
  bool has_lost_ = false;                             // a group that it was in
};

}  // namespace tactus::life
