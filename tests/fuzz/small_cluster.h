// The coordinator's core and its sessions, with one agent of two devices and one job on it: what a
// fuzzed message meets.

#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/time.h"
#include "coordinator/job/actions.h"
#include "coordinator/job/cluster.h"
#include "coordinator/shell/agent_sessions.h"
#include "tactus/agent/v1/session.pb.h"

namespace tactus::fuzz {

// How far the job has come when the message arrives.
enum class Stage { kStarting, kMeeting, kRunning, kFinishing, kSuspending };
constexpr unsigned kStages = 5;

// Holds these promises and stops the process where one is broken: a record that is persisted can be
// read again and be sent to a user; its revision grows and a final state is final; plans fit their
// group; what is said to an agent can be sent. Deterministic.
class SmallCluster {
 public:
  // The job "alpha-1", its workers 1 and 2 on the agent "a".
  explicit SmallCluster(Stage stage);
  ~SmallCluster();

  // The agent's first message of a new stream, or a later one of its present stream. False: the
  // stream was refused or closed.
  bool Open(const agent::v1::FromAgent& first);
  bool Say(const agent::v1::FromAgent& message);
  // Numbers a message that is to be the agent's next one.
  std::uint64_t NextSequence() { return ++sequence_; }

  // Calls `take` with the lines that agents send.
  void SetTakeLog(service::AgentSessions::TakeLog take);
  // Null: the job is over.
  const job::JobRecord* Find(const std::string& name) const;

  // Life goes on after the message: rounds, beats, a cancel, exits, deadlines. The job must end.
  void End();

 private:
  class Stream;

  void Bring(Stage stage);
  void SayOrdinarily(std::uint64_t worker, const v1::FromWorker& message);
  void ReportRound(std::uint64_t round);
  void Give(const job::Event& event);
  void Check(const job::Action& action);
  void Check(const job::JobRecord& record);

  double seconds_ = 0;
  job::Cluster cluster_;
  service::AgentSessions sessions_;
  std::shared_ptr<Stream> stream_;
  std::uint64_t sequence_ = 0;
  std::uint64_t generation_ = 1;
  std::map<JobId, job::JobRecord> persisted_;
};

}  // namespace tactus::fuzz
