// The numbers behind the names of jobs: shakespeare-1, shakespeare-2, cifar-1.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace tactus::store {

// Gives each name once, whatever was deleted since.
class JobNumbers {
 public:
  // So many are told apart; beyond, all begin above the highest number that any of them had.
  static constexpr std::size_t kNamesMax = 100'000;

  // Of a store: see Store::Numbers.
  struct Given {
    std::uint64_t floor = 0;                      // what is not in `last` begins above it
    std::map<std::string, std::uint64_t> last{};  // the highest number, by what is before it
  };
  JobNumbers() = default;
  explicit JobNumbers(Given given) : given_(std::move(given)) {}

  // The name of the next job that people call `name`.
  std::string Next(const std::string& name);

 private:
  Given given_;
};

}  // namespace tactus::store
