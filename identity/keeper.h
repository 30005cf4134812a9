// Keeps the certificate of a daemon's TLS folder young.

#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "base/time.h"
#include "identity/certificate.h"
#include "runtime/control_thread.h"

namespace tactus::identity {

// Looks at the folder every few seconds, on a thread of its own, from construction to destruction.
class Keeper {
 public:
  struct Handlers {
    // Makes a new certificate and writes it to the folder. May block.
    std::function<absl::StatusOr<Certificate>()> renew;
    // Whether it is due although the certificate is young.
    std::function<bool()> stale = [] { return false; };
    // cert.pem or ca.pem is another one, whoever wrote it.
    std::function<void()> changed = [] {};
  };
  // Handlers are called on the keeper's thread alone, none after the destructor.
  struct Options {
    std::string folder{};
    Duration look = Seconds(5);  // > 0
  };
  Keeper(Options options, Handlers handlers);
  ~Keeper();
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

 private:
  void LookAgain();
  void Look();
  void Renew(const Certificate& present);
  std::string Content() const;

  const Options options_;
  const Handlers handlers_;
  // Of the thread:
  std::string content_;
  std::string complaint_;      // why it was not renewed, said once; empty: nothing is wrong
  std::int64_t next_try_ = 0;  // seconds since 1970
  runtime::ControlThread thread_;
  runtime::Timer timer_{thread_};
};

}  // namespace tactus::identity
