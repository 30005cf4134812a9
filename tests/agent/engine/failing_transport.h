// A member that dies among the collectives of its group.

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "agent/collective/transport.h"

namespace tactus::engine {

// Fails from its nth collective on, counted from 0, and takes the group along.
class FailingTransport : public collective::Transport {
 public:
  FailingTransport(std::unique_ptr<collective::Transport> inner, int collectives)
      : inner_(std::move(inner)), left_(collectives) {}

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  std::unique_ptr<collective::Collective> Start(const collective::Operation& operation) override {
    if (left_-- == 0) inner_->Abort("enough");
    return inner_->Start(operation);
  }
  const std::uint32_t* lost() const override { return inner_->lost(); }
  void Abort(const std::string& reason) override { inner_->Abort(reason); }

 private:
  const std::unique_ptr<collective::Transport> inner_;
  int left_;
};

}  // namespace tactus::engine
