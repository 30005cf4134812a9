#include "agent/engine/combine/encodings.h"

#include <algorithm>
#include <utility>

#include "agent/engine/combine/one_bit_encoding.h"
#include "agent/engine/combine/sixteen_bits.h"

namespace tactus::engine {

using Kind = policies::Encoding;

Encodings::Encodings(const EncodingOptions& options, cuda::Device& device,
                     const cuda::SegmentTable& segments)
    : options_(options), device_(device), segments_(segments) {}

void Encodings::Meet(EncodedMembers members) {
  members_ = std::move(members);
  for (const std::unique_ptr<Encoding>& encoding : made_) {
    if (encoding != nullptr) encoding->Meet(members_);
  }
}

Encoding& Encodings::For(Kind kind) {
  std::unique_ptr<Encoding>& encoding = made_[static_cast<std::size_t>(kind)];
  if (encoding == nullptr) {
    encoding = Make(kind);
    encoding->Meet(members_);
  }
  if (in_force_ != nullptr && in_force_ != encoding.get()) {
    in_force_->Forget();
    encoding->Follow();
  }
  in_force_ = encoding.get();
  if (!restored_.empty()) Restore(std::exchange(restored_, {}));
  return *encoding;
}

std::unique_ptr<Encoding> Encodings::Make(Kind kind) {
  const ResidualRound of_round = {.round = round_,
                                  .carried = options_.carries_momentum ? &carried_ : nullptr};
  switch (kind) {
    case Kind::kFloat16:
      return std::make_unique<SixteenBitEncoding>(kFloat16Format, device_);
    case Kind::kBfloat16:
      return std::make_unique<SixteenBitEncoding>(kBfloat16Format, device_);
    case Kind::kDq:
      return std::make_unique<DqEncoding>(options_.dq, options_.seed, round_, device_, segments_);
    case Kind::kSketch:
      return std::make_unique<SketchEncoding>(options_.sketch, options_.seed, of_round, device_,
                                              segments_);
    case Kind::kAdacomp:
      return std::make_unique<AdacompEncoding>(options_.adacomp, of_round, device_, segments_);
    case Kind::kOneBit:
      return std::make_unique<OneBitEncoding>(momentum_, device_, segments_);
    case Kind::kDense:
      break;
  }
  if (options_.dense) return options_.dense(device_, cuda::FlatLength(segments_));
  return std::make_unique<DenseEncoding>();
}

std::vector<Residual> Encodings::Residuals() {
  if (in_force_ != nullptr) return in_force_->Residuals();
  std::vector<Residual> residuals;
  for (auto& [name, values] : restored_) residuals.push_back({.name = name, .values = values});
  return residuals;
}

void Encodings::CopyResiduals(engine::Residuals& copy) {
  const std::vector<Residual> residuals = Residuals();
  std::erase_if(copy, [&](const auto& one) {  // of another encoding
    return std::ranges::find(residuals, one.first, &Residual::name) == residuals.end();
  });
  for (const Residual& residual : residuals) {
    std::vector<float>& values = copy[residual.name];
    values.resize(residual.values.size());
    device_.Copy(residual.values, values);
  }
}

void Encodings::Settle(bool applied) {
  if (in_force_ != nullptr) in_force_->Settle(applied);
}

void Encodings::Forget() {
  restored_.clear();
  if (in_force_ != nullptr) in_force_->Forget();
}

void Encodings::BeginAnew() {
  if (in_force_ == nullptr) return;
  engine::Residuals residuals;
  CopyResiduals(residuals);
  device_.Synchronize();
  Restore(residuals);
}

void Encodings::Restore(const engine::Residuals& residuals) {
  if (in_force_ == nullptr) {
    restored_ = residuals;
    return;
  }
  in_force_->Forget();
  for (const Residual& residual : Residuals()) {
    const auto found = residuals.find(residual.name);
    const bool fits = found != residuals.end() && found->second.size() == residual.values.size();
    if (fits) device_.Copy(found->second, residual.values);
  }
}

}  // namespace tactus::engine
