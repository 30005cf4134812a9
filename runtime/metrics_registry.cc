#include "runtime/metrics_registry.h"

#include <prometheus/exposer.h>
#include <prometheus/text_serializer.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <future>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "runtime/metrics_catalogue.h"
#include "runtime/process_source.h"

namespace tactus::runtime {
namespace {

constexpr std::chrono::milliseconds kKnockInterval(10);

// Connects to host:port and leaves; an address that is not numeric, or nobody there, is no harm.
void Knock(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  boost::system::error_code error;
  const auto host = boost::asio::ip::make_address(address.substr(0, colon), error);
  if (error) return;
  const auto port = static_cast<std::uint16_t>(std::atoi(address.c_str() + colon + 1));
  boost::asio::io_context context;
  boost::asio::ip::tcp::socket socket(context);
  socket.connect({host, port}, error);
}

class Endpoint : public MetricsEndpoint {
 public:
  Endpoint(std::unique_ptr<prometheus::Exposer> exposer, std::string address)
      : exposer_(std::move(exposer)), address_(std::move(address)) {}

  // The exposer's thread looks for its end only every 2 s, or when a connection comes: so some
  // come.
  ~Endpoint() override {
    const std::future<void> closed = std::async(std::launch::async, [this] { exposer_.reset(); });
    while (closed.wait_for(kKnockInterval) != std::future_status::ready) Knock(address_);
  }

  const std::string& address() const override { return address_; }

 private:
  std::unique_ptr<prometheus::Exposer> exposer_;
  const std::string address_;
};

const MetricSpec& SpecOf(std::string_view name, MetricKind kind) {
  const MetricSpec& spec = Spec(name);
  TACTUS_CHECK(spec.kind == kind);
  return spec;
}

// Families as prometheus-cpp writes them down.
class Page final : public MetricPage {
 public:
  explicit Page(std::vector<prometheus::MetricFamily> families) : families_(std::move(families)) {}

  void Write(std::string_view metric, std::initializer_list<Label> labels, double value) override {
    if (families_.empty() || families_.back().name != metric) Begin(metric);
    prometheus::ClientMetric& one = families_.back().metric.emplace_back();
    one.label.reserve(labels.size());
    for (const Label& label : labels) {
      one.label.push_back({std::string(label.first), std::string(label.second)});
    }
    const bool counter = families_.back().type == prometheus::MetricType::Counter;
    (counter ? one.counter.value : one.gauge.value) = value;
  }

  std::vector<prometheus::MetricFamily> Take() { return std::move(families_); }

 private:
  void Begin(std::string_view metric) {
    const MetricSpec& spec = Spec(metric);
    TACTUS_CHECK(spec.kind != MetricKind::kHistogram);
    prometheus::MetricFamily& family = families_.emplace_back();
    family.name = metric;
    family.help = spec.help;
    family.type = spec.kind == MetricKind::kCounter ? prometheus::MetricType::Counter
                                                    : prometheus::MetricType::Gauge;
  }

  std::vector<prometheus::MetricFamily> families_;
};

// True for "host:port" with a port of 0 to 65535.
bool IsHostAndPort(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == address.size()) return false;
  const std::string port = address.substr(colon + 1);
  return port.find_first_not_of("0123456789") == std::string::npos && port.size() <= 5 &&
         std::atoi(port.c_str()) <= 65535;
}

}  // namespace

MetricsRegistry::MetricsRegistry(const std::string& version) {
  GaugeFamily("tactus_build_info").Add({{"version", version}}).Set(1);
  Add(std::make_shared<ProcessSource>());
}

prometheus::Family<prometheus::Gauge>& MetricsRegistry::GaugeFamily(std::string_view name) {
  const MetricSpec& spec = SpecOf(name, MetricKind::kGauge);
  return prometheus::BuildGauge()
      .Name(std::string(name))
      .Help(std::string(spec.help))
      .Register(registry_);
}

prometheus::Family<prometheus::Counter>& MetricsRegistry::CounterFamily(std::string_view name) {
  const MetricSpec& spec = SpecOf(name, MetricKind::kCounter);
  return prometheus::BuildCounter()
      .Name(std::string(name))
      .Help(std::string(spec.help))
      .Register(registry_);
}

prometheus::Family<prometheus::Histogram>& MetricsRegistry::HistogramFamily(std::string_view name) {
  const MetricSpec& spec = SpecOf(name, MetricKind::kHistogram);
  return prometheus::BuildHistogram()
      .Name(std::string(name))
      .Help(std::string(spec.help))
      .Register(registry_);
}

std::vector<prometheus::MetricFamily> MetricsRegistry::Collect() const {
  Page page(registry_.Collect());
  for (const std::shared_ptr<MetricSource>& source : sources_) source->Collect(page);
  return page.Take();
}

absl::StatusOr<std::unique_ptr<MetricsEndpoint>> MetricsEndpoint::Open(
    const std::string& address, const std::shared_ptr<MetricsRegistry>& registry) {
  if (!IsHostAndPort(address)) {
    return absl::InvalidArgumentError("found \"" + address + "\", allowed is host:port");
  }
  try {
    auto exposer = std::make_unique<prometheus::Exposer>(address, 1);
    exposer->RegisterCollectable(registry);
    const std::string host = address.substr(0, address.rfind(':') + 1);
    const std::string bound = host + std::to_string(exposer->GetListeningPorts().at(0));
    return std::make_unique<Endpoint>(std::move(exposer), bound);
  } catch (const std::exception&) {
    return absl::UnavailableError(address +
                                  ": cannot listen here; the port is in use or the host is "
                                  "not an address of this machine");
  }
}

std::string WriteText(const MetricsRegistry& registry) {
  return prometheus::TextSerializer().Serialize(registry.Collect());
}

}  // namespace tactus::runtime
