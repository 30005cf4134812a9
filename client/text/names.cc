#include "client/text/names.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/ascii.h"

namespace tactus::client {
namespace {

// What others call it, where letters lead astray: "gpu" is nearer to "cpu".
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kOtherWords = {
    {{"gpu", "cuda"}, {"nvidia", "cuda"}, {"bf16", "bfloat16"}, {"fp32", "float32"}}};

// "BatchPolicy" is "batch_policy_".
std::string EnumPrefix(const google::protobuf::EnumDescriptor& type) {
  std::string prefix;
  for (const char c : type.name()) {
    if (absl::ascii_isupper(c) && !prefix.empty()) prefix += '_';
    prefix += absl::ascii_tolower(c);
  }
  return prefix + "_";
}

}  // namespace

std::size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

std::optional<std::string> NearestName(std::string_view word,
                                       const std::vector<std::string>& candidates) {
  constexpr std::size_t kWordMax = 100;  // nothing of ours is near to anything longer
  if (word.size() > kWordMax) return std::nullopt;
  const std::string lower = absl::AsciiStrToLower(std::string(word));
  for (const auto& [other, ours] : kOtherWords) {
    const bool known = std::ranges::find(candidates, ours) != candidates.end();
    if (lower == other && known) return std::string(ours);
  }
  std::size_t nearest = std::max<std::size_t>(1, word.size() / 3) + 1;
  std::optional<std::string> found;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = EditDistance(lower, candidate);
    if (distance >= nearest) continue;
    nearest = distance;
    found = candidate;
  }
  return found;
}

std::string JoinNames(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) {
    if (!out.empty()) out += ", ";
    out += name;
  }
  return out;
}

std::string QuoteNames(const std::vector<std::string>& names) {
  std::string out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) out += i + 1 == names.size() ? " and " : ", ";
    out += "'" + names[i] + "'";
  }
  return out;
}

std::string EnumValueName(const google::protobuf::EnumValueDescriptor& value) {
  const std::string name = absl::AsciiStrToLower(value.name());
  const std::string prefix = EnumPrefix(*value.type());
  return name.compare(0, prefix.size(), prefix) == 0 ? name.substr(prefix.size()) : name;
}

std::vector<std::string> EnumValueNames(const google::protobuf::EnumDescriptor& type) {
  std::vector<std::string> names;
  for (int i = 0; i < type.value_count(); ++i) {
    if (type.value(i)->number() != 0) names.push_back(EnumValueName(*type.value(i)));
  }
  return names;
}

const google::protobuf::EnumValueDescriptor* FindEnumValue(
    const google::protobuf::EnumDescriptor& type, std::string_view name) {
  for (int i = 0; i < type.value_count(); ++i) {
    const google::protobuf::EnumValueDescriptor* value = type.value(i);
    if (value->number() != 0 && EnumValueName(*value) == name) return value;
  }
  return nullptr;
}

std::vector<std::string> FieldNames(const google::protobuf::Descriptor& type) {
  std::vector<std::string> names;
  for (int i = 0; i < type.field_count(); ++i) names.push_back(type.field(i)->name());
  return names;
}

}  // namespace tactus::client
