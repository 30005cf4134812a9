#include "agent/data/cifar_dataset.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "agent/data/folder.h"
#include "agent/data/mapped_file.h"
#include "agent/data/sample_bytes.h"
#include "agent/data/split.h"

namespace tactus::data {
namespace {

constexpr std::size_t kChannels = 3;
constexpr std::size_t kPixels = 32 * 32;                       // a channel
constexpr std::size_t kRecordBytes = 1 + kChannels * kPixels;  // label, red, green, blue
constexpr std::uint8_t kLabelMax = 9;

// Mean and standard deviation of the training images, per channel: the values in common use.
constexpr std::array<float, kChannels> kMean = {0.4914f, 0.4822f, 0.4465f};
constexpr std::array<float, kChannels> kDeviation = {0.2470f, 0.2435f, 0.2616f};

using Standardised = std::array<std::array<float, 256>, kChannels>;  // by channel and byte

constexpr Standardised MakeStandardised() {
  Standardised table = {};
  for (std::size_t channel = 0; channel < kChannels; ++channel) {
    for (std::size_t value = 0; value < 256; ++value) {
      const float scaled = static_cast<float>(value) / 255.0f;
      table[channel][value] = (scaled - kMean[channel]) / kDeviation[channel];
    }
  }
  return table;
}

constexpr Standardised kStandardised = MakeStandardised();

class CifarDataset final : public Dataset {
 public:
  // Each file holds one record or more, and no part of one.
  explicit CifarDataset(std::vector<MappedFile> files) : files_(std::move(files)) {
    for (const MappedFile& file : files_) {
      size_ += file.bytes().size() / kRecordBytes;
      ends_.push_back(size_);
    }
  }

  std::uint64_t size() const override { return size_; }
  const std::vector<TensorSpec>& inputs() const override { return inputs_; }
  const TensorSpec& targets() const override { return targets_; }

  void Read(std::span<const std::uint64_t> indices, std::span<std::byte> inputs,
            std::span<std::byte> targets) const override {
    CheckRead(*this, indices, inputs, targets);
    std::byte* pixels = inputs.data();
    for (std::size_t i = 0; i < indices.size(); ++i) {
      const std::uint8_t* record = Record(indices[i]);
      StoreElement<std::int64_t>(targets.data(), i, record[0]);
      ++record;
      for (const std::array<float, 256>& table : kStandardised) {
        for (std::size_t p = 0; p < kPixels; ++p) StoreElement(pixels, p, table[record[p]]);
        record += kPixels;
        pixels += kPixels * sizeof(float);
      }
    }
  }

 private:
  const std::uint8_t* Record(std::uint64_t index) const {
    const auto end = std::upper_bound(ends_.begin(), ends_.end(), index);
    const std::span<const std::uint8_t> bytes =
        files_[static_cast<std::size_t>(end - ends_.begin())].bytes();
    return bytes.last(static_cast<std::size_t>(*end - index) * kRecordBytes).data();
  }

  const std::vector<MappedFile> files_;
  std::vector<std::uint64_t> ends_;  // of files_ [records]: ascending
  std::uint64_t size_ = 0;           // [records]
  const std::vector<TensorSpec> inputs_ = {{.type = ElementType::kFloat32, .shape = {3, 32, 32}}};
  const TensorSpec targets_ = {.type = ElementType::kInt64, .shape = {}};
};

absl::StatusOr<MappedFile> OpenRecords(const std::string& path) {
  absl::StatusOr<MappedFile> file = MappedFile::Open(path);
  if (!file.ok()) return file.status();
  const std::span<const std::uint8_t> bytes = file->bytes();
  if (bytes.empty()) return absl::InvalidArgumentError(Quoted(path) + " is empty");
  if (bytes.size() % kRecordBytes != 0) {
    return absl::InvalidArgumentError(Quoted(path) + " has " + std::to_string(bytes.size()) +
                                      " bytes, not a multiple of " + std::to_string(kRecordBytes) +
                                      " (1 label and 3072 pixel bytes a record)");
  }
  for (std::size_t record = 0; record * kRecordBytes < bytes.size(); ++record) {
    const std::uint8_t label = bytes[record * kRecordBytes];
    if (label <= kLabelMax) continue;
    return absl::InvalidArgumentError(Quoted(path) + " has label " + std::to_string(label) +
                                      " in record " + std::to_string(record) +
                                      " (counted from 0), not 0 to 9");
  }
  return file;
}

absl::StatusOr<std::shared_ptr<const Dataset>> OpenFiles(const std::vector<std::string>& paths) {
  std::vector<MappedFile> files;
  for (const std::string& path : paths) {
    absl::StatusOr<MappedFile> file = OpenRecords(path);
    if (!file.ok()) return file.status();
    files.push_back(*std::move(file));
  }
  return std::make_shared<const CifarDataset>(std::move(files));
}

// The training files of a folder, sorted by name.
absl::StatusOr<std::vector<std::string>> ListBatches(const std::string& folder) {
  absl::StatusOr<std::vector<std::string>> names = ListNames(folder);
  if (!names.ok()) return names.status();
  std::vector<std::string> paths;
  for (const std::string& name : *names) {
    if (name.starts_with("data_batch_") && name.ends_with(".bin")) {
      paths.push_back(JoinPath(folder, name));
    }
  }
  if (paths.empty()) {
    return absl::NotFoundError("folder " + Quoted(folder) + " has no data_batch_*.bin");
  }
  return paths;
}

absl::StatusOr<Split> OpenFolder(const std::string& folder, double validation_fraction) {
  const absl::StatusOr<std::vector<std::string>> batches = ListBatches(folder);
  if (!batches.ok()) return batches.status();
  absl::StatusOr<std::shared_ptr<const Dataset>> train = OpenFiles(*batches);
  if (!train.ok()) return train.status();

  const std::string test_path = JoinPath(folder, "test_batch.bin");
  absl::StatusOr<std::shared_ptr<const Dataset>> validation = OpenFiles({test_path});
  if (absl::IsNotFound(validation.status())) {
    return SplitSamples(*std::move(train), validation_fraction);
  }
  if (!validation.ok()) return validation.status();
  return Split{.train = *std::move(train), .validation = *std::move(validation)};
}

absl::StatusOr<Split> OpenFile(const std::string& path, double validation_fraction) {
  absl::StatusOr<std::shared_ptr<const Dataset>> records = OpenFiles({path});
  if (!records.ok()) return records.status();
  return SplitSamples(*std::move(records), validation_fraction);
}

}  // namespace

absl::StatusOr<Split> OpenCifar(const std::string& path, double validation_fraction) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) return FileError(path, errno);
  absl::StatusOr<Split> split = S_ISDIR(status.st_mode) ? OpenFolder(path, validation_fraction)
                                                        : OpenFile(path, validation_fraction);
  if (!split.ok()) return split;
  for (const std::array<float, 256>& table : kStandardised) split->black.push_back(table[0]);
  return split;
}

}  // namespace tactus::data
