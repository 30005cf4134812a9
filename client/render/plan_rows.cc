#include "client/render/plan_rows.h"

#include <google/protobuf/reflection.h>

#include <string>

namespace tactus::client {
namespace {

using google::protobuf::FieldDescriptor;

policies::PlanValue ValueOf(const v1::Plan& plan, const FieldDescriptor& field) {
  const google::protobuf::Reflection& reflection = *plan.GetReflection();
  if (field.is_repeated()) {
    const auto numbers = reflection.GetRepeatedFieldRef<std::uint32_t>(plan, &field);
    return std::vector<std::uint32_t>(numbers.begin(), numbers.end());
  }
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_UINT32)
    return reflection.GetUInt32(plan, &field);
  // Refers to the plan, which holds its texts as strings: nothing is copied here.
  std::string unused;
  return std::string_view(reflection.GetStringReference(plan, &field, &unused));
}

}  // namespace

std::vector<policies::PlanRow> RowsOf(const v1::Plan& plan) {
  std::vector<policies::PlanRow> rows = policies::RowsOf(policies::Plan{});
  for (policies::PlanRow& row : rows) {
    row.value = ValueOf(plan, *v1::Plan::descriptor()->FindFieldByName(std::string(row.name)));
  }
  return rows;
}

}  // namespace tactus::client
