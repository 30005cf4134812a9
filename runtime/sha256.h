// SHA-256: what files are known by.

#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace tactus::runtime {

// Hashes what it is given piece by piece. One thread at a time.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&& other) noexcept;
  Sha256& operator=(Sha256&& other) noexcept;

  void Update(std::string_view bytes);

  // Of all that was given: 64 hexadecimal digits in lower case. Once, last.
  std::string Finish();

 private:
  struct State;
  std::unique_ptr<State> state_;  // null: finished or moved from
};

// Of what is at hand whole.
std::string Sha256Of(std::string_view bytes);

// True for 64 hexadecimal digits in lower case, and nothing else.
bool IsSha256(std::string_view text);

// Of a whole file; blocks. Errors: NotFound, and as the file system has them; Cancelled, `stop` was
// requested, as another thread may.
absl::StatusOr<std::string> HashFile(const std::string& path, const std::stop_token& stop = {});

}  // namespace tactus::runtime
