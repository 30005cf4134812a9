// Events and actions as text, and scripts of them that are compared with files in tests/golden.

#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/time.h"
#include "coordinator/job/actions.h"
#include "coordinator/job/cluster.h"

namespace tactus::job {

std::string Describe(const Event& event);
std::string Describe(const Action& action);

// Runs a cluster and writes down all that goes in and comes out.
class Transcript {
 public:
  Transcript();

  // A line of prose.
  void Note(const std::string& text);

  Actions Step(double seconds, const Event& event);

  // A new coordinator takes up what the old one wrote last.
  void Restart(double seconds);

  // Fails the test unless the transcript equals tests/golden/coordinator/<name>.txt. With
  // TACTUS_REWRITE_GOLDEN set, writes that file instead: read the difference before committing it.
  void ExpectGolden(const std::string& name) const;

 private:
  void Write(const Actions& actions);

  std::unique_ptr<Cluster> cluster_;
  std::map<JobId, JobRecord> store_;
  std::map<JobId, MemoryRecord> memories_;
  std::map<std::string, PriorRecord> priors_;
  std::string text_;
};

}  // namespace tactus::job
