// Jobs of one process whose passes go through their models together.
//
// Each has a thread of its own, an engine and a model, and what it is by itself but for one thing:
// its passes wait for those of the others and are computed in one. Who comes when is not agreed
// upon: a pass is of those who are there, and whoever is at something else, a validation, a
// checkpoint, or has left, is not waited for. So who goes with whom may differ from run to run, and
// results are equal to solo runs to 1e-4, not bit for bit.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/model/fused_model.h"
#include "agent/model/model.h"
#include "base/time.h"
#include "cuda/device.h"
#include "threads/mutex.h"

namespace tactus::torchscript {

// Any thread, but for what is said of Join's model.
class Fusion {
 public:
  // How many passes went through models together.
  struct Counts {
    std::uint64_t fused = 0;  // passes of several
    std::uint64_t parts = 0;  // of these passes
    std::uint64_t alone = 0;  // passes of one, by its own model
  };

  Fusion();
  // All models that it gave out are gone.
  ~Fusion();
  Fusion(const Fusion&) = delete;
  Fusion& operator=(const Fusion&) = delete;

  // The model, whose passes go with those of others of its shape from now on; used by one thread,
  // as the model itself. As it was where models of these options cannot be computed together
  // (model::WhyNotFused). `device` is the model's; it may be gone when the model goes.
  std::unique_ptr<model::Model> Join(std::unique_ptr<model::Model> own,
                                     const model::ModelOptions& options, cuda::Device& device);

  // Held by who opens a model and tries it out: libtorch has random numbers for all threads, which
  // initial weights are drawn from.
  threads::Mutex& opening() { return opening_; }

  Counts counts();

 private:
  friend class FusedMember;

  // A pass that waits, on its thread's stack.
  struct Request {
    model::FusedPart part{};
    bool done = false;
    bool alone = false;  // nobody goes with it: its own model does it
    absl::Status status{};
    model::FusedSums sums{};
  };
  struct Member {
    std::string shape{};                  // of the model, and the device that it is on
    const model::ModelOptions options{};  // likewise
    const cuda::SegmentTable segments{};  // likewise
    bool awaited = false;                 // it is in the middle of training, as far as known
    std::uint64_t last_samples = 0;       // of its last pass
    std::uint64_t samples = 0;            // the same, or of the one before if more
    Request* request = nullptr;           // null: it has none
    Instant came{};                       // the request
  };
  // Of one shape and as many samples, but for an epoch's last batch: who waits for whom.
  using Company = std::vector<Member*>;
  // Those that can go through one model at once.
  using Party = std::vector<Member*>;

  void Enter(Member& member);
  void Leave(Member& member);
  // Returns when it is done.
  void Pass(Member& member, Request& request);
  // A pass took so long.
  void Note(Duration pass);

  void Run();
  std::vector<Company> Companies() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Of the company nobody is waited for any more.
  bool IsReady(const Company& company, Instant now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // When it will be at the latest. Requires: one waits.
  Instant ReadyAt(const Company& company) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<Party> TakeParties(Instant now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AwaitChange() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Compute(const Party& party);
  absl::Status TryCompute(const Party& party, std::size_t begin, std::size_t end);
  void Finish(const Party& party) ABSL_LOCKS_EXCLUDED(mutex_);

  threads::Mutex opening_;

  threads::Mutex mutex_;
  threads::Condition changed_;   // for the thread that computes
  threads::Condition finished_;  // for those that wait for it
  std::vector<Member*> members_ ABSL_GUARDED_BY(mutex_);
  Duration patience_ ABSL_GUARDED_BY(mutex_);
  Counts counts_ ABSL_GUARDED_BY(mutex_);
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;

  // Of the thread that computes alone.
  std::map<std::string, std::unique_ptr<model::FusedModel>> models_;  // by shape
  std::map<std::string, std::size_t> most_;  // parts of a pass that memory is there for, by shape

  std::thread thread_;  // last: runs over all the above
};

}  // namespace tactus::torchscript
