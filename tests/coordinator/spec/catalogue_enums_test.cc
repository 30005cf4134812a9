// The enums of the API against the catalogue: neither has what the other has not.

#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "coordinator/spec/field_rules.h"
#include "policies/catalogue.h"
#include "tactus/v1/jobs.pb.h"
#include "tactus/v1/spec.pb.h"

namespace tactus::spec {
namespace {

using google::protobuf::EnumDescriptor;

// The values but the first, "..._UNSPECIFIED", in lower case and without the prefix.
std::vector<std::string> NamesOf(const EnumDescriptor& type) {
  const std::size_t prefix = type.value(0)->name().size() - std::string("UNSPECIFIED").size();
  std::vector<std::string> names;
  for (int i = 1; i < type.value_count(); ++i) {
    std::string name = type.value(i)->name().substr(prefix);
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
    names.push_back(name);
  }
  return names;
}

TEST(CatalogueEnumsTest, TheAxesAreThoseOfTheApiInItsOrder) {
  EXPECT_EQ(NamesOf(*v1::Axis_descriptor()),
            std::vector<std::string>(policies::kAxisFields.begin(), policies::kAxisFields.end()));
  for (const policies::Axis axis : policies::kAxes) {
    const int number = static_cast<int>(axis) + v1::AXIS_BATCH;
    EXPECT_EQ(v1::Axis_descriptor()->value(number)->number(), number);
  }
}

TEST(CatalogueEnumsTest, EveryAxisOfAJobFileHasThePoliciesOfTheCatalogue) {
  for (const policies::Axis axis : policies::kAxes) {
    const std::string field(policies::FieldOf(axis));
    SCOPED_TRACE(field);
    const auto* section = v1::Adapt::descriptor()->FindFieldByName(field);
    ASSERT_NE(section, nullptr);
    const auto* policy = section->message_type()->FindFieldByName("policy");
    ASSERT_NE(policy, nullptr);
    std::set<std::string> names;
    for (const policies::Policy& row : policies::PoliciesOf(axis)) names.emplace(row.name);

    const std::vector<std::string> of_api = NamesOf(*policy->enum_type());
    EXPECT_EQ(std::set<std::string>(of_api.begin(), of_api.end()), names);
  }
}

TEST(CatalogueEnumsTest, EveryFieldOfAnAxisIsOfPoliciesOfTheCatalogue) {
  for (const policies::Axis axis : policies::kAxes) {
    const auto* section =
        v1::Adapt::descriptor()->FindFieldByName(std::string(policies::FieldOf(axis)));
    for (const std::string& variant : VariantsOf(*section->message_type())) {
      EXPECT_NE(policies::FindPolicy(axis, variant), nullptr) << variant;
    }
  }
}

}  // namespace
}  // namespace tactus::spec
