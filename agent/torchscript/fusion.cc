#include "agent/torchscript/fusion.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "agent/worker/clock.h"
#include "base/check.h"

namespace tactus::torchscript {
namespace {

// A pass waits for the others as long as two passes take: who comes later than that is at something
// else. Not less than an engine's step takes, nor so long that somebody would miss it.
constexpr int kPatiencePasses = 2;
constexpr Duration kPatienceLeast = std::chrono::milliseconds(5);
constexpr Duration kPatienceMost = std::chrono::seconds(1);

}  // namespace

// A model whose passes go with others'. All else is its own.
class FusedMember final : public model::Model {
 public:
  FusedMember(Fusion& fusion, std::unique_ptr<model::Model> own, const model::ModelOptions& options,
              cuda::Device& device)
      : fusion_(fusion),
        own_(std::move(own)),
        device_(device),
        member_{.shape = options.device + " " + model::FusedShapeOf(options),
                .options = options,
                .segments = own_->segments()} {
    fusion_.Enter(member_);
  }
  ~FusedMember() override { fusion_.Leave(member_); }

  const cuda::SegmentTable& segments() const override { return own_->segments(); }
  void Bind(std::span<float> parameters, std::span<double> loss_sum) override {
    parameters_ = parameters;
    loss_sum_ = loss_sum;
    own_->Bind(parameters, loss_sum);
  }
  absl::Status TryOut(const model::Examples& examples) override { return own_->TryOut(examples); }
  absl::Status ForwardBackward(const model::Examples& examples,
                               const model::TakeGradient& take) override;
  void ReleaseCachedMemory() override { own_->ReleaseCachedMemory(); }
  absl::StatusOr<model::GradientProxies> Proxies(const model::Examples& examples) override {
    return own_->Proxies(examples);
  }
  absl::StatusOr<model::EvaluationSums> Evaluate(const model::Examples& examples) override {
    return own_->Evaluate(examples);
  }
  std::vector<float> ReadBuffers() const override { return own_->ReadBuffers(); }
  void WriteBuffers(std::span<const float> values) override { own_->WriteBuffers(values); }
  std::optional<std::uint32_t> context() const override { return own_->context(); }
  absl::Status SaveTorchScript(const std::string& path) const override {
    return own_->SaveTorchScript(path);
  }
  absl::Status SaveSafetensors(const std::string& path) const override {
    return own_->SaveSafetensors(path);
  }
  absl::Status CopyTensors(tensors::TensorsCopy& copy) const override {
    return own_->CopyTensors(copy);
  }
  absl::Status LoadSafetensors(const std::string& path) override {
    return own_->LoadSafetensors(path);
  }

 private:
  void AddLoss(double loss);

  Fusion& fusion_;
  const std::unique_ptr<model::Model> own_;
  cuda::Device& device_;
  Fusion::Member member_;
  std::span<float> parameters_;
  std::span<double> loss_sum_;
  std::shared_ptr<const void> gradients_;  // of the last pass: what is queued may still read them
};

// The pass runs on a stream of its own: what this one queued is done before it, and it is done when
// it returns. Nothing of that waits where device and host are one.
absl::Status FusedMember::ForwardBackward(const model::Examples& examples,
                                          const model::TakeGradient& take) {
  TACTUS_CHECK(!parameters_.empty());
  if (examples.count == 0) return own_->ForwardBackward(examples, take);
  if (absl::Status s = model::CheckIndices(own_->segments(), examples); !s.ok()) return s;
  device_.Synchronize();
  gradients_.reset();
  const std::size_t length = cuda::FlatLength(own_->segments());
  Fusion::Request request{.part = {.parameters = parameters_.first(length), .examples = examples}};
  fusion_.Pass(member_, request);
  if (request.alone) {
    const Instant started = worker::Now();
    absl::Status status = own_->ForwardBackward(examples, take);
    fusion_.Note(worker::Now() - started);
    return status;
  }
  if (!request.status.ok()) return request.status;
  gradients_ = request.sums.memory;
  AddLoss(request.sums.loss);
  for (std::size_t i = 0; i < request.sums.gradients.size(); ++i) {
    take({.segment = i, .values = request.sums.gradients[i]});
  }
  return absl::OkStatus();
}

void FusedMember::AddLoss(double loss) {
  std::array<double, 1> sum{};
  device_.Copy(loss_sum_, sum);
  device_.Synchronize();
  sum[0] += loss;
  device_.Copy(sum, loss_sum_);
}

Fusion::Fusion() : patience_(kPatienceMost) {
  thread_ = std::thread([this] { Run(); });  // joined in the destructor
}

Fusion::~Fusion() {
  {
    const threads::MutexLock lock(mutex_);
    TACTUS_CHECK(members_.empty());
    closing_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

std::unique_ptr<model::Model> Fusion::Join(std::unique_ptr<model::Model> own,
                                           const model::ModelOptions& options,
                                           cuda::Device& device) {
  if (!model::WhyNotFused(options).empty()) return own;
  return std::make_unique<FusedMember>(*this, std::move(own), options, device);
}

Fusion::Counts Fusion::counts() {
  const threads::MutexLock lock(mutex_);
  return counts_;
}

void Fusion::Enter(Member& member) {
  const threads::MutexLock lock(mutex_);
  members_.push_back(&member);
}

void Fusion::Leave(Member& member) {
  const threads::MutexLock lock(mutex_);
  TACTUS_CHECK(member.request == nullptr);
  std::erase(members_, &member);
  changed_.NotifyAll();
}

void Fusion::Pass(Member& member, Request& request) {
  const threads::MutexLock lock(mutex_);
  const std::uint64_t samples = request.part.examples.count;
  const std::uint64_t before = std::exchange(member.last_samples, samples);
  member.samples = std::max(samples, before);
  member.awaited = true;
  member.request = &request;
  member.came = worker::Now();
  changed_.NotifyAll();
  while (!request.done) finished_.Wait(mutex_);
}

std::vector<Fusion::Company> Fusion::Companies() const {
  std::map<std::pair<std::string, std::uint64_t>, Company> by_kind;
  for (Member* const member : members_) {
    if (member->awaited) by_kind[{member->shape, member->samples}].push_back(member);
  }
  std::vector<Company> companies;
  for (auto& [kind, company] : by_kind) {
    const bool any =
        std::ranges::any_of(company, [](const Member* one) { return one->request != nullptr; });
    if (any) companies.push_back(std::move(company));
  }
  return companies;
}

Instant Fusion::ReadyAt(const Company& company) const {
  Instant first = Instant::max();
  for (const Member* const member : company) {
    if (member->request != nullptr) first = std::min(first, member->came);
  }
  return first + patience_;
}

bool Fusion::IsReady(const Company& company, Instant now) const {
  const bool all =
      std::ranges::all_of(company, [](const Member* one) { return one->request != nullptr; });
  return all || now >= ReadyAt(company);
}

// Who did not come in time is waited for again when it has come.
std::vector<Fusion::Party> Fusion::TakeParties(Instant now) {
  std::vector<Party> taken;
  for (const Company& company : Companies()) {
    if (!IsReady(company, now)) continue;
    std::map<std::uint64_t, Party> by_samples;
    for (Member* const member : company) {
      member->awaited = member->request != nullptr;
      if (member->awaited) by_samples[member->request->part.examples.count].push_back(member);
    }
    for (auto& [samples, party] : by_samples) taken.push_back(std::move(party));
  }
  for (const Party& party : taken) {
    const bool alone = party.size() == 1;
    (alone ? counts_.alone : counts_.fused) += 1;
    if (!alone) counts_.parts += party.size();
    party.front()->request->alone = alone;
  }
  // Those that go alone need not wait for the others' passes.
  std::ranges::stable_sort(taken, {}, [](const Party& party) { return party.size() > 1; });
  return taken;
}

void Fusion::AwaitChange() {
  std::optional<Instant> next;
  for (const Company& company : Companies()) {
    const Instant at = ReadyAt(company);
    next = next ? std::min(*next, at) : at;
  }
  if (!next) return changed_.Wait(mutex_);
  const Duration left = std::max(*next - worker::Now(), Duration(0));
  static_cast<void>(changed_.WaitUntil(mutex_, std::chrono::steady_clock::now() + left));
}

void Fusion::Run() {
  while (true) {
    std::vector<Party> parties;
    {
      const threads::MutexLock lock(mutex_);
      while (!closing_ && (parties = TakeParties(worker::Now())).empty()) AwaitChange();
      if (closing_) return;
    }
    for (const Party& party : parties) {
      const Instant started = worker::Now();
      if (party.size() > 1) {
        Compute(party);
        Note(worker::Now() - started);
      }
      Finish(party);
    }
  }
}

void Fusion::Note(Duration pass) {
  const threads::MutexLock lock(mutex_);
  patience_ = std::clamp<Duration>(kPatiencePasses * pass, kPatienceLeast, kPatienceMost);
}

void Fusion::Finish(const Party& party) {
  const threads::MutexLock lock(mutex_);
  for (Member* const member : party) std::exchange(member->request, nullptr)->done = true;
  finished_.NotifyAll();
}

// Where memory is short for all at once, in halves from then on; where it is for one, that is said
// to it, and its own batch becomes smaller. A pass that fails for another reason is made again by
// each by itself: whose inputs or numbers were at fault hears of it, and the others go on.
void Fusion::Compute(const Party& party) {
  std::size_t& most =
      most_.try_emplace(party.front()->shape, std::numeric_limits<std::size_t>::max())
          .first->second;
  for (std::size_t begin = 0; begin < party.size();) {
    const std::size_t end = begin + std::min(most, party.size() - begin);
    const absl::Status status = TryCompute(party, begin, end);
    if (absl::IsResourceExhausted(status) && end - begin > 1) {
      most = (end - begin) / 2;
      continue;
    }
    for (std::size_t i = begin; i < end; ++i) {
      Request& request = *party[i]->request;
      if (absl::IsResourceExhausted(status)) request.status = status;
      request.alone = !status.ok() && !absl::IsResourceExhausted(status);
    }
    begin = end;
  }
}

absl::Status Fusion::TryCompute(const Party& party, std::size_t begin, std::size_t end) {
  const Member& first = *party.front();
  std::unique_ptr<model::FusedModel>& model = models_[first.shape];
  if (model == nullptr) {
    model::ModelOptions options = first.options;
    options.stream = nullptr;
    absl::StatusOr<std::unique_ptr<model::FusedModel>> opened =
        model::FusedModel::Open(options, first.segments);
    if (!opened.ok()) return opened.status();
    model = *std::move(opened);
  }
  std::vector<model::FusedPart> parts;
  for (std::size_t i = begin; i < end; ++i) parts.push_back(party[i]->request->part);
  absl::StatusOr<std::vector<model::FusedSums>> sums = model->ForwardBackward(parts);
  if (!sums.ok()) return sums.status();
  for (std::size_t i = begin; i < end; ++i) {
    party[i]->request->sums = std::move((*sums)[i - begin]);
  }
  return absl::OkStatus();
}

}  // namespace tactus::torchscript
