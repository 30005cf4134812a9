#include "metrics/registry.h"

#include <prometheus/text_serializer.h>

#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "metrics/catalogue.h"
#include "metrics/process_source.h"
#include "runtime/http_server.h"

namespace tactus::metrics {
namespace {

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

std::string WriteText(const MetricsRegistry& registry) {
  return prometheus::TextSerializer().Serialize(registry.Collect());
}

void RouteMetrics(runtime::HttpServer& server,
                  const std::shared_ptr<const MetricsRegistry>& registry) {
  server.Route("/metrics", [registry](const runtime::HttpRequest&) {
    return runtime::HttpResponse{.content_type = "text/plain; version=0.0.4",
                                 .body = WriteText(*registry)};
  });
}

}  // namespace tactus::metrics
