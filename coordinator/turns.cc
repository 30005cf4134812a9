#include "coordinator/turns.h"

#include <time.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <utility>

#include "coordinator/service/standby.h"
#include "coordinator/store/shared_store.h"
#include "runtime/logging.h"

namespace tactus {
namespace {

constexpr int kRenewalsOfALease = 5;

// The next of the signals, but for kStepDown, which is of a turn that is over; 0: none came.
int WaitForEnd(const sigset_t& signals, Duration patience) {
  const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(patience).count();
  const timespec limit{.tv_sec = nanoseconds / 1'000'000'000,
                       .tv_nsec = nanoseconds % 1'000'000'000};
  const int signal = sigtimedwait(&signals, nullptr, &limit);
  return signal > 0 && signal != kStepDown ? signal : 0;
}

// What is wrong with the database's address or rights is for whoever set it up; that it does not
// answer, or that another was quicker, may be over soon.
bool MayPass(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsAborted(status);
}

class Turn {
 public:
  explicit Turn(const Turns& turns) : turns_(turns), options_(turns.server) {}

  // Stands by until it leads; null: a signal came.
  absl::StatusOr<std::unique_ptr<store::Store>> AwaitLead();
  // Serves until it leads no more, or cannot (true), or a signal came.
  absl::StatusOr<bool> Lead(std::unique_ptr<store::Store> store);

 private:
  store::SharedStoreOptions StoreOptions() const;
  void Tell(service::Standby& standby, const absl::StatusOr<store::Candidacy>& candidacy);

  const Turns& turns_;
  service::ServerOptions options_;  // the address as it was first chosen
  std::string told_;                // what was said last, once each
};

store::SharedStoreOptions Turn::StoreOptions() const {
  return {.address = options_.store,
          .leader = options_.advertise.empty() ? options_.listen : options_.advertise,
          .lease = options_.lease,
          .renewal = options_.lease / kRenewalsOfALease,
          .lost = [](const absl::Status& status) {
            runtime::Logger("main")->error("leads no more error={}",
                                           runtime::Quoted(std::string(status.message())));
            ::kill(::getpid(), kStepDown);
          }};
}

void Turn::Tell(service::Standby& standby, const absl::StatusOr<store::Candidacy>& candidacy) {
  const auto log = runtime::Logger("main");
  const std::string leader = candidacy.ok() ? candidacy->leader : "";
  standby.SetLeader(leader);
  const std::string text = candidacy.ok() ? leader : std::string(candidacy.status().message());
  if (text == told_) return;
  told_ = text;
  if (candidacy.ok()) {
    log->info("standing by address={} leader={}", options_.listen, leader);
    turns_.manager.Ready("standing by at " + options_.listen + "; " + leader + " leads");
  } else {
    log->warn("database does not answer, trying again error={}", runtime::Quoted(text));
  }
}

absl::StatusOr<std::unique_ptr<store::Store>> Turn::AwaitLead() {
  auto standby = service::Standby::Open(options_);
  if (!standby.ok()) return standby.status();
  options_.listen = (*standby)->address();
  told_.clear();
  const absl::Status status = turns_.listening(options_.listen, "");
  if (!status.ok()) return status;
  const store::SharedStoreOptions shared = StoreOptions();
  while (true) {
    absl::StatusOr<store::Candidacy> candidacy = store::TryToLead(shared);
    if (!candidacy.ok() && !MayPass(candidacy.status())) return candidacy.status();
    if (candidacy.ok() && candidacy->store != nullptr) return std::move(candidacy->store);
    Tell(**standby, candidacy);
    const int signal = WaitForEnd(turns_.signals, shared.renewal);
    if (signal == 0) continue;
    runtime::Logger("main")->info("stopping signal={}", signal);
    return nullptr;
  }
}

absl::StatusOr<bool> Turn::Lead(std::unique_ptr<store::Store> store) {
  const auto log = runtime::Logger("main");
  auto server = service::Server::Open(options_, std::move(store));
  // Where it is the address or the folder that is taken, standing by says so.
  if (!server.ok() && MayPass(server.status())) {
    log->warn("cannot lead, standing by again error={}",
              runtime::Quoted(std::string(server.status().message())));
    return true;
  }
  if (!server.ok()) return server.status();
  log->info("serving address={} metrics_address={}", (*server)->address(),
            (*server)->metrics_address());
  const absl::Status status = turns_.listening((*server)->address(), (*server)->metrics_address());
  if (!status.ok()) return status;
  turns_.manager.Ready("serving at " + (*server)->address());
  int signal = 0;
  sigwait(&turns_.signals, &signal);
  const bool stepped_down = signal == kStepDown;
  if (!stepped_down) {
    log->info("stopping signal={}", signal);
    turns_.manager.Stopping();
  }
  (*server)->Shutdown();
  return stepped_down;
}

}  // namespace

absl::Status TakeTurns(const Turns& turns) {
  Turn turn(turns);
  while (true) {
    absl::StatusOr<std::unique_ptr<store::Store>> store = turn.AwaitLead();
    if (!store.ok() || *store == nullptr) return store.status();
    const absl::StatusOr<bool> again = turn.Lead(*std::move(store));
    if (!again.ok() || !*again) return again.status();
  }
}

}  // namespace tactus
