// How fast nodes' links are, for jobs' first plans: as workers measured them while they trained, or
// agents before.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "coordinator/job/actions.h"
#include "coordinator/job/priors.h"
#include "coordinator/job/records.h"
#include "protocol/worker_messages.h"

namespace tactus::job {

// What is known of a node stands among the priors: what the others of a group together brought a
// worker there at once [bytes/s], as text. 0: the text says nothing of it.
std::string LinkKey(const std::string& node);
std::string BytesOfLink(double bytes_per_second);
double LinkOf(const std::string& bytes);

// By how much of what is known of a link it has to differ to be put anew.
inline constexpr double kLinkNews = 0.25;

// What a group measured so far, by rank. Not of a node with several members: what they bring each
// other is not over its link, and some of it may be in the figure. What changes is to be written.
void NoteLinks(const std::vector<MemberRecord>& members, const std::vector<WorkerProgress>& workers,
               Priors& priors, Actions& actions);

// What came of sending to a node; nothing where it is no rate. A busy agent makes a link look slow
// and none makes it look fast: of several measurements the fastest counts.
void NoteProbe(const std::string& node, double bytes_per_second, Priors& priors, Actions& actions);

// What is to be measured before the job's members form a group: of each node of whose link nothing
// is known what the group's next node sends it. Nothing where all are on one, or the job could not
// go by it.
std::vector<ProbeLink> UnknownLinks(const JobRecord& job, const Priors& priors);

// What is to be summed by a job's group.
struct Exchange {
  const JobRecord& job;          // with its members
  std::uint64_t parameters = 0;  // of the model
  TransportKind transport = TransportKind::kByDevice;
};

// What it should take, densely: of n members the k of a node get twice from each of the others an
// n-th of 4 bytes a parameter, over its link; the slowest node's. 0: of one of these nothing is
// known, or GPUs talk to each other, of whom nothing is measured, or all members are on one host,
// or the job could not go by it. [s]
double ExchangeSeconds(const Exchange& exchange, const Priors& priors);

}  // namespace tactus::job
