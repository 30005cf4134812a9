#include "coordinator/store/integrity.h"

#include <set>
#include <utility>

#include "coordinator/codec/record_codec.h"
#include "coordinator/store/job_columns.h"

namespace tactus::store {
namespace {

constexpr std::size_t kProblemsMax = 1000;

class Inspection {
 public:
  explicit Inspection(Statements& statements) : statements_(statements) {}

  void CheckFile();
  void CheckJobs();
  void CheckSetAside();
  void CheckRounds();
  void CheckValidations();
  void CheckDecisions();
  void CheckNodes();
  void CheckMemories();

  std::vector<std::string> TakeProblems() { return std::move(problems_); }

 private:
  // Reads the rows of a query; a failure of the query itself is a problem as well.
  template <typename Read>
  void Look(const char* what, const char* sql, const Read& read) {
    const absl::StatusOr<Statement*> query = statements_.Bind(sql);
    absl::Status status = query.status();
    if (status.ok()) {
      status = ForEachRow(**query, [&](const Statement& row) {
        read(row);
        return problems_.size() < kProblemsMax ? absl::OkStatus()
                                               : absl::ResourceExhaustedError("and more problems");
      });
    }
    if (!status.ok()) Say(what, std::string(status.message()));
  }

  void Say(const std::string& what, const std::string& problem) {
    problems_.push_back(what + ": " + problem);
  }
  // A problem when the record cannot be read or belongs to another row.
  template <typename T>
  void Expect(const std::string& what, const absl::StatusOr<T>& record, bool same_row) {
    if (!record.ok()) return Say(what, std::string(record.status().message()));
    if (!same_row) Say(what, "the record and the columns of its row differ");
  }
  // Says once of a job that it is not there.
  void ExpectJob(const char* what, std::int64_t job) {
    if (known_.contains(job) || !missing_.emplace(what, job).second) return;
    Say(std::string(what) + " of job " + std::to_string(job), "there is no such job");
  }

  Statements& statements_;
  std::vector<std::string> problems_;
  std::set<std::int64_t> known_;  // jobs that are there, and those of which only history is left
  std::set<std::pair<std::string, std::int64_t>> missing_;
};

void Inspection::CheckFile() {
  const absl::StatusOr<std::vector<std::string>> found = statements_.database().CheckFile();
  if (!found.ok()) return Say("file", std::string(found.status().message()));
  for (const std::string& problem : *found) Say("file", problem);
}

void Inspection::CheckJobs() {
  Look("forgotten jobs", "SELECT job FROM forgotten",
       [this](const Statement& row) { known_.insert(row.ColumnInt(0)); });
  Look("jobs", "SELECT id, name, state, is_final, priority, create_time, labels, record FROM jobs",
       [this](const Statement& row) {
         known_.insert(row.ColumnInt(0));
         const auto record = codec::DecodeJob(row.ColumnBytes(7));
         const bool same = record.ok() && Signed(record->id.value) == row.ColumnInt(0) &&
                           record->name == row.ColumnBytes(1) &&
                           static_cast<std::int64_t>(record->state) == row.ColumnInt(2) &&
                           job::IsFinal(record->state) == (row.ColumnInt(3) == 1) &&
                           record->settings.priority == row.ColumnInt(4) &&
                           record->create_time == row.ColumnInt(5) &&
                           PackLabels(record->labels) == row.ColumnBytes(6);
         Expect("job " + std::to_string(row.ColumnInt(0)), record, same);
       });
}

void Inspection::CheckSetAside() {
  Look("jobs that were set aside", "SELECT id, name, reason FROM set_aside ORDER BY id",
       [this](const Statement& row) {
         known_.insert(row.ColumnInt(0));
         Say("job " + std::to_string(row.ColumnInt(0)),
             row.ColumnBytes(1) + " was set aside: " + row.ColumnBytes(2));
       });
}

void Inspection::CheckRounds() {
  Look("rounds", "SELECT job, round, record FROM rounds", [this](const Statement& row) {
    const auto record = codec::DecodeRound(row.ColumnBytes(2));
    const bool same = record.ok() && Signed(record->job.value) == row.ColumnInt(0) &&
                      Signed(record->round) == row.ColumnInt(1);
    Expect(
        "round " + std::to_string(row.ColumnInt(1)) + " of job " + std::to_string(row.ColumnInt(0)),
        record, same);
    ExpectJob("rounds", row.ColumnInt(0));
  });
}

void Inspection::CheckValidations() {
  Look("validations", "SELECT job, rounds, record FROM validations", [this](const Statement& row) {
    const auto record = codec::DecodeValidation(row.ColumnBytes(2));
    const bool same = record.ok() && Signed(record->job.value) == row.ColumnInt(0) &&
                      Signed(record->rounds) == row.ColumnInt(1);
    Expect("validation after round " + std::to_string(row.ColumnInt(1)) + " of job " +
               std::to_string(row.ColumnInt(0)),
           record, same);
    ExpectJob("validations", row.ColumnInt(0));
  });
}

void Inspection::CheckDecisions() {
  Look("decisions", "SELECT job, plan_version, axis, record FROM decisions",
       [this](const Statement& row) {
         const auto record = codec::DecodeDecision(row.ColumnBytes(3));
         const bool same = record.ok() && Signed(record->job.value) == row.ColumnInt(0) &&
                           Signed(record->decision.plan_version) == row.ColumnInt(1) &&
                           static_cast<std::int64_t>(record->decision.axis) == row.ColumnInt(2);
         Expect("decision " + std::to_string(row.ColumnInt(1)) + " of job " +
                    std::to_string(row.ColumnInt(0)),
                record, same);
         ExpectJob("decisions", row.ColumnInt(0));
       });
}

// What they say is the planner's to judge, who learns anew where it cannot be read.
void Inspection::CheckMemories() {
  Look("memories", "SELECT job FROM memories",
       [this](const Statement& row) { ExpectJob("memory", row.ColumnInt(0)); });
}

void Inspection::CheckNodes() {
  Look("nodes", "SELECT name, record FROM nodes", [this](const Statement& row) {
    const auto record = codec::DecodeNode(row.ColumnBytes(1));
    Expect("node " + row.ColumnBytes(0), record, record.ok() && record->name == row.ColumnBytes(0));
  });
}

}  // namespace

std::vector<std::string> FindProblems(Statements& statements) {
  Inspection inspection(statements);
  inspection.CheckFile();
  inspection.CheckJobs();
  inspection.CheckSetAside();
  inspection.CheckRounds();
  inspection.CheckValidations();
  inspection.CheckDecisions();
  inspection.CheckNodes();
  inspection.CheckMemories();
  return inspection.TakeProblems();
}

}  // namespace tactus::store
