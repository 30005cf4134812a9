// How fast nodes' links are, as the workers of one job measured them, for the jobs that come after.

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

// What a group measured so far, by rank; of several members of a node the slowest counts: they
// share its link, as those of the next job will. What changes is to be written.
void NoteLinks(const std::vector<MemberRecord>& members, const std::vector<WorkerProgress>& workers,
               Priors& priors, Actions& actions);

// What was measured of a node that another sent to; nothing where it is no rate.
void NoteLink(const std::string& node, double bytes_per_second, Priors& priors, Actions& actions);

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

// What it should take, densely: each of n members gets 1 - 1/n of 4 bytes a parameter twice, over
// the slowest of their links. 0: of one of these nothing is known, or GPUs talk to each other, of
// whom nothing is measured, or all members are on one host, or the job could not go by it. [s]
double ExchangeSeconds(const Exchange& exchange, const Priors& priors);

}  // namespace tactus::job
