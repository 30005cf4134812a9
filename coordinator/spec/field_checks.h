// The checks that the rules of a specification are made of, and the list of what was found wrong.

#pragma once

#include <google/protobuf/duration.pb.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "runtime/status.h"

namespace tactus::spec {

// An interval of doubles; `text` says it in words: "0 to below 1".
struct Interval {
  double low = 0;
  bool low_included = true;
  double high = 0;
  bool high_included = true;
  std::string text = {};
};

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// False for a NaN and for infinities.
bool Contains(const Interval& interval, double value);

// Whole numbers from `low` to `high`, both included.
struct Bounds {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
};

// Collects violations; every method adds at most one.
class FieldChecks {
 public:
  void Add(const std::string& field, const std::string& description);

  // "is missing; <allowed>".
  void Missing(const std::string& field, const std::string& allowed);

  // The number is in the interval; NaN and infinities never are.
  void Real(const std::string& field, double value, const Interval& interval);

  // The number is in the bounds. Returns whether it is.
  bool Whole(const std::string& field, std::uint64_t value, const Bounds& bounds);

  // A path is not empty, not longer than 4096 bytes, without control characters.
  void Path(const std::string& field, const std::string& path);

  // A name out of a closed set; else what was found, the set, and the nearest one when it is near.
  void OneOf(const std::string& field, const std::string& value,
             const std::vector<std::string>& allowed);

  // An enum value that this version knows; 0 stands for the default.
  void Known(const std::string& field, bool known, int value,
             const std::vector<std::string>& allowed);

  // A duration above 0 and of at most 10 years.
  void Time(const std::string& field, const google::protobuf::Duration& time);

  // Whether nothing was found wrong with the field so far.
  bool Right(const std::string& field) const;

  const std::vector<runtime::FieldViolation>& violations() const { return violations_; }

 private:
  std::vector<runtime::FieldViolation> violations_;
};

// A text of a user in quotation marks, for a message: what cannot be printed as \xNN, at most 80
// bytes.
std::string Shown(const std::string& text);

// True when nothing in it is a control character: bytes below 32, and 127.
bool IsPrintable(const std::string& text);

// "sha256:" and 64 hexadecimal digits in lower case: a file that was uploaded.
bool NamesBlob(const std::string& text);

// A label's key is 1 to 63 bytes of letters, digits, ".", "_", "-" and "/", beginning and ending
// with a letter or digit; its value 0 to 63 bytes of the same without "/".
bool IsLabelKey(const std::string& text);
bool IsLabelValue(const std::string& text);

// The member of `allowed` that is at most two typing errors (and less than half its length) away;
// empty when there is none.
std::string Nearest(const std::string& value, const std::vector<std::string>& allowed);

// "a, b or c".
std::string Enumerate(const std::vector<std::string>& names);

}  // namespace tactus::spec
