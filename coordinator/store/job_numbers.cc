#include "coordinator/store/job_numbers.h"

#include <algorithm>

namespace tactus::store {

std::string JobNumbers::Next(const std::string& name) {
  if (given_.last.size() >= kNamesMax) {
    for (const auto& [stem, number] : given_.last) given_.floor = std::max(given_.floor, number);
    given_.last.clear();
  }
  const std::string stem = name + "-";
  std::uint64_t& number = given_.last.try_emplace(stem, given_.floor).first->second;
  return stem + std::to_string(++number);
}

}  // namespace tactus::store
