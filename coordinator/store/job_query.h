// A listing of jobs as SQL.

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/job/records.h"
#include "coordinator/store/database.h"
#include "coordinator/store/job_filter.h"
#include "coordinator/store/page_token.h"

namespace tactus::store {

// What a page of jobs is made of.
struct JobSelection {
  std::vector<JobCondition> conditions{};
  JobOrder order{};
  std::optional<PagePosition> after{};  // JobPosition of the last job of the former page
  int rows_max = 1;
};

// A job's place in the order: the ordered column as a number or a text, and the id as `second`.
PagePosition JobPosition(const JobOrder& order, const job::JobRecord& record);

// Bound and ready to be stepped: the column `id` of the jobs, in order.
absl::StatusOr<std::unique_ptr<Statement>> SelectJobIds(Database& database,
                                                        const JobSelection& selection);

}  // namespace tactus::store
