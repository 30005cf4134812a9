#include "coordinator/store/rfc3339.h"

#include <chrono>

namespace tactus::store {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

// Reads a text from the front; the first thing that is not there makes the whole fail.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  int Digits(std::size_t count) {
    int number = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (rest_.empty() || rest_.front() < '0' || rest_.front() > '9') return Fail();
      number = number * 10 + (rest_.front() - '0');
      rest_.remove_prefix(1);
    }
    return number;
  }
  int DigitsUpTo(std::size_t count, int limit) {
    const int number = Digits(count);
    return number <= limit ? number : Fail();
  }
  // Takes one of `characters`; returns it, or 0.
  char OneOf(std::string_view characters) {
    if (rest_.empty() || characters.find(rest_.front()) == characters.npos) return 0;
    const char taken = rest_.front();
    rest_.remove_prefix(1);
    return taken;
  }
  void Expect(std::string_view characters) {
    if (OneOf(characters) == 0) Fail();
  }
  bool AtDigit() const { return !rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9'; }
  bool Whole() const { return !failed_ && rest_.empty(); }
  int Fail() {
    failed_ = true;
    return 0;
  }

 private:
  std::string_view rest_;
  bool failed_ = false;
};

std::int64_t Fraction(Scanner& scanner) {
  std::int64_t nanoseconds = 0;
  std::int64_t unit = kSecond;
  if (!scanner.AtDigit()) scanner.Fail();
  while (scanner.AtDigit()) {
    unit /= 10;
    if (unit == 0) return scanner.Fail();
    nanoseconds += unit * scanner.Digits(1);
  }
  return nanoseconds;
}

// Seconds that the zone is ahead of UTC.
std::int64_t Zone(Scanner& scanner) {
  if (scanner.OneOf("Zz") != 0) return 0;
  const char sign = scanner.OneOf("+-");
  if (sign == 0) return scanner.Fail();
  const int hours = scanner.DigitsUpTo(2, 23);
  scanner.Expect(":");
  const int minutes = scanner.DigitsUpTo(2, 59);
  return (sign == '-' ? -60 : 60) * (std::int64_t{hours} * 60 + minutes);
}

}  // namespace

std::optional<std::int64_t> ParseRfc3339(std::string_view text) {
  Scanner scanner(text);
  const int year = scanner.DigitsUpTo(4, 2200);
  scanner.Expect("-");
  const int month = scanner.DigitsUpTo(2, 12);
  scanner.Expect("-");
  const int day = scanner.DigitsUpTo(2, 31);
  scanner.Expect("Tt");
  const int hour = scanner.DigitsUpTo(2, 23);
  scanner.Expect(":");
  const int minute = scanner.DigitsUpTo(2, 59);
  scanner.Expect(":");
  const int second = scanner.DigitsUpTo(2, 60);  // 60: a leap second
  const std::int64_t fraction = scanner.OneOf(".") != 0 ? Fraction(scanner) : 0;
  const std::int64_t zone = Zone(scanner);
  const std::chrono::year_month_day date(std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day)));
  if (!scanner.Whole() || !date.ok() || year < 1970) return std::nullopt;
  const std::int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  const std::int64_t seconds = ((days * 24 + hour) * 60 + minute) * 60 + second - zone;
  return seconds * kSecond + fraction;
}

}  // namespace tactus::store
