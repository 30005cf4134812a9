#include "coordinator/files/bucket_reader.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "runtime/sha256.h"
#include "runtime/status.h"

namespace tactus::service {

struct BucketReader::State {
  Order order{};
  std::uint64_t asked = 0;  // of the blob, up to where it was asked for
  std::string present{};    // the range of which bytes are given away
  std::size_t given = 0;    // of it
  std::string next{};       // the range behind it; empty: it has not come
  bool fetching = false;
  absl::Status failed{};
  std::optional<runtime::Sha256> hash{};  // unset: not read from the beginning
  std::size_t wanted = 0;
  Took took{};  // empty: nobody waits

  bool AtEnd() const {
    return given == present.size() && next.empty() && !fetching && asked == order.size_bytes;
  }
  void Answer(absl::StatusOr<std::string> bytes) {
    const Took waiting = std::exchange(took, nullptr);
    waiting(std::move(bytes));
  }
  absl::Status CheckHash() {
    if (!hash) return absl::OkStatus();
    const std::string found = hash->Finish();
    hash.reset();
    if (found == order.sha256) return absl::OkStatus();
    return runtime::WithReason(
        absl::DataLossError("sha256:" + order.sha256 + ": the bucket gives something else, with " +
                            found + "; bring the file again"),
        {.reason = "WRONG_CONTENT_HASH", .metadata = {{"sha256", order.sha256}}});
  }
};

BucketReader::BucketReader(Order order) : state_(std::make_shared<State>()) {
  state_->asked = order.offset;
  if (order.offset == 0) state_->hash.emplace();
  state_->order = std::move(order);
}

BucketReader::~BucketReader() {
  state_->took = nullptr;
  state_->order.held.reset();
}

void BucketReader::Read(std::size_t bytes_max, Took took) {
  state_->wanted = bytes_max;
  state_->took = std::move(took);
  FetchAhead(state_);
  Serve(state_);
}

void BucketReader::FetchAhead(const std::shared_ptr<State>& state) {
  if (state->fetching || !state->next.empty() || !state->failed.ok()) return;
  const std::uint64_t left = state->order.size_bytes - state->asked;
  if (left == 0) return;
  const std::size_t count = std::min<std::uint64_t>(left, kRangeBytes);
  const std::uint64_t offset = std::exchange(state->asked, state->asked + count);
  state->fetching = true;
  state->order.fetch(offset, count, [state](absl::StatusOr<std::string> bytes) {
    state->fetching = false;
    if (bytes.ok()) {
      state->next = *std::move(bytes);
    } else {
      state->failed = bytes.status();
    }
    Serve(state);
  });
}

void BucketReader::Serve(const std::shared_ptr<State>& state) {
  if (!state->took) return;
  if (state->given == state->present.size() && !state->next.empty()) {
    state->present = std::exchange(state->next, {});
    state->given = 0;
    FetchAhead(state);
  }
  if (state->given < state->present.size()) {
    const std::string bytes = state->present.substr(state->given, state->wanted);
    state->given += bytes.size();
    if (state->hash) state->hash->Update(bytes);
    return state->Answer(bytes);
  }
  if (!state->failed.ok()) return state->Answer(state->failed);
  if (!state->AtEnd()) return;  // until the range comes
  const absl::Status whole = state->CheckHash();
  whole.ok() ? state->Answer(std::string()) : state->Answer(whole);
}

}  // namespace tactus::service
