#include "agent/model/parallel/partitioned_model.h"

#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/script.h>

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "agent/data/field_error.h"
#include "agent/model/builtins.h"
#include "agent/model/parallel/byte_transformer.h"
#include "agent/model/parallel/group.h"
#include "agent/model/parallel/part_builder.h"
#include "agent/model/parallel/partition.h"
#include "agent/model/parallel/split.h"
#include "agent/model/parallel/vocabulary.h"
#include "agent/model/threads.h"
#include "agent/model/torch_device.h"
#include "agent/model/torch_module.h"
#include "agent/model/torch_parameters.h"
#include "base/check.h"

namespace tactus::model {
namespace {

constexpr std::int64_t kClasses = 256;

std::ptrdiff_t PlaceOf(const cuda::Segment& segment) {
  return static_cast<std::ptrdiff_t>(segment.offset);
}

// What the members of a row have brought, by their ranks: each as many samples as the member of the
// mesh that has most of them, of which some may be invented.
struct RowExamples {
  at::Tensor tokens;   // int64 [q n, t]; n = 0: nobody has brought any
  at::Tensor targets;  // int64 [q n t]; below 0 for samples that are invented
};

// int64 [count, positions] over the bytes.
at::Tensor OverBytes(std::span<const std::byte> bytes, std::int64_t count, std::int64_t positions) {
  return torch::from_blob(const_cast<std::byte*>(bytes.data()), {count, positions},
                          at::TensorOptions().dtype(at::kLong));
}

class SplitBytesLm final : public PartitionedModel {
 public:
  using Groups = std::pair<collective::Transport*, collective::Transport*>;
  // groups: row and column, both null where the member has not joined any.
  SplitBytesLm(const ModelOptions& options, const Layout& layout, const TorchDevice& device,
               const Groups& groups)
      : options_(options),
        device_(device),
        layout_(layout),
        row_(groups.first != nullptr ? Group(*groups.first) : Group()),
        column_(groups.second != nullptr ? Group(*groups.second) : Group()) {
    Group::Pair(row_, column_);
  }

  // The parts of construction that can fail.
  absl::Status Open();
  absl::Status Build();

  const cuda::SegmentTable& segments() const override { return parameters_->segments(); }
  const collective::MeshShape& shape() const override { return layout_.shape; }
  const std::vector<bool>& counts() const override { return counts_; }
  const std::vector<bool>& copies() const override { return copies_; }

  void Bind(std::span<float> parameters, std::span<double> loss_sum) noexcept override {
    const OnStream on_stream(device_);
    parameters_->Bind(parameters);
    TACTUS_CHECK(loss_sum.size() == 1);
    bound_ = parameters;
    loss_sum_ = torch::from_blob(loss_sum.data(), {}, OnDevice(at::kDouble));
  }

  absl::Status Check(const Examples& examples) const override;

  absl::Status TryOut(const Examples& examples) override;
  absl::Status ForwardBackward(const Examples& examples, const TakeGradient& take) override;
  void ReleaseCachedMemory() override {
    if (!device_.is_host()) ReleaseCudaCache();
  }
  // A member has a part of what a loss's gradients are taken by.
  absl::StatusOr<GradientProxies> Proxies(const Examples&) override {
    return absl::UnimplementedError("a model over a mesh gives no proxies of its gradients");
  }
  absl::StatusOr<EvaluationSums> Evaluate(const Examples& examples) override;

  // There are none.
  std::vector<float> ReadBuffers() const noexcept override { return {}; }
  void WriteBuffers(std::span<const float> values) noexcept override {
    TACTUS_CHECK(values.empty());
  }

  std::optional<std::uint32_t> context() const override {
    return static_cast<std::uint32_t>(sizes_.context);
  }

  absl::Status SaveTorchScript(const std::string& path) const override {
    return WithDense([&path](const torch::jit::Module& dense) { return SaveModule(dense, path); });
  }
  absl::Status SaveSafetensors(const std::string& path) const override {
    return WithDense([&path](const torch::jit::Module& dense) { return SaveTensors(dense, path); });
  }
  absl::Status CopyTensors(tensors::TensorsCopy& copy) const override {
    copy.tensors.clear();
    return WithDense(
        [&copy](const torch::jit::Module& dense) { return model::CopyTensors(dense, copy); });
  }
  absl::Status LoadSafetensors(const std::string& path) override;

  absl::StatusOr<bool> Join(const collective::MeshGroups& groups) override;
  absl::StatusOr<std::uint64_t> MostOf(std::uint64_t own) override;

  const cuda::SegmentTable& dense_segments() const override { return dense_; }
  absl::StatusOr<std::vector<float>> GatherFlat(std::span<const float> own) override;
  std::vector<float> CutFlat(std::span<const float> dense) const override {
    TACTUS_CHECK(dense.size() == cuda::FlatLength(dense_));
    return layout_.Cut(dense, dense_, segments());
  }
  std::vector<float> JoinFlat(std::span<const std::span<const float>> by_place) const override {
    return layout_.Join(by_place, dense_, segments());
  }
  absl::Status SaveDense(std::span<const float> dense, const std::string& torchscript,
                         const std::string& safetensors) const override;

  Volume TakeMoved() override {
    const Volume moved = row_.volume() + column_.volume();
    row_.ClearVolume();
    column_.ClearVolume();
    return moved;
  }

 private:
  void MakeTransformer();
  bool writes() const { return layout_.place.row == 0 && layout_.place.column == 0; }
  // Of all members of the mesh. Throws LostMesh.
  std::int64_t Most(std::int64_t own);
  // Waits for what the others bring. Throws LostMesh.
  RowExamples Gather(const Examples& examples);
  at::TensorOptions OnDevice(at::ScalarType type) const {
    return at::TensorOptions().dtype(type).device(device_.device());
  }
  // Of a number for each position of the row's samples, the sum of those of the member's own, over
  // the positions of a sample, in float64.
  at::Tensor OwnSum(const at::Tensor& of_row, const RowExamples& examples) const;
  at::Tensor Losses(const at::Tensor& logits, const at::Tensor& targets) {
    return SplitCrossEntropy(row_, logits, targets, kClasses);
  }
  void Pass(const Examples& examples, const TakeGradient& take, at::Tensor loss_sum);
  // What the pass has of the groups is as it should be, or it throws LostMesh.
  void Settle() {
    row_.Settle();
    column_.Settle();
  }
  // The segments' gradients, which are in this device's memory, as tensors over them.
  std::vector<at::Tensor> OverGradients(const std::vector<SegmentGradient>& gradients) const;
  void SumOverColumn(const std::vector<SegmentGradient>& shared);
  void TakeFirstOfRow(const std::vector<SegmentGradient>& copied);

  // Gathers the dense model and, on the member that writes, calls `write` with it.
  absl::Status WithDense(const std::function<absl::Status(const torch::jit::Module&)>& write) const;
  at::Tensor GatherDense(const std::string& name, const at::Tensor& own) const;

  // An exception of libtorch's or the mesh's as an error. The others would wait for this member.
  absl::Status EndMesh(const std::exception& error) const;

  const ModelOptions options_;
  const TorchDevice device_;
  BytesLmSizes sizes_;
  Layout layout_;
  // What is saved is gathered by them, too.
  mutable Group row_;
  mutable Group column_;
  torch::jit::Module module_;
  std::map<std::string, Part> parts_;  // by name
  std::unique_ptr<FlatParameters> parameters_;
  cuda::SegmentTable dense_;  // in the dense model's shapes
  std::span<float> bound_;    // empty: not yet
  std::vector<bool> shared_;  // gradients of these are summed over the column
  std::vector<bool> copied_;  // and these are whole on all members of the row
  bool unlike_ = false;       // whose arithmetic differs
  std::vector<bool> counts_;
  std::vector<bool> copies_;
  std::unique_ptr<ByteTransformer> transformer_;
  at::Tensor loss_sum_;  // over the caller's number
};

absl::Status SplitBytesLm::Open() {
  const absl::StatusOr<BytesLmSizes> sizes = ReadBytesLmSizes(options_);
  if (!sizes.ok()) return sizes.status();
  sizes_ = *sizes;
  const OnStream on_stream(device_);
  return Build();
}

absl::Status SplitBytesLm::Build() {
  PartBuilder builder(layout_, options_.seed);
  try {
    module_ = builder.Build(BytesLm(sizes_), "");
  } catch (const std::exception& error) {
    return TorchError("model.builtin", error);
  }
  parts_ = builder.TakeParts();
  absl::StatusOr<std::unique_ptr<FlatParameters>> parameters =
      FlatParameters::Of(module_, "model.builtin");
  if (!parameters.ok()) return parameters.status();
  parameters_ = *std::move(parameters);
  try {
    device_.Move(module_);
  } catch (const std::exception& error) {
    return TorchError("model.builtin", error);
  }
  dense_ = parameters_->segments();
  shared_.clear();
  copied_.clear();
  counts_.clear();
  copies_.clear();
  for (cuda::Segment& segment : dense_) {
    const Part& part = parts_.at(segment.name);
    shared_.push_back(part.shared_by_column && layout_.shape.rows > 1);
    copied_.push_back(!part.is_cut() && layout_.shape.columns > 1);
    counts_.push_back((part.is_cut() || layout_.place.column == 0) &&
                      (!part.shared_by_column || layout_.place.row == 0));
    copies_.push_back(shared_.back() || copied_.back());
    segment.shape = part.dense;
    segment.length = 1;
    for (const std::int64_t size : part.dense) segment.length *= static_cast<std::size_t>(size);
  }
  cuda::AssignOffsets(dense_);
  MakeTransformer();
  return absl::OkStatus();
}

void SplitBytesLm::MakeTransformer() {
  std::unique_ptr<Split> split = layout_.kind == MeshKind::k2d
                                     ? MakeGridSplit({.row = row_, .column = column_})
                                     : MakeLineSplit(row_);
  transformer_ =
      std::make_unique<ByteTransformer>(sizes_, options_.recompute, std::move(split), module_);
}

// The transformer has its place from the groups, and weights are drawn for the place.
absl::StatusOr<bool> SplitBytesLm::Join(const collective::MeshGroups& groups) {
  collective::Transport& row = *groups.row;
  collective::Transport& column = *groups.column;
  unlike_ = groups.unlike;
  TACTUS_CHECK(row.size() == layout_.shape.columns && column.size() == layout_.shape.rows);
  const collective::Place place{.row = column.rank(), .column = row.rank()};
  row_ = Group(row);
  column_ = Group(column);
  Group::Pair(row_, column_);
  const bool moves = place != layout_.place;
  if (!moves) return false;
  layout_.place = place;
  const OnStream on_stream(device_);
  if (absl::Status built = Build(); !built.ok()) return built;
  if (!bound_.empty()) parameters_->Bind(bound_);
  return true;
}

absl::StatusOr<std::uint64_t> SplitBytesLm::MostOf(std::uint64_t own) {
  try {
    return static_cast<std::uint64_t>(Most(static_cast<std::int64_t>(own)));
  } catch (const std::exception& error) {
    return EndMesh(error);
  }
}

absl::Status SplitBytesLm::EndMesh(const std::exception& error) const {
  const bool lost = dynamic_cast<const LostMesh*>(&error) != nullptr;
  if (!lost) row_.Abort(std::string("a member has failed: ") + OneLine(error));
  row_.Forget();
  column_.Forget();
  if (!lost) return TorchError("model", error);
  return data::AtField("model.options.mesh", absl::UnavailableError(error.what()));
}

std::int64_t SplitBytesLm::Most(std::int64_t own) {
  const at::Tensor of_row =
      row_.AllGather(at::full({1}, own, at::TensorOptions().dtype(at::kFloat)));
  const at::Tensor of_mesh = column_.AllGather(of_row.max().view({1}));
  return static_cast<std::int64_t>(of_mesh.max().item<float>());
}

RowExamples SplitBytesLm::Gather(const Examples& examples) {
  TACTUS_CHECK(examples.target_spec.shape.size() == 1);
  const std::int64_t positions = examples.target_spec.shape.front();
  const auto count = static_cast<std::int64_t>(examples.count);
  const at::TensorOptions floats = at::TensorOptions().dtype(at::kFloat);
  const std::int64_t each = Most(count);
  if (each == 0) return {at::empty({0, positions}, at::kLong), at::empty({0}, at::kLong)};
  // Bytes and -1 as float32, which is what groups carry.
  const at::Tensor own = at::zeros({2, each, positions}, floats);
  own[1].fill_(-1);
  if (count > 0) {
    own[0].narrow(0, 0, count).copy_(OverBytes(examples.inputs, count, positions));
    own[1].narrow(0, 0, count).copy_(OverBytes(examples.targets, count, positions));
  }
  // Examples come from the host, and go to the device when all are there.
  const at::Tensor all = device_.Bring(row_.AllGather(own).to(at::kLong));  // [q, 2, n, t]
  return {.tokens = all.select(1, 0).reshape({-1, positions}),
          .targets = all.select(1, 1).reshape({-1})};
}

at::Tensor SplitBytesLm::OwnSum(const at::Tensor& of_row, const RowExamples& examples) const {
  const at::Tensor own = of_row.detach().view({row_.size(), -1})[row_.rank()];
  return own.sum().to(at::kDouble).div_(static_cast<double>(examples.tokens.size(1)));
}

void SplitBytesLm::Pass(const Examples& examples, const TakeGradient& take, at::Tensor loss_sum) {
  std::vector<SegmentGradient> shared;
  std::vector<SegmentGradient> copied;
  const TakeGradient sort = [&](SegmentGradient gradient) {
    if (shared_[gradient.segment]) {
      shared.push_back(std::move(gradient));
    } else if (unlike_ && copied_[gradient.segment]) {
      copied.push_back(std::move(gradient));
    } else {
      take(std::move(gradient));
    }
  };
  FlatParameters::Pass pass(*parameters_, sort);
  const RowExamples of_row = Gather(examples);
  const bool any = of_row.tokens.size(0) > 0;
  if (any) {
    const at::Tensor losses = Losses(transformer_->Logits(of_row.tokens), of_row.targets);
    loss_sum.add_(OwnSum(losses, of_row));  // before the last gradient is taken
    (losses.sum() / static_cast<double>(of_row.tokens.size(1))).backward();
  }
  const absl::Status complete = pass.Complete();
  TACTUS_CHECK(complete.ok());  // the model is ours: no gradient comes twice
  if (any && !shared.empty()) SumOverColumn(shared);
  if (any && !copied.empty()) TakeFirstOfRow(copied);
  Settle();
  for (std::vector<SegmentGradient>* const late : {&shared, &copied}) {
    for (SegmentGradient& gradient : *late) take(std::move(gradient));
  }
}

std::vector<at::Tensor> SplitBytesLm::OverGradients(
    const std::vector<SegmentGradient>& gradients) const {
  std::vector<at::Tensor> tensors;
  for (const SegmentGradient& gradient : gradients) {
    TACTUS_CHECK(gradient.values != nullptr);
    const auto length = static_cast<std::int64_t>(segments()[gradient.segment].length);
    tensors.push_back(
        torch::from_blob(const_cast<float*>(gradient.values), {length}, OnDevice(at::kFloat)));
  }
  return tensors;
}

// tensors <- `all`, which has them one behind the other.
void CopyInto(const std::vector<at::Tensor>& tensors, const at::Tensor& all) {
  std::int64_t begin = 0;
  for (const at::Tensor& tensor : tensors) {
    tensor.copy_(all.narrow(0, begin, tensor.size(0)));
    begin += tensor.size(0);
  }
}

// All that belongs to the whole column in one sum.
void SplitBytesLm::SumOverColumn(const std::vector<SegmentGradient>& shared) {
  const at::NoGradGuard no_grad;
  const std::vector<at::Tensor> gradients = OverGradients(shared);
  const at::Tensor sums = at::cat(gradients);
  column_.AllSum(sums);
  CopyInto(gradients, sums);
}

void SplitBytesLm::TakeFirstOfRow(const std::vector<SegmentGradient>& copied) {
  const at::NoGradGuard no_grad;
  const std::vector<at::Tensor> gradients = OverGradients(copied);
  CopyInto(gradients, row_.StartBroadcast(at::cat(gradients), 0).Take());
}

absl::Status SplitBytesLm::Check(const Examples& examples) const {
  const bool fits = examples.input_specs.size() == 1 &&
                    examples.input_specs[0].type == data::ElementType::kInt64 &&
                    examples.input_specs[0].shape.size() == 1 &&
                    examples.target_spec.type == data::ElementType::kInt64 &&
                    examples.target_spec.shape == examples.input_specs[0].shape &&
                    examples.target_spec.shape[0] <= sizes_.context;
  if (fits) return absl::OkStatus();
  return data::AtField(
      "data", absl::InvalidArgumentError("bytes-lm takes int64 tokens [n, t] and as many targets, "
                                         "t up to " +
                                         std::to_string(sizes_.context)));
}

absl::Status SplitBytesLm::TryOut(const Examples& examples) {
  TACTUS_CHECK(parameters_->bound());
  if (absl::Status fits = Check(examples); !fits.ok()) return fits;
  const OnStream on_stream(device_);
  try {
    Pass(
        examples, [](const SegmentGradient&) {}, at::zeros({}, OnDevice(at::kDouble)));
    return absl::OkStatus();
  } catch (const std::exception& error) {
    return EndMesh(error);
  }
}

absl::Status SplitBytesLm::ForwardBackward(const Examples& examples, const TakeGradient& take) {
  TACTUS_CHECK(parameters_->bound());
  const OnStream on_stream(device_);
  try {
    Pass(examples, take, loss_sum_);
    return absl::OkStatus();
  } catch (const std::exception& error) {
    return EndMesh(error);
  }
}

absl::StatusOr<EvaluationSums> SplitBytesLm::Evaluate(const Examples& examples) {
  EvaluationSums sums{.has_accuracy = true, .samples = examples.count};
  const OnStream on_stream(device_);
  const at::NoGradGuard no_grad;
  try {
    const RowExamples of_row = Gather(examples);
    if (of_row.tokens.size(0) == 0) return sums;
    const at::Tensor logits = transformer_->Logits(of_row.tokens);
    const at::Tensor losses = OwnSum(Losses(logits, of_row.targets), of_row);
    const at::Tensor right =
        OwnSum(SplitRightAnswers(row_, logits, of_row.targets, kClasses), of_row);
    Settle();
    sums.loss_sum = losses.item<double>();
    sums.correct_sum = right.item<double>();
  } catch (const std::exception& error) {
    return EndMesh(error);
  }
  return sums;
}

// In the host's memory, as files are.
at::Tensor SplitBytesLm::GatherDense(const std::string& name, const at::Tensor& own) const {
  const Part& part = parts_.at(name);
  const bool along_row = part.is_cut();
  const bool along_column = along_row && !part.shared_by_column;
  const at::Tensor row = along_row ? row_.AllGather(own) : own.unsqueeze(0);
  const at::Tensor all = along_column ? column_.AllGather(row) : row.unsqueeze(0);
  at::Tensor dense = at::empty(part.dense, own.options());
  for (int i = 0; i < all.size(0); ++i) {
    for (int j = 0; j < all.size(1); ++j) {
      const Part theirs = layout_.PartOf(name, part.dense, {.row = i, .column = j});
      PlacePart(theirs, Values(all[i][j]), Values(dense));
    }
  }
  return dense;
}

absl::Status SplitBytesLm::WithDense(
    const std::function<absl::Status(const torch::jit::Module&)>& write) const {
  const OnStream on_stream(device_);
  const at::NoGradGuard no_grad;
  try {
    absl::StatusOr<torch::jit::Module> dense = absl::UnknownError("another member's");
    std::map<std::string, at::Tensor> tensors;
    if (writes()) dense = BuildModule(BytesLm(sizes_), options_.seed);
    if (dense.ok()) {
      for (const auto& parameter : dense->named_parameters()) {
        tensors[parameter.name] = parameter.value;
      }
    }
    // Also when there is no memory for it: the others gather and wait for this member's parts.
    for (const auto& parameter : module_.named_parameters()) {
      const at::Tensor whole = GatherDense(parameter.name, parameter.value.detach().cpu());
      if (dense.ok()) tensors.at(parameter.name).copy_(whole);
    }
    if (!writes()) return absl::OkStatus();
    return dense.ok() ? write(*dense) : dense.status();
  } catch (const std::exception& error) {
    return EndMesh(error);
  }
}

// Tensor by tensor, so that the others need memory for the largest of them alone.
absl::StatusOr<std::vector<float>> SplitBytesLm::GatherFlat(std::span<const float> own) {
  TACTUS_CHECK(own.size() == cuda::FlatLength(segments()));
  const at::NoGradGuard no_grad;
  try {
    std::vector<float> flat(writes() ? cuda::FlatLength(dense_) : 0);
    for (std::size_t i = 0; i < dense_.size(); ++i) {
      const cuda::Segment& segment = segments()[i];
      const at::Tensor part = torch::from_blob(const_cast<float*>(own.data()) + segment.offset,
                                               segment.shape, at::TensorOptions(at::kFloat));
      const at::Tensor whole = GatherDense(segment.name, part);
      if (!flat.empty()) std::ranges::copy(Values(whole), flat.begin() + PlaceOf(dense_[i]));
    }
    return flat;
  } catch (const std::exception& error) {
    return EndMesh(error);
  }
}

absl::Status SplitBytesLm::SaveDense(std::span<const float> dense, const std::string& torchscript,
                                     const std::string& safetensors) const {
  TACTUS_CHECK(dense.size() == cuda::FlatLength(dense_));
  const at::NoGradGuard no_grad;
  try {
    absl::StatusOr<torch::jit::Module> module = BuildModule(BytesLm(sizes_), options_.seed);
    if (!module.ok()) return module.status();
    std::map<std::string, at::Tensor> tensors;
    for (const auto& parameter : module->named_parameters()) {
      tensors[parameter.name] = parameter.value;
    }
    for (const cuda::Segment& segment : dense_) {
      std::ranges::copy(dense.subspan(segment.offset, segment.length),
                        Values(tensors.at(segment.name)).begin());
    }
    if (absl::Status saved = SaveModule(*module, torchscript); !saved.ok()) return saved;
    return SaveTensors(*module, safetensors);
  } catch (const std::exception& error) {
    return TorchError("model", error);
  }
}

absl::Status SplitBytesLm::LoadSafetensors(const std::string& path) {
  const absl::StatusOr<tensors::SafetensorsFile> file = tensors::ReadSafetensors(path);
  if (!file.ok()) return file.status();
  std::vector<tensors::WantedTensor> wanted;
  for (const auto& [name, part] : parts_) {
    wanted.push_back({.name = name, .type = "F32", .shape = part.dense});
  }
  const std::string differences = tensors::DifferencesFrom(*file, wanted);
  if (!differences.empty()) {
    return absl::InvalidArgumentError(data::Quoted(path) + ": " + differences);
  }
  const OnStream on_stream(device_);
  const at::NoGradGuard no_grad;
  for (const auto& parameter : module_.named_parameters()) {
    const Part& part = parts_.at(parameter.name);
    // Bytes of a file are not aligned: by way of a tensor that is.
    const at::Tensor dense = at::empty(part.dense, at::TensorOptions(at::kFloat));
    const std::span<const std::byte> bytes = file->tensors.at(parameter.name).bytes;
    std::ranges::copy(bytes, std::as_writable_bytes(Values(dense)).begin());
    const at::Tensor block = at::empty(part.Shape(), dense.options());
    CopyPart(part, Values(dense), Values(block));
    at::Tensor(parameter.value).copy_(block);
  }
  return absl::OkStatus();
}

absl::Status Only(const std::string& field, bool holds, const std::string& what) {
  if (holds) return absl::OkStatus();
  return data::AtField(field, absl::InvalidArgumentError(
                                  "a mesh, and model.options.recompute, have " + what + " alone"));
}

absl::Status CheckLimits(const ModelOptions& options) {
  absl::Status status =
      Only("model.precision", options.precision == Precision::kFloat32, "float32");
  status.Update(Only("model.loss", options.loss == "cross_entropy", "cross_entropy"));
  status.Update(Only("model.output", options.output.empty(), "the model's one output"));
  status.Update(Only("model.builtin", options.builtin == "bytes-lm", "bytes-lm"));
  return status;
}

// place: where the groups say, or row 0 and column 0 without them.
absl::StatusOr<std::unique_ptr<PartitionedModel>> Make(const ModelOptions& options,
                                                       const SplitBytesLm::Groups& groups) {
  const absl::Status limits = CheckLimits(options);
  if (!limits.ok()) return limits;
  const absl::StatusOr<collective::MeshShape> shape = MeshShapeOf(options);
  if (!shape.ok()) return shape.status();
  const absl::StatusOr<TorchDevice> device = TorchDevice::Open(options.device, options.stream);
  if (!device.ok()) return device.status();
  TACTUS_CHECK(options.threads >= 1);
  SetComputeThreads(options.threads);
  torch::jit::setGraphExecutorOptimize(false);  // as Model::Open
  Layout layout{.kind = options.mesh.kind, .shape = *shape};
  const auto [row, column] = groups;
  if (row != nullptr) {
    TACTUS_CHECK(row->size() == shape->columns && column->size() == shape->rows);
    layout.place = {.row = column->rank(), .column = row->rank()};
  }
  auto model = std::make_unique<SplitBytesLm>(options, layout, *device, groups);
  const absl::Status opened = model->Open();
  if (!opened.ok()) return opened;
  return model;
}

}  // namespace

absl::StatusOr<std::unique_ptr<PartitionedModel>> PartitionedModel::Open(
    const ModelOptions& options, collective::Transport& row, collective::Transport& column) {
  return Make(options, {&row, &column});
}

absl::StatusOr<std::unique_ptr<PartitionedModel>> PartitionedModel::OpenApart(
    const ModelOptions& options) {
  return Make(options, {nullptr, nullptr});
}

}  // namespace tactus::model
