#include "client/render/error_lines.h"

#include "client/text/text.h"
#include "runtime/status.h"

namespace tactus::client {
namespace {

// Only where nobody answered: what a coordinator says has a reason and needs no guess.
std::string Advice(const absl::Status& status) {
  if (!runtime::ReasonOf(status).reason.empty()) return "";
  if (absl::IsUnavailable(status)) {
    return "; start tactus-coordinator, or give its address with --server, TACTUS_SERVER or a "
           "context";
  }
  if (absl::IsDeadlineExceeded(status)) return "; --request-timeout gives it longer";
  return "";
}

}  // namespace

std::vector<std::string> ErrorLines(const absl::Status& status, const std::string& subject) {
  const std::string prefix = subject.empty() ? "" : subject + ": ";
  std::vector<std::string> lines;
  for (const runtime::FieldViolation& violation : runtime::FieldViolations(status)) {
    const std::string field = violation.field.empty() ? "" : violation.field + ": ";
    lines.push_back(prefix + Printable(field + violation.description));
  }
  if (lines.empty()) {
    lines.push_back(prefix + Printable(std::string(status.message())) + Advice(status));
  }
  return lines;
}

ExitCode ReportError(const absl::Status& status, const Screen& screen, const std::string& subject) {
  screen.Say(ErrorLines(status, subject));
  return ExitCodeOf(status);
}

}  // namespace tactus::client
