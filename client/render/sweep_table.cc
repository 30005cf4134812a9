#include "client/render/sweep_table.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <limits>
#include <set>
#include <string_view>
#include <vector>

#include "client/render/progress_view.h"
#include "client/text/text.h"

namespace tactus::client {
namespace {

std::optional<double> ValidationLoss(const v1::Job& job) {
  const v1::ValidationProgress& validation = job.progress().validation();
  if (validation.has_best()) return validation.best().loss();
  if (job.result().validation().samples() > 0) return job.result().validation().loss();
  return std::nullopt;
}

// Paths of the fields that the sweep goes over, sorted.
std::set<std::string> FieldsOf(const v1::ListJobsResponse& jobs) {
  std::set<std::string> fields;
  for (const v1::Job& job : jobs.jobs()) {
    for (const auto& [key, value] : job.labels()) {
      const std::string_view prefix = kSweptPrefix;
      if (key.starts_with(prefix)) fields.insert(key.substr(prefix.size()));
    }
  }
  return fields;
}

std::string LastWord(const std::string& path) { return path.substr(path.rfind('.') + 1); }

// The last word of the path, where no other has the same.
std::string HeadOf(const std::string& path, const std::set<std::string>& paths) {
  const std::string word = LastWord(path);
  const auto same = std::ranges::count_if(
      paths, [&](const std::string& other) { return LastWord(other) == word; });
  std::string head = same > 1 ? path : word;
  std::ranges::transform(head, head.begin(), [](unsigned char c) { return std::toupper(c); });
  return head;
}

}  // namespace

std::optional<double> LossToCompare(const v1::Job& job) {
  const bool trained = job.progress().rounds() > 0;
  const double loss = ValidationLoss(job).value_or(
      trained ? job.progress().loss() : std::numeric_limits<double>::quiet_NaN());
  return std::isfinite(loss) ? std::optional(loss) : std::nullopt;
}

void SortByLoss(v1::ListJobsResponse* jobs) {
  const auto rank = [](const v1::Job& job) {
    return LossToCompare(job).value_or(std::numeric_limits<double>::infinity());
  };
  std::stable_sort(
      jobs->mutable_jobs()->begin(), jobs->mutable_jobs()->end(),
      [&](const v1::Job& one, const v1::Job& other) { return rank(one) < rank(other); });
}

std::string RenderSweep(const v1::ListJobsResponse& jobs, Look look) {
  if (look.format != OutputFormat::kTable && look.format != OutputFormat::kWide) {
    return Render(jobs, look);
  }
  const std::set<std::string> fields = FieldsOf(jobs);
  std::vector<std::vector<std::string>> rows = {{"JOB", "STATE"}};
  for (const std::string& field : fields) rows[0].push_back(HeadOf(field, fields));
  rows[0].insert(rows[0].end(), {"ROUNDS", "LOSS", "VALIDATION LOSS"});
  for (const v1::Job& job : jobs.jobs()) {
    const bool trained = job.progress().rounds() > 0;
    std::vector<std::string>& row = rows.emplace_back();
    row = {Printable(ShortName(job.name())), StateName(job.state())};
    for (const std::string& field : fields) {
      const auto found = job.labels().find(kSweptPrefix + field);
      row.push_back(found == job.labels().end() ? "-" : Printable(found->second));
    }
    const std::optional<double> validation = ValidationLoss(job);
    row.insert(row.end(), {trained ? FormatCount(job.progress().rounds()) : "-",
                           trained ? FormatLoss(job.progress().loss()) : "-",
                           validation ? FormatLoss(*validation) : "-"});
  }
  return FormatTable(rows, [&](std::size_t row, std::size_t column) {
    const bool state = look.colour && row > 0 && column == 1;
    return state ? StateCode(rows[row][column]) : std::string();
  });
}

}  // namespace tactus::client
