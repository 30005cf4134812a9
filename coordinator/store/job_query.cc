#include "coordinator/store/job_query.h"

#include "coordinator/store/statements.h"

namespace tactus::store {
namespace {

const char* ColumnOf(JobField field) {
  switch (field) {
    case JobField::kState:
      return "state";
    case JobField::kName:
      return "name";
    case JobField::kPriority:
      return "priority";
    case JobField::kCreateTime:
      return "create_time";
    case JobField::kUpdateTime:
      return "update_time";
    case JobField::kLabel:
      return "job_label(labels, ?)";
  }
  return "";
}

const char* SignOf(Comparison comparison) {
  switch (comparison) {
    case Comparison::kEqual:
      return " = ?";
    case Comparison::kNotEqual:
      return " <> ?";
    case Comparison::kLess:
      return " < ?";
    case Comparison::kLessOrEqual:
      return " <= ?";
    case Comparison::kGreater:
      return " > ?";
    case Comparison::kGreaterOrEqual:
      return " >= ?";
  }
  return "";
}

bool IsText(JobField field) { return field == JobField::kName || field == JobField::kLabel; }

std::string SqlOf(const JobSelection& selection) {
  const std::string column = ColumnOf(selection.order.field);
  const std::string direction = selection.order.descending ? " DESC" : "";
  std::string sql = "SELECT id FROM jobs WHERE 1 = 1";
  for (const JobCondition& condition : selection.conditions) {
    sql += std::string(" AND ") + ColumnOf(condition.field) + SignOf(condition.comparison);
  }
  // The id breaks ties, or jobs with one value would be repeated or skipped where a page ends.
  if (selection.after) {
    sql += " AND (" + column + ", id) " + (selection.order.descending ? "<" : ">") + " (?, ?)";
  }
  return sql + " ORDER BY " + column + direction + ", id" + direction + " LIMIT ?";
}

}  // namespace

PagePosition JobPosition(const JobOrder& order, const job::JobRecord& record) {
  PagePosition position{.number = 0, .second = Signed(record.id.value), .text = {}};
  switch (order.field) {
    case JobField::kName:
      position.text = record.name;
      break;
    case JobField::kPriority:
      position.number = record.settings.priority;
      break;
    case JobField::kUpdateTime:
      position.number = record.update_time;
      break;
    default:
      position.number = record.create_time;
  }
  return position;
}

absl::StatusOr<std::unique_ptr<Statement>> SelectJobIds(Database& database,
                                                        const JobSelection& selection) {
  absl::StatusOr<std::unique_ptr<Statement>> prepared =
      database.Prepare(SqlOf(selection), Database::Use::kOnce);
  if (!prepared.ok()) return prepared;
  Statement* const query = prepared->get();
  // In the order of the question marks that SqlOf() wrote.
  int parameter = 0;
  for (const JobCondition& condition : selection.conditions) {
    if (condition.field == JobField::kLabel) query->BindText(++parameter, condition.label);
    if (IsText(condition.field)) {
      query->BindText(++parameter, condition.text);
    } else {
      query->BindInt(++parameter, condition.number);
    }
  }
  if (selection.after) {
    if (IsText(selection.order.field)) {
      query->BindText(++parameter, selection.after->text);
    } else {
      query->BindInt(++parameter, selection.after->number);
    }
    query->BindInt(++parameter, selection.after->second);
  }
  query->BindInt(++parameter, selection.rows_max);
  return prepared;
}

}  // namespace tactus::store
