#include "tests/coordinator/spec/rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "coordinator/spec/spec_validation.h"

namespace tactus::spec {

v1::JobSpec TextSpec() {
  v1::JobSpec spec;
  spec.set_name("shakespeare");
  spec.mutable_model()->set_builtin("bytes-lm");
  spec.mutable_data()->set_text("/corpus.txt");
  spec.mutable_stop()->set_epochs(2);
  return spec;
}

void PrintTo(const Rule& rule, std::ostream* out) { *out << rule.name; }

void ExpectReportedAtItsField(const Rule& rule) {
  v1::JobSpec spec = TextSpec();
  rule.break_it(spec);

  const std::vector<runtime::FieldViolation> violations = SpecViolations(spec);

  ASSERT_EQ(violations.size(), 1u) << spec.DebugString();
  EXPECT_EQ(violations[0].field, rule.field);
  EXPECT_THAT(violations[0].description, testing::HasSubstr(rule.says));
}

}  // namespace tactus::spec
