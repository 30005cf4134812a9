#include "coordinator/tape/held_bytes.h"

#include <map>
#include <optional>
#include <type_traits>

#include "coordinator/job/actions.h"
#include "coordinator/job/record_fields.h"

namespace tactus::tape {
namespace {

// Counts what values own beyond their own size; visits fields as codec::CborWriter does.
struct Meter {
  std::size_t owned = 0;

  template <typename T>
  void operator()(const char*, const T& value) {
    Count(value);
  }

  template <typename T>
  void Count(const T& value) {
    if constexpr (!std::is_trivially_copyable_v<T>) CountOwned(value);
  }

 private:
  void CountOwned(const std::string& text) { owned += text.size(); }
  template <typename T>
  void CountOwned(const std::vector<T>& items) {
    owned += items.size() * sizeof(T);
    if constexpr (!std::is_trivially_copyable_v<T>) {
      for (const T& item : items) CountOwned(item);
    }
  }
  void CountOwned(const std::map<std::string, std::string>& items) {
    for (const auto& item : items) owned += sizeof(item) + item.first.size() + item.second.size();
  }
  template <typename T>
  void CountOwned(const std::optional<T>& value) {
    if (value) Count(*value);
  }
  template <typename... Ts>
  void CountOwned(const std::variant<Ts...>& value) {
    std::visit([this](const auto& one) { Count(one); }, value);
  }
  void CountOwned(const Start& start) {
    Count(start.records);
    Count(start.actions);
    Count(start.nodes);
    Count(start.memories);
    Count(start.priors);
  }
  void CountOwned(const Step& step) {
    Count(step.event);
    Count(step.actions);
  }
  void CountOwned(const Header& header) { Count(header.program_version); }
  template <typename T>
  void CountOwned(const T& record) {
    Fields(*this, record);
  }
};

}  // namespace

std::size_t HeldBytes(const Frame& frame) {
  Meter meter;
  meter.Count(frame);
  return sizeof(Frame) + meter.owned;
}

}  // namespace tactus::tape
