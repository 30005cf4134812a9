#include "agent/data/text_dataset.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "agent/data/mapped_file.h"
#include "agent/data/sample_bytes.h"
#include "agent/data/split.h"
#include "agent/data/text_files.h"

namespace tactus::data {
namespace {

// Files joined end to end.
class Corpus {
 public:
  void Append(MappedFile file) {
    if (file.bytes().empty()) return;
    size_ += file.bytes().size();
    ends_.push_back(size_);
    files_.push_back(std::move(file));
  }

  std::uint64_t size() const { return size_; }  // [bytes]

  // The bytes from `position` (below size()) to the end of the file that holds it.
  std::span<const std::uint8_t> From(std::uint64_t position) const {
    const auto end = std::upper_bound(ends_.begin(), ends_.end(), position);
    const std::span<const std::uint8_t> bytes =
        files_[static_cast<std::size_t>(end - ends_.begin())].bytes();
    return bytes.last(static_cast<std::size_t>(*end - position));
  }

 private:
  std::vector<MappedFile> files_;    // none is empty
  std::vector<std::uint64_t> ends_;  // of files_, in the corpus: ascending
  std::uint64_t size_ = 0;
};

// Windows over a range of a corpus' bytes.
class TextDataset final : public Dataset {
 public:
  // `corpus` is shared with the other part of the split.
  TextDataset(std::shared_ptr<const Corpus> corpus, Range range, std::uint32_t context)
      : corpus_(std::move(corpus)),
        range_(range),
        context_(context),
        spec_{.type = ElementType::kInt64, .shape = {static_cast<std::int64_t>(context)}},
        inputs_{spec_} {}

  std::uint64_t size() const override { return (range_.size - 1) / context_; }
  const std::vector<TensorSpec>& inputs() const override { return inputs_; }
  const TensorSpec& targets() const override { return spec_; }

  void Read(std::span<const std::uint64_t> indices, std::span<std::byte> inputs,
            std::span<std::byte> targets) const override {
    CheckRead(*this, indices, inputs, targets);
    const std::size_t sample_bytes = spec_.BytesPerSample();
    for (std::size_t i = 0; i < indices.size(); ++i) {
      CopyWindow(range_.first + indices[i] * context_, inputs.data() + i * sample_bytes,
                 targets.data() + i * sample_bytes);
    }
  }

 private:
  // Copies the context + 1 bytes from `position`, file by file.
  void CopyWindow(std::uint64_t position, std::byte* inputs, std::byte* targets) const {
    const std::size_t window = context_ + 1;
    std::size_t done = 0;
    while (done < window) {
      std::span<const std::uint8_t> bytes = corpus_->From(position + done);
      bytes = bytes.first(std::min(bytes.size(), window - done));
      const std::size_t inputs_end = std::min(done + bytes.size(), context_);
      for (std::size_t k = done; k < inputs_end; ++k) {
        StoreElement<std::int64_t>(inputs, k, bytes[k - done]);
      }
      for (std::size_t k = std::max<std::size_t>(done, 1); k < done + bytes.size(); ++k) {
        StoreElement<std::int64_t>(targets, k - 1, bytes[k - done]);
      }
      done += bytes.size();
    }
  }

  const std::shared_ptr<const Corpus> corpus_;
  const Range range_;
  const std::size_t context_;  // [bytes]
  const TensorSpec spec_;
  const std::vector<TensorSpec> inputs_;
};

absl::StatusOr<std::shared_ptr<const Corpus>> OpenCorpus(const TextOptions& options) {
  const absl::StatusOr<std::vector<std::string>> paths = ListTextFiles(options.path);
  if (!paths.ok()) return paths.status();
  auto corpus = std::make_shared<Corpus>();
  std::size_t mapped = 0;
  for (const std::string& path : *paths) {
    absl::StatusOr<MappedFile> file = MappedFile::Open(path);
    if (!file.ok()) return file.status();
    if (file->bytes().size() >= MappedFile::kMappedBytesMin && ++mapped > options.mappings_max) {
      return absl::ResourceExhaustedError(Quoted(options.path) + " has more than " +
                                          std::to_string(options.mappings_max) + " files of " +
                                          std::to_string(MappedFile::kMappedBytesMin) +
                                          " bytes or more: join them into fewer files");
    }
    corpus->Append(*std::move(file));
  }
  return std::shared_ptr<const Corpus>(std::move(corpus));
}

absl::Status TooSmall(const TextOptions& options, std::uint64_t bytes, std::uint64_t train_bytes) {
  if (bytes == 0) return absl::InvalidArgumentError(Quoted(options.path) + " is empty");
  std::string message = Quoted(options.path) + " has " + std::to_string(bytes) + " bytes";
  if (train_bytes < bytes) message += ", " + std::to_string(train_bytes) + " of them for training";
  return absl::InvalidArgumentError(message + "; one sample of context " +
                                    std::to_string(options.context) + " takes " +
                                    std::to_string(std::uint64_t{options.context} + 1));
}

}  // namespace

absl::StatusOr<Split> OpenText(const TextOptions& options) {
  const absl::StatusOr<std::shared_ptr<const Corpus>> corpus = OpenCorpus(options);
  if (!corpus.ok()) return corpus.status();
  const std::uint64_t size = (*corpus)->size();
  std::uint64_t validation = ValidationCount(size, options.validation_fraction);
  if (validation <= options.context) validation = 0;
  const std::uint64_t train = size - validation;
  if (train <= options.context) return TooSmall(options, size, train);

  Split split;
  split.train =
      std::make_shared<TextDataset>(*corpus, Range{.first = 0, .size = train}, options.context);
  if (validation > 0) {
    split.validation = std::make_shared<TextDataset>(
        *corpus, Range{.first = train, .size = validation}, options.context);
  }
  return split;
}

}  // namespace tactus::data
