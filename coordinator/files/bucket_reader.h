// Reads a blob of a bucket, a range at a time.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "coordinator/files/blob_reader.h"

namespace tactus::service {

// While a range is given away the next is fetched, so at most two are in memory. What is read from
// the beginning is held against the blob's hash at its end.
class BucketReader final : public BlobReader {
 public:
  static constexpr std::size_t kRangeBytes = std::size_t{1} << 20;

  // Calls `took` with these bytes, > 0, on the files' thread, later.
  using FetchRange = std::function<void(std::uint64_t offset, std::size_t count, Took took)>;
  struct Order {
    std::string sha256{};
    std::uint64_t size_bytes = 0;
    std::uint64_t offset = 0;  // at most size_bytes
    FetchRange fetch{};
    std::shared_ptr<void> held{};  // let go with the reader
  };
  explicit BucketReader(Order order);
  ~BucketReader() override;

  void Read(std::size_t bytes_max, Took took) override;

 private:
  struct State;
  static void Serve(const std::shared_ptr<State>& state);
  static void FetchAhead(const std::shared_ptr<State>& state);

  const std::shared_ptr<State> state_;  // shared with the range that is on its way
};

}  // namespace tactus::service
