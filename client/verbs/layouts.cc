// `tactus layouts`.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "agent/engine/optimizer.h"
#include "client/text/quantity.h"
#include "client/text/text.h"
#include "client/verbs/words.h"
#include "client/yaml/job_file.h"
#include "coordinator/spec/engine_options.h"
#include "coordinator/spec/mesh_checks.h"
#include "coordinator/spec/resolve.h"
#include "policies/figures.h"
#include "policies/parallelism.h"

namespace tactus::client {
namespace {

constexpr std::uint32_t kDevicesMax = 1024;

// "4@node-1:2.8:16GB"; nothing: it is none.
std::optional<std::vector<policies::MeshDevice>> ParseDevices(const std::string& text) {
  const std::size_t at = text.find('@');
  const std::size_t speed_at = text.find(':', at == std::string::npos ? 0 : at);
  const std::size_t memory_at =
      speed_at == std::string::npos ? speed_at : text.find(':', speed_at + 1);
  if (at == std::string::npos || memory_at == std::string::npos || speed_at == at + 1) return {};
  std::uint32_t count = 0;
  const char* const end = text.data() + at;
  const auto read = std::from_chars(text.data(), end, count);
  const auto speed =
      ParseNumber(std::string_view(text).substr(speed_at + 1, memory_at - speed_at - 1));
  const auto memory = ParseSize(std::string_view(text).substr(memory_at + 1));
  const bool whole = read.ec == std::errc() && read.ptr == end && count >= 1;
  if (!whole || count > kDevicesMax || !speed || !(*speed > 0) || !memory || *memory > 1e18) {
    return {};
  }
  const std::string node = text.substr(at + 1, speed_at - at - 1);
  std::vector<policies::MeshDevice> devices;
  for (std::uint32_t i = 0; i < count; ++i) {
    devices.push_back({.name = node + "/" + std::to_string(i),
                       .node = node,
                       .products_per_second = *speed * 1e12,
                       .memory_bytes = static_cast<std::uint64_t>(*memory)});
  }
  return devices;
}

std::string LayoutName(const policies::MeshShape& shape) {
  if (shape.kind == policies::MeshKind::kNone) return "none";
  return std::string(policies::NameOf(shape.kind)) + " of " + std::to_string(shape.devices);
}

// Layouts that nothing can be said of but that they cannot be had come last.
std::string TableOf(const policies::MeshChoice& choice) {
  std::vector<std::vector<std::string>> rows = {
      {"LAYOUT", "REPLICAS", "SAMPLES/S", "MEMORY", "BATCH MAX", "WHY NOT"}};
  std::vector<policies::MeshAlternative> alternatives = choice.alternatives;
  std::stable_partition(alternatives.begin(), alternatives.end(),
                        [](const auto& each) { return each.replicas > 0; });
  for (const policies::MeshAlternative& each : alternatives) {
    const bool can = each.replicas > 0;
    rows.push_back({LayoutName(each.shape), can ? std::to_string(each.replicas) : "-",
                    can ? policies::Figure(each.samples_per_second) : "-",
                    each.bytes > 0 ? policies::Figure(each.bytes / 1e9) + " GB" : "-",
                    can ? std::to_string(each.batch_max) : "-", can ? "" : each.reason});
  }
  return FormatTable(rows);
}

class LayoutsVerb : public Verb {
 public:
  void Declare(CLI::App& program) override {
    CLI::App* verb = AddVerb(program, "layouts",
                             "Tell what a job's transformer would cost on some devices, whole, "
                             "split 1-D and split 2-D, by arithmetic alone, and which is best");
    AddJobFile(verb, &job_file_);
    AddRepeated(verb, "--device", &device_texts_,
                "So many devices of a node, what each multiplies and its memory: "
                "COUNT@NODE:SPEED:MEMORY, as 4@node-1:2.8:16GB for four that each take 2.8 "
                "million million multiply-adds a second. Again for others")
        ->required();
    verb->add_option("--within", within_, "What a link within a node carries")
        ->capture_default_str();
    verb->add_option("--between", between_, "What a node's link to others carries")
        ->capture_default_str();
    verb->add_option("--latency", latency_, "Of a message, in seconds")
        ->check(CLI::Range(0.0, 10.0))
        ->capture_default_str();
    verb->add_option("--batch", batch_,
                     "Samples of a step, of all replicas together. Default: the job's for as many "
                     "workers as there are devices")
        ->check(WholeNumber(1, 1u << 24));
    verb->add_option("--kind", kind_, "Only layouts of this kind")
        ->check(CLI::IsMember(std::vector<std::string>{"auto", "none", "1d", "2d"}))
        ->capture_default_str();
    verb->add_option("--mesh-devices", ask_.mesh_devices, "Only layouts of so many devices")
        ->check(WholeNumber(1, kDevicesMax));
    AddOverrides(verb, &set_);
  }
  std::string Check() override {
    for (const std::string& text : device_texts_) {
      const auto devices = ParseDevices(text);
      if (!devices) {
        return "--device: found \"" + Printable(text) +
               "\", allowed is COUNT@NODE:SPEED:MEMORY, as 4@node-1:2.8:16GB";
      }
      ask_.devices.insert(ask_.devices.end(), devices->begin(), devices->end());
    }
    if (ask_.devices.size() > kDevicesMax) {
      return "--device: found " + std::to_string(ask_.devices.size()) +
             " devices, allowed are at most " + std::to_string(kDevicesMax);
    }
    const auto within = ParseRate(within_);
    const auto between = ParseRate(between_);
    if (!within || *within < kRateMin) return "--within: allowed is a rate, as 8GB/s";
    if (!between || *between < kRateMin) return "--between: allowed is a rate, as 25gbit";
    ask_.links = {.within = *within, .between = *between, .latency = latency_};
    ask_.any_kind = kind_ == "auto";
    if (kind_ == "1d") ask_.kind = policies::MeshKind::kOneD;
    if (kind_ == "2d") ask_.kind = policies::MeshKind::kTwoD;
    return ReadOverrides(set_, &overrides_);
  }
  Need need() const override { return Need::kNothing; }
  ExitCode Run(const Means& means) override {
    const JobFile file = ReadJobFile(job_file_, overrides_);
    for (const std::string& error : file.errors) means.screen.Say(job_file_ + ": " + error);
    if (!file.errors.empty()) return ExitCode::kUsage;
    if (file.spec.model().builtin() != "bytes-lm") {
      means.screen.Say(job_file_ +
                       ": model.builtin: allowed is bytes-lm, the transformer that can be split");
      return ExitCode::kUsage;
    }
    ReadJob(spec::Resolve(file.spec));
    if (const std::string wrong = WrongShape(); !wrong.empty()) {
      means.screen.Say(wrong);
      return ExitCode::kUsage;
    }
    const policies::MeshChoice choice = policies::ChooseMesh(ask_);
    means.screen.Print(TableOf(choice) + "\n" + choice.reason + "\n");
    if (!choice.idle.empty() && !choice.replicas.empty()) {
      means.screen.Print(CountOf(choice.idle.size(), "device") + " without a place\n");
    }
    return choice.replicas.empty() ? ExitCode::kGeneric : ExitCode::kOk;
  }

 private:
  void ReadJob(const spec::ResolvedSpec& job) {
    const v1::BuiltinOptions& options = job->model().options();
    ask_.sizes = spec::TransformerSizesOf(*job);
    const engine::EngineOptions engine = spec::EngineOptionsOf(job);
    ask_.training.state_buffers =
        static_cast<std::uint32_t>(engine::StateBuffers(engine.optimizer));
    ask_.training.recompute = options.recompute();
    ask_.batch = batch_ > 0 ? batch_ : job->adapt().batch().per_worker() * ask_.devices.size();
  }

  // Of what is asked for alone; what is chosen is right.
  std::string WrongShape() const {
    if (ask_.any_kind || ask_.mesh_devices == 0) return "";
    const std::string reason =
        policies::ReasonAgainst({.kind = ask_.kind, .devices = ask_.mesh_devices}, ask_.sizes);
    return reason.empty() ? "" : "--mesh-devices: " + reason;
  }

  std::string job_file_;
  std::vector<std::string> device_texts_;
  std::string within_ = "8GB/s";
  std::string between_ = "10gbit";
  double latency_ = 2e-5;
  std::uint64_t batch_ = 0;
  std::string kind_ = "auto";
  std::vector<std::string> set_;
  std::vector<Override> overrides_;
  policies::MeshAsk ask_;
};

}  // namespace

std::unique_ptr<Verb> MakeLayouts() { return std::make_unique<LayoutsVerb>(); }

}  // namespace tactus::client
