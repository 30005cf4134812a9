// Several collectives as one.

#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agent/collective/transport.h"

namespace tactus::collective {

// Done when all are. `end` is told of the first that fails, and ends the others: what is left of
// them would wait for members that have given up.
class Together final : public Collective {
 public:
  Together(std::vector<std::unique_ptr<Collective>> parts,
           std::function<void(const std::string&)> end)
      : parts_(std::move(parts)), end_(std::move(end)) {}
  ~Together() override { Together::Wait(); }

  Progress Poll() override {
    Progress all = Progress::kDone;
    for (const std::unique_ptr<Collective>& part : parts_) {
      const Progress progress = part->Poll();
      if (progress == Progress::kFailed) return progress;
      if (progress == Progress::kRunning) all = progress;
    }
    return all;
  }

  Completion Wait() override {
    Completion all;
    for (const std::unique_ptr<Collective>& part : parts_) {
      Completion completion = part->Wait();
      all.finished = std::max(all.finished, completion.finished);
      all.at = std::max(all.at, completion.at);
      if (completion.progress == Progress::kDone || all.progress == Progress::kFailed) continue;
      all.progress = Progress::kFailed;
      all.reason = std::move(completion.reason);
      end_(all.reason);
    }
    return all;
  }

 private:
  const std::vector<std::unique_ptr<Collective>> parts_;
  const std::function<void(const std::string&)> end_;
};

}  // namespace tactus::collective
