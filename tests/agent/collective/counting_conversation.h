// A conversation for tests of transports.

#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "agent/collective/conversation.h"

namespace tactus::collective {

// Says in each turn how often it was spoken to so far, in messages whose lengths differ by turn and
// pair, and notes what it hears.
class CountingConversation : public Conversation {
 public:
  static constexpr std::size_t kTurns = 3;

  CountingConversation(int rank, int size) : rank_(rank), heard_(static_cast<std::size_t>(size)) {}

  std::size_t turns() const override { return kTurns; }
  void Begin(std::size_t turn) override {
    calls_ += "B" + std::to_string(turn);
    if (turn > 0) Hear(turn - 1);
    said_.assign(LengthOf(kTurns, 0, 0), static_cast<std::byte>(heard_count_));
  }
  std::span<const std::byte> Outgoing(std::size_t turn, int peer) override {
    return std::span(said_).first(LengthOf(turn, rank_, peer));
  }
  std::span<std::byte> Incoming(std::size_t turn, int peer) override {
    std::vector<std::byte>& inbox = heard_[static_cast<std::size_t>(peer)];
    inbox.resize(LengthOf(turn, peer, rank_));
    return inbox;
  }
  void End() override {
    calls_ += "E";
    Hear(kTurns - 1);
  }

  const std::string& calls() const { return calls_; }
  int heard_count() const { return heard_count_; }
  bool as_expected() const { return as_expected_; }

 private:
  // The longest is that behind the last turn; some are empty.
  static std::size_t LengthOf(std::size_t turn, int from, int to) {
    if (turn == kTurns) return 400'000;
    const std::size_t pair = static_cast<std::size_t>(3 * from + to) + turn;
    return pair % 4 == 0 ? 0 : pair % 4 == 1 ? 399'999 : 5 * pair;
  }

  void Hear(std::size_t turn) {
    const int others = static_cast<int>(heard_.size()) - 1;
    const auto said = static_cast<std::byte>(static_cast<int>(turn) * others);
    for (int peer = 0; peer <= others; ++peer) {
      if (peer == rank_) continue;
      const std::vector<std::byte>& inbox = heard_[static_cast<std::size_t>(peer)];
      as_expected_ = as_expected_ && inbox.size() == LengthOf(turn, peer, rank_) &&
                     std::ranges::all_of(inbox, [&](std::byte each) { return each == said; });
      ++heard_count_;
    }
  }

  const int rank_;
  std::string calls_;
  std::vector<std::byte> said_;
  std::vector<std::vector<std::byte>> heard_;
  int heard_count_ = 0;
  bool as_expected_ = true;
};

}  // namespace tactus::collective
