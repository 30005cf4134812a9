#include "coordinator/job/arrays.h"

namespace tactus::job {

std::string ArrayOf(const JobRecord& record) {
  const auto label = record.labels.find(kArrayLabel);
  const bool one = record.settings.workers_max == 1 && !record.settings.program;
  if (!one || record.settings.shape.empty() || label == record.labels.end()) return "";
  return label->second + "/" + record.settings.shape + "/" + record.owner;
}

}  // namespace tactus::job
