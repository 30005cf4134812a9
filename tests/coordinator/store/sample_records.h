// Records for tests: one with every field set to something that is not its default, and small ones.

#pragma once

#include <cstdint>
#include <string>

#include "coordinator/job/records.h"

namespace tactus::store {

// What may stand for a SHA-256: `digit` 64 times.
std::string HashOf(char digit);

// Every field differs from its default; strings hold zeros and bytes that are not UTF-8.
job::JobRecord FullJob();

// Job `id` called "job-<id>", queued.
job::JobRecord SmallJob(std::uint64_t id);

job::RoundRecord Round(std::uint64_t job, std::uint64_t round);
job::DecisionRecord DecisionOf(std::uint64_t job, std::uint64_t plan, policies::Axis axis);

// Field by field.
void ExpectEqual(const job::JobRecord& found, const job::JobRecord& expected);
void ExpectEqual(const job::RoundRecord& found, const job::RoundRecord& expected);

}  // namespace tactus::store
