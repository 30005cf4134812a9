#include "agent/worker/checkpoint_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <map>
#include <set>
#include <span>
#include <type_traits>
#include <utility>

#include "agent/engine/state_counters.h"
#include "agent/tensors/safetensors.h"
#include "agent/worker/checkpoint_residuals.h"
#include "base/descriptor.h"
#include "base/page_cache.h"
#include "base/rng.h"

namespace tactus::worker {
namespace {

using engine::EngineState;
using tensors::NamedTensor;
using Texts = std::map<std::string, std::string>;

constexpr std::uint64_t kSchema = 1;
constexpr const char* kSchemaKey = "tactus.schema";
constexpr const char* kHashKey = "content_hash";
constexpr const char* kFormatKey = "format";  // the library's own
constexpr const char* kBuffers = "buffers";
constexpr const char* kBestBuffers = "best_buffers";
constexpr const char* kReturned = "ledger.returned";
constexpr const char* kSubsetSamples = "subset.samples";
constexpr const char* kSubsetWeights = "subset.weights";
constexpr const char* kLosses = "losses";
constexpr const char* kLocalLosses = "local_losses";
constexpr const char* kScales = "one_bit.scales";
constexpr const char* kLayers = "one_bit.layers";
constexpr std::size_t kPieceBytes = std::size_t{1} << 20;  // read at once

// The shortest text that reads as the same value.
template <typename Value>
std::string ToText(const Value& value) {
  if constexpr (std::is_same_v<Value, Duration>) {
    return std::to_string(value.count());
  } else if constexpr (std::is_same_v<Value, bool>) {
    return value ? "1" : "0";
  } else if constexpr (std::is_enum_v<Value>) {
    return ToText(static_cast<std::underlying_type_t<Value>>(value));
  } else {
    std::array<char, 64> text{};
    const auto end = std::to_chars(text.data(), text.data() + text.size(), value);
    return {text.data(), end.ptr};
  }
}

template <typename Value>
bool FromText(const std::string& text, Value& value) {
  if constexpr (std::is_same_v<Value, Duration>) {
    Duration::rep count = 0;
    if (!FromText(text, count)) return false;
    value = Duration(count);
    return true;
  } else if constexpr (std::is_same_v<Value, bool>) {
    value = text == "1";
    return text == "0" || text == "1";
  } else if constexpr (std::is_enum_v<Value>) {
    std::underlying_type_t<Value> number = 0;
    if (!FromText(text, number)) return false;
    value = static_cast<Value>(number);
    return true;
  } else {
    const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
    return end.ec == std::errc() && end.ptr == text.data() + text.size();
  }
}

std::uint64_t Fold(std::uint64_t hash, std::span<const std::byte> bytes) {
  hash = Mix64(hash ^ bytes.size());
  while (!bytes.empty()) {
    std::uint64_t word = 0;
    const std::size_t size = std::min(bytes.size(), sizeof(word));
    std::memcpy(&word, bytes.data(), size);
    hash = Mix64(hash ^ word) + 0x9e3779b97f4a7c15ULL;
    bytes = bytes.subspan(size);
  }
  return hash;
}

std::uint64_t Fold(std::uint64_t hash, const std::string& text) {
  return Fold(hash, std::as_bytes(std::span(text)));
}

// Of everything but what the hash itself makes.
std::string HashOf(const Texts& texts, const std::map<std::string, NamedTensor>& tensors) {
  std::uint64_t hash = 0;
  for (const auto& [key, text] : texts) {
    if (key != kHashKey && key != kFormatKey) hash = Fold(Fold(hash, key), text);
  }
  for (const auto& [name, tensor] : tensors) hash = Fold(Fold(hash, name), tensor.bytes);
  return std::to_string(hash);
}

absl::Status Bad(const std::string& path, const std::string& what) {
  return absl::InvalidArgumentError("checkpoint: " + data::Quoted(path) + ": " + what);
}

// The flat buffers by the prefix of their tensors' names.
std::string OptimizerPrefix(std::size_t index) {
  return "optimizer." + std::to_string(index) + ".";
}
constexpr const char* kParameterPrefix = "parameters.";
constexpr const char* kBestPrefix = "best.";
constexpr const char* kBlockMomentumPrefix = "block_momentum.";
constexpr const char* kFreshMomentPrefix = "fresh_moment.";

// ---- Writing

class Writer {
 public:
  explicit Writer(const cuda::SegmentTable& segments) : segments_(segments) {}

  void AddFlat(const std::string& prefix, std::span<const float> flat) {
    for (const cuda::Segment& segment : segments_) {
      Add({.name = prefix + segment.name,
           .type = "F32",
           .element_bytes = sizeof(float),
           .shape = segment.shape,
           .bytes = std::as_bytes(flat.subspan(segment.offset, segment.length))});
    }
  }

  void AddBuffers(const std::string& name, const std::vector<float>& buffers) {
    Add({.name = name,
         .type = "F32",
         .element_bytes = sizeof(float),
         .shape = {static_cast<std::int64_t>(buffers.size())},
         .bytes = std::as_bytes(std::span(buffers))});
  }

  // Rows of so many.
  template <typename Element>
  void AddRows(const std::string& name, const std::string& type, std::span<const Element> rows,
               std::size_t columns) {
    Add({.name = name,
         .type = type,
         .element_bytes = sizeof(Element),
         .shape = {static_cast<std::int64_t>(rows.size() / columns),
                   static_cast<std::int64_t>(columns)},
         .bytes = std::as_bytes(rows)});
  }

  void Add(NamedTensor tensor) { tensors_[tensor.name] = std::move(tensor); }

  absl::Status Write(Texts texts, const std::string& path, const std::stop_token& stop) const {
    texts[kHashKey] = HashOf(texts, tensors_);
    std::vector<NamedTensor> tensors;
    for (const auto& [name, tensor] : tensors_) tensors.push_back(tensor);
    return tensors::WriteSafetensors(path, std::move(tensors), texts, stop);
  }

 private:
  const cuda::SegmentTable& segments_;
  std::map<std::string, NamedTensor> tensors_;
};

std::vector<std::uint64_t> EdgesOf(const EngineState& state) {
  std::vector<std::uint64_t> edges;
  for (const engine::Stretch& stretch : state.ledger.returned) {
    edges.insert(edges.end(), {stretch.begin, stretch.end});
  }
  return edges;
}

std::vector<double> LossesOf(const EngineState& state) {
  std::vector<double> losses;
  for (const policies::RoundLosses& round : state.losses) {
    losses.insert(losses.end(),
                  {round.common.sum, round.common.samples, static_cast<double>(round.steps)});
  }
  return losses;
}

// Empty where there were none.
std::vector<double> LocalLossesOf(const EngineState& state) {
  std::vector<double> losses;
  double samples = 0;
  for (const policies::RoundLosses& round : state.losses) {
    losses.insert(losses.end(), {round.local.sum, round.local.samples});
    samples += round.local.samples;
  }
  return samples > 0 ? losses : std::vector<double>();
}

std::vector<double> LayersOf(const EngineState& state) {
  std::vector<double> layers;
  for (const engine::LayerRatio& layer : state.one_bit.layers) {
    layers.insert(layers.end(), {layer.sum, layer.weight, layer.factor});
  }
  return layers;
}

// ---- Reading

class Reader {
 public:
  Reader(const tensors::SafetensorsFile& file, const CheckpointFit& fit) : file_(file), fit_(fit) {}

  // Empty: all of it is in `checkpoint`.
  std::string Read(Checkpoint& checkpoint);

 private:
  bool Has(const std::string& name) const { return file_.tensors.contains(name); }
  std::string ReadCounters(EngineState& state) const;
  std::string ReadFlats(Checkpoint& checkpoint);
  std::vector<tensors::WantedTensor> Wanted() const;
  std::string ReadFlat(const std::string& prefix, std::vector<float>& flat);
  std::string ReadBuffers(const std::string& name, std::vector<float>& buffers);
  std::string ReadBest(Checkpoint& checkpoint);
  std::string CheckResiduals();
  std::string ReadLists(Checkpoint& checkpoint);
  std::string ReadLocalLosses(std::vector<policies::RoundLosses>& rounds);
  std::string ReadOneBit(engine::OneBitState& state);
  std::string ReadSubset(engine::Subset& subset);
  bool HasFlat(const std::string& prefix) const;

  // The elements of a tensor; what is wrong with it otherwise.
  template <typename Element>
  std::string Take(const std::string& name, const std::string& type,
                   const std::vector<std::int64_t>& shape, std::span<Element> to);
  // The rows of a matrix, or the elements of a vector; 0 when it is neither.
  std::size_t Rows(const std::string& name) const;

  const tensors::SafetensorsFile& file_;
  const CheckpointFit& fit_;
  std::set<std::string> taken_;
};

std::string ShapeText(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  }
  return text + "]";
}

template <typename Element>
std::string Reader::Take(const std::string& name, const std::string& type,
                         const std::vector<std::int64_t>& shape, std::span<Element> to) {
  const auto found = file_.tensors.find(name);
  if (found == file_.tensors.end()) return "it has no tensor " + data::Quoted(name);
  const NamedTensor& tensor = found->second;
  if (tensor.type != type || tensor.shape != shape || tensor.bytes.size() != to.size_bytes()) {
    return "tensor " + data::Quoted(name) + " is " + tensor.type + ShapeText(tensor.shape) +
           ", this job's is " + type + ShapeText(shape);
  }
  if (!to.empty()) std::memcpy(to.data(), tensor.bytes.data(), to.size_bytes());
  taken_.insert(name);
  return {};
}

std::size_t Reader::Rows(const std::string& name) const {
  const auto found = file_.tensors.find(name);
  if (found == file_.tensors.end() || found->second.shape.empty()) return 0;
  // Not more than its bytes hold of the narrower one, whatever the shape says.
  return std::min(static_cast<std::size_t>(found->second.shape[0]),
                  found->second.bytes.size() / (2 * sizeof(std::uint64_t)));
}

std::string Reader::ReadCounters(EngineState& state) const {
  std::string wrong;
  engine::VisitCounters(state, [&](const std::string& key, auto& value) {
    if (!wrong.empty()) return;
    const auto found = file_.metadata.find(key);
    if (found == file_.metadata.end()) {
      // Of what windows, validations, signs and subsets told, files of before it was kept have
      // nothing, as a job that begins.
      const auto is_of = [&](const char* part) { return key.starts_with(part); };
      if (is_of("windows.") || is_of("validation.") || is_of("one_bit.") || is_of("subset.")) {
        return;
      }
      wrong = "it has no " + key;
    } else if (!FromText(found->second, value)) {
      wrong = key + " is " + data::Quoted(found->second) + ", no such number";
    }
  });
  return wrong;
}

std::string Reader::ReadFlat(const std::string& prefix, std::vector<float>& flat) {
  flat.assign(cuda::FlatLength(fit_.segments), 0);
  for (const cuda::Segment& segment : fit_.segments) {
    std::string wrong = Take(prefix + segment.name, "F32", segment.shape,
                             std::span(flat).subspan(segment.offset, segment.length));
    if (!wrong.empty()) return wrong;
  }
  return {};
}

// Of another model most differ, and are told at once.
std::vector<tensors::WantedTensor> Reader::Wanted() const {
  std::vector<tensors::WantedTensor> wanted;
  for (const cuda::Segment& segment : fit_.segments) {
    wanted.push_back(
        {.name = kParameterPrefix + segment.name, .type = "F32", .shape = segment.shape});
  }
  return wanted;
}

std::string Reader::ReadFlats(Checkpoint& checkpoint) {
  EngineState& state = checkpoint.state;
  std::string wrong = tensors::DifferencesFrom(file_, Wanted());
  if (wrong.empty()) wrong = ReadFlat(kParameterPrefix, checkpoint.parameters);
  state.optimizer.resize(fit_.optimizer_buffers);
  for (std::size_t i = 0; i < fit_.optimizer_buffers && wrong.empty(); ++i) {
    wrong = ReadFlat(OptimizerPrefix(i), state.optimizer[i]);
  }
  if (wrong.empty() && HasFlat(kBlockMomentumPrefix)) {
    wrong = ReadFlat(kBlockMomentumPrefix, state.block_momentum);
  }
  if (wrong.empty() && HasFlat(kFreshMomentPrefix)) {
    wrong = ReadFlat(kFreshMomentPrefix, state.fresh_moment);
  }
  return wrong;
}

bool Reader::HasFlat(const std::string& prefix) const {
  return std::ranges::any_of(
      fit_.segments, [&](const cuda::Segment& segment) { return Has(prefix + segment.name); });
}

std::string Reader::ReadBuffers(const std::string& name, std::vector<float>& buffers) {
  buffers.resize(fit_.buffers);
  return Take(name, "F32", {static_cast<std::int64_t>(fit_.buffers)}, std::span(buffers));
}

std::string Reader::ReadBest(Checkpoint& checkpoint) {
  if (!Has(kBestBuffers)) return {};
  BestCopy best;
  std::string wrong = ReadFlat(kBestPrefix, best.parameters);
  if (wrong.empty()) wrong = ReadBuffers(kBestBuffers, best.buffers);
  checkpoint.best = std::make_shared<const BestCopy>(std::move(best));
  return wrong;
}

std::string Reader::CheckResiduals() {
  const std::vector<tensors::WantedTensor> wanted =
      worker::Wanted(ResidualsIn(file_), fit_.segments);
  for (const tensors::WantedTensor& tensor : wanted) taken_.insert(tensor.name);
  return tensors::DifferencesFrom(file_, wanted);
}

std::string Reader::ReadLists(Checkpoint& checkpoint) {
  std::string wrong = ReadBuffers(kBuffers, checkpoint.buffers);
  if (!wrong.empty()) return wrong;

  std::vector<std::uint64_t> edges(2 * Rows(kReturned));
  wrong =
      Take(kReturned, "U64", {static_cast<std::int64_t>(edges.size() / 2), 2}, std::span(edges));
  if (!wrong.empty()) return wrong;
  for (std::size_t i = 0; i < edges.size(); i += 2) {
    checkpoint.state.ledger.returned.push_back({.begin = edges[i], .end = edges[i + 1]});
  }

  std::vector<double> losses(3 * Rows(kLosses));
  wrong =
      Take(kLosses, "F64", {static_cast<std::int64_t>(losses.size() / 3), 3}, std::span(losses));
  if (!wrong.empty()) return wrong;
  for (std::size_t i = 0; i < losses.size(); i += 3) {
    // What is no count becomes 0, which no round has.
    const bool count = losses[i + 2] >= 0 && losses[i + 2] < 0x1p53;
    checkpoint.state.losses.push_back(
        {.common = {.sum = losses[i], .samples = losses[i + 1]},
         .steps = count ? static_cast<std::uint64_t>(losses[i + 2]) : 0});
  }
  wrong = ReadSubset(checkpoint.state.ledger.subset);
  if (wrong.empty()) wrong = ReadLocalLosses(checkpoint.state.losses);
  return wrong.empty() ? ReadOneBit(checkpoint.state.one_bit) : wrong;
}

// As long as the file has them, and no longer: whether that fits is the ledger's to say.
std::string Reader::ReadSubset(engine::Subset& subset) {
  if (!Has(kSubsetSamples)) return {};
  const auto rows_of = [&](const char* name, std::size_t element) {
    return file_.tensors.at(name).bytes.size() / element;
  };
  subset.samples.resize(rows_of(kSubsetSamples, sizeof(std::uint64_t)));
  const auto samples = static_cast<std::int64_t>(subset.samples.size());
  std::string wrong = Take(kSubsetSamples, "U64", {samples, 1}, std::span(subset.samples));
  if (!wrong.empty() || !Has(kSubsetWeights)) return wrong;
  subset.weights.resize(rows_of(kSubsetWeights, sizeof(float)));
  const auto weights = static_cast<std::int64_t>(subset.weights.size());
  return Take(kSubsetWeights, "F32", {weights}, std::span(subset.weights));
}

std::string Reader::ReadOneBit(engine::OneBitState& state) {
  const auto tensors = static_cast<std::int64_t>(fit_.segments.size());
  std::string wrong;
  if (Has(kScales)) {
    state.scales.resize(fit_.segments.size());
    wrong = Take(kScales, "F64", {tensors, 1}, std::span(state.scales));
  }
  if (!wrong.empty() || !Has(kLayers)) return wrong;
  std::vector<double> layers(3 * fit_.segments.size());
  wrong = Take(kLayers, "F64", {tensors, 3}, std::span(layers));
  for (std::size_t i = 0; i < layers.size() && wrong.empty(); i += 3) {
    state.layers.push_back({.sum = layers[i], .weight = layers[i + 1], .factor = layers[i + 2]});
  }
  return wrong;
}

std::string Reader::ReadLocalLosses(std::vector<policies::RoundLosses>& rounds) {
  if (!Has(kLocalLosses)) return {};
  std::vector<double> losses(2 * rounds.size());
  std::string wrong =
      Take(kLocalLosses, "F64", {static_cast<std::int64_t>(rounds.size()), 2}, std::span(losses));
  if (!wrong.empty()) return wrong;
  for (std::size_t i = 0; i < rounds.size(); ++i) {
    rounds[i].local = {.sum = losses[2 * i], .samples = losses[2 * i + 1]};
  }
  return {};
}

std::string Reader::Read(Checkpoint& checkpoint) {
  std::string wrong = ReadCounters(checkpoint.state);
  if (wrong.empty()) wrong = ReadFlats(checkpoint);
  if (wrong.empty()) wrong = ReadLists(checkpoint);
  if (wrong.empty()) wrong = ReadBest(checkpoint);
  if (wrong.empty()) wrong = CheckResiduals();
  for (const auto& [name, tensor] : file_.tensors) {
    if (wrong.empty() && !taken_.contains(name)) {
      wrong = "it has a tensor " + data::Quoted(name) + ", this job none";
    }
  }
  if (!wrong.empty()) return wrong;
  return engine::ReasonAgainst(checkpoint.state, {.length = checkpoint.parameters.size(),
                                                  .optimizer_buffers = fit_.optimizer_buffers,
                                                  .segments = fit_.segments.size(),
                                                  .lamb = fit_.lamb,
                                                  .train_samples = fit_.train_samples,
                                                  .data_samples = fit_.data_samples});
}

// What is no whole safetensors file is damaged; a file that cannot be read is not.
absl::StatusOr<tensors::SafetensorsFile> OpenFile(const std::string& path) {
  absl::StatusOr<tensors::SafetensorsFile> file = tensors::ReadSafetensors(path);
  if (file.ok()) return file;
  const bool damaged = absl::IsInvalidArgument(file.status());
  return absl::Status(damaged ? absl::StatusCode::kDataLoss : file.status().code(),
                      "checkpoint: " + std::string(file.status().message()));
}

// OK where a file is a checkpoint, and whole.
absl::Status CheckContent(const std::string& path, const tensors::SafetensorsFile& file) {
  const auto schema = file.metadata.find(kSchemaKey);
  if (schema == file.metadata.end()) {
    return Bad(path, "it is no checkpoint: it has no tactus.schema");
  }
  if (schema->second != std::to_string(kSchema)) {
    return Bad(path, "its schema is " + data::Quoted(schema->second) + ", this worker reads " +
                         std::to_string(kSchema));
  }
  const auto hash = file.metadata.find(kHashKey);
  if (hash == file.metadata.end() || hash->second != HashOf(file.metadata, file.tensors)) {
    return absl::DataLossError("checkpoint: " + data::Quoted(path) +
                               ": it is damaged: its content is not what was written");
  }
  return absl::OkStatus();
}

// Reads all of it into the system's memory, from where a mapped file is read next: what the disk
// does not give back would end the process there, and is an error here.
absl::Status ReadThrough(const std::string& path, const std::stop_token& stop) {
  const auto failed = [&] {
    return absl::InternalError("checkpoint: " + data::Quoted(path) + ": " + std::strerror(errno));
  };
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.open()) return failed();
  std::vector<char> piece(kPieceBytes);
  while (!stop.stop_requested()) {
    const ssize_t size = ::read(file.get(), piece.data(), piece.size());
    if (size == 0) return absl::OkStatus();
    if (size < 0 && errno != EINTR) return failed();
  }
  return absl::CancelledError("checkpoint: " + data::Quoted(path) + ": given up");
}

}  // namespace

absl::Status WriteCheckpoint(const Checkpoint& checkpoint, const cuda::SegmentTable& segments,
                             const std::string& path, const std::stop_token& stop) {
  const EngineState& state = checkpoint.state;
  Texts texts = {{kSchemaKey, std::to_string(kSchema)}};
  engine::VisitCounters(
      state, [&](const std::string& key, const auto& value) { texts[key] = ToText(value); });

  Writer writer(segments);
  writer.AddFlat(kParameterPrefix, checkpoint.parameters);
  for (std::size_t i = 0; i < state.optimizer.size(); ++i) {
    writer.AddFlat(OptimizerPrefix(i), state.optimizer[i]);
  }
  if (!state.block_momentum.empty()) writer.AddFlat(kBlockMomentumPrefix, state.block_momentum);
  if (!state.fresh_moment.empty()) writer.AddFlat(kFreshMomentPrefix, state.fresh_moment);
  writer.AddBuffers(kBuffers, checkpoint.buffers);
  for (NamedTensor& tensor : ResidualTensors(checkpoint.residuals, segments)) {
    writer.Add(std::move(tensor));
  }
  if (checkpoint.best != nullptr) {
    writer.AddFlat(kBestPrefix, checkpoint.best->parameters);
    writer.AddBuffers(kBestBuffers, checkpoint.best->buffers);
  }

  const std::vector<std::uint64_t> edges = EdgesOf(state);
  writer.AddRows<std::uint64_t>(kReturned, "U64", edges, 2);
  const engine::Subset& subset = state.ledger.subset;
  if (!subset.samples.empty()) {
    writer.AddRows<std::uint64_t>(kSubsetSamples, "U64", subset.samples, 1);
  }
  if (!subset.weights.empty()) writer.AddBuffers(kSubsetWeights, subset.weights);
  const std::vector<double> losses = LossesOf(state);
  writer.AddRows<double>(kLosses, "F64", losses, 3);
  const std::vector<double> local_losses = LocalLossesOf(state);
  if (!local_losses.empty()) writer.AddRows<double>(kLocalLosses, "F64", local_losses, 2);
  const std::vector<double>& scales = state.one_bit.scales;
  if (!scales.empty()) writer.AddRows<double>(kScales, "F64", scales, 1);
  const std::vector<double> layers = LayersOf(state);
  if (!layers.empty()) writer.AddRows<double>(kLayers, "F64", layers, 3);
  return writer.Write(std::move(texts), path, stop);
}

absl::StatusOr<bool> IsCheckpoint(const std::string& path) {
  const absl::StatusOr<tensors::SafetensorsFile> file = OpenFile(path);
  if (!file.ok()) return file.status();
  return file->metadata.contains(kSchemaKey);
}

absl::StatusOr<Checkpoint> ReadCheckpoint(const std::string& path, const CheckpointFit& fit) {
  const absl::StatusOr<tensors::SafetensorsFile> file = OpenFile(path);
  if (!file.ok()) return file.status();
  if (absl::Status s = CheckContent(path, *file); !s.ok()) return s;
  Checkpoint checkpoint;
  const std::string wrong = Reader(*file, fit).Read(checkpoint);
  if (!wrong.empty()) return Bad(path, wrong);
  return checkpoint;
}

absl::Status CheckCheckpoint(const std::string& path, const std::stop_token& stop) {
  DropCached(path);
  if (absl::Status s = ReadThrough(path, stop); !s.ok()) return s;
  const absl::StatusOr<tensors::SafetensorsFile> file = OpenFile(path);
  return file.ok() ? CheckContent(path, *file) : file.status();
}

}  // namespace tactus::worker
