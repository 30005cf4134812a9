// What a test may ask of the double of NCCL besides NCCL's own calls.

#pragma once

#include <string>
#include <vector>

#include "tests/support/nccl_double/nccl.h"

namespace tactus::nccl_double {

// Starts anew: nothing injected, nothing counted. All communicators have been freed.
void Reset();

// The version from now on, 22809 at first.
void SetVersion(int version);

// Lets the nth call of `function` from now, by whichever member, counted from 1, fail with `error`
// and do nothing. An abort that fails frees the communicator and leaves running what runs.
void FailCall(const std::string& function, int nth, ncclResult_t error);

// Lets it hang, in the call, until Release.
void HangCall(const std::string& function, int nth);

// Lets an abort of that rank hang, in the call, until Release.
void HangAbort(int rank);

// From now on an abort ends only when that many have begun, as one may wait for another's kernels.
void MeetInAbort(int count);

// All communicators of that rank have an asynchronous error from now on.
void FailRank(int rank, ncclResult_t error);

// The device of that rank begins no collective until Release, as with a peer that hangs.
void StallRank(int rank);

// The device of that rank begins each collective only when it was tried that many times.
void SlowRank(int rank, int tries);

// From now on an all-reduce that is aborted on a device that had begun it leaves the back half of
// its buffer as if all members had put in the same, and the front half as it was.
void TearAborted();

// That rank does not register memory from now on, and says that all went well, as NCCL does where
// its environment forbids it.
void DoNotRegister(int rank);

// How often a communicator must be asked before it says that a call has been done, 1 at first.
void SetPolls(int polls);

// Ends all hangs and stalls.
void Release();

// How many calls of `function` there were since Reset, and how many are hanging.
int Calls(const std::string& function);
int Hanging();

// What NCCL forbids and yet was done, in order: different collectives met, a send outside of a
// group, a call while another is in progress or after the communicator is freed, a communicator
// finalized after an error; memory registered with one member of a collective and not with another,
// deregistered twice or in use, freed while it is registered, or left so by ncclCommDestroy.
std::vector<std::string> Complaints();

// Communicators that were begun and are not freed.
int Communicators();

}  // namespace tactus::nccl_double
