#include "coordinator/store/record_codec.h"

#include <concepts>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

namespace tactus::store {
namespace {

using nlohmann::json;

// Grows when a field changes its meaning; a new field does not need it.
constexpr int kEncodingVersion = 1;

// Fields() names each field once, for both directions: A is Writer or Reader, T the record or its
// const.
template <typename A, typename T>
void Fields(A& archive, T& record);

template <typename T>
constexpr int kEnumMax = -1;
template <>
constexpr int kEnumMax<job::JobState> = static_cast<int>(job::JobState::kCancelled);
template <>
constexpr int kEnumMax<job::DeviceKind> = static_cast<int>(job::DeviceKind::kCuda);
template <>
constexpr int kEnumMax<policies::Synchronization> =
    static_cast<int>(policies::Synchronization::kEveryStep);
template <>
constexpr int kEnumMax<policies::Aggregation> = static_cast<int>(policies::Aggregation::kAverage);
template <>
constexpr int kEnumMax<policies::LearningRateRule> =
    static_cast<int>(policies::LearningRateRule::kConstant);

struct Writer {
  json out = json::object();

  template <typename T>
  void operator()(const char* key, const T& value) {
    out[key] = Encode(value);
  }

  template <typename T>
  static json Encode(const T& value) {
    if constexpr (std::is_enum_v<T>) {
      static_assert(kEnumMax<T> >= 0);
      return static_cast<int>(value);
    } else if constexpr (std::is_arithmetic_v<T> || std::same_as<T, std::string>) {
      return value;
    } else {
      return EncodeCompound(value);
    }
  }

 private:
  template <typename T>
  static json EncodeCompound(const T& record) {
    Writer writer;
    Fields(writer, record);
    return std::move(writer.out);
  }
  static json EncodeCompound(const Duration& duration) { return duration.count(); }
  template <typename Tag>
  static json EncodeCompound(const Id<Tag>& id) {
    return id.value;
  }
  template <typename T>
  static json EncodeCompound(const std::optional<T>& value) {
    return value ? Encode(*value) : json(nullptr);
  }
  template <typename T>
  static json EncodeCompound(const std::vector<T>& items) {
    json out = json::array();
    for (const T& item : items) out.push_back(Encode(item));
    return out;
  }
  static json EncodeCompound(const std::map<std::string, std::string>& items) { return items; }
};

// Throws json::exception where a value has the wrong type; Decode below catches it.
struct Reader {
  const json& in;

  template <typename T>
  void operator()(const char* key, T& value) {
    const auto found = in.find(key);
    if (found != in.end()) Decode(*found, value);
  }

  template <typename T>
  static void Decode(const json& from, T& value) {
    if constexpr (std::is_enum_v<T>) {
      const auto number = from.get<std::int64_t>();
      Require(number >= 0 && number <= kEnumMax<T>, "value outside of its enum");
      value = static_cast<T>(number);
    } else if constexpr (std::is_arithmetic_v<T> || std::same_as<T, std::string>) {
      value = from.get<T>();
    } else {
      DecodeCompound(from, value);
    }
  }

 private:
  static void Require(bool holds, const char* otherwise) {
    if (!holds) throw json::out_of_range::create(401, otherwise, nullptr);
  }
  template <typename T>
  static void DecodeCompound(const json& from, T& record) {
    Require(from.is_object(), "not a map");
    Reader reader{from};
    Fields(reader, record);
  }
  static void DecodeCompound(const json& from, Duration& duration) {
    duration = Duration(from.get<Duration::rep>());
  }
  template <typename Tag>
  static void DecodeCompound(const json& from, Id<Tag>& id) {
    id.value = from.get<std::uint64_t>();
  }
  template <typename T>
  static void DecodeCompound(const json& from, std::optional<T>& value) {
    value.reset();
    if (!from.is_null()) Decode(from, value.emplace());
  }
  template <typename T>
  static void DecodeCompound(const json& from, std::vector<T>& items) {
    Require(from.is_array(), "not a list");
    items.clear();
    for (const json& item : from) Decode(item, items.emplace_back());
  }
  static void DecodeCompound(const json& from, std::map<std::string, std::string>& items) {
    items = from.get<std::map<std::string, std::string>>();
  }
};

template <typename T, typename U>
concept Record = std::same_as<std::remove_const_t<T>, U>;

void VisitPlan(auto& archive, auto& plan) {
  archive("version", plan.version);
  archive("synchronization", plan.synchronization);
  archive("aggregation", plan.aggregation);
  archive("learning_rate_rule", plan.learning_rate_rule);
  archive("batch_sizes", plan.batch_sizes);
  archive("reason", plan.reason);
}

void VisitSettings(auto& archive, auto& settings) {
  archive("name", settings.name);
  archive("workers_min", settings.workers_min);
  archive("workers_max", settings.workers_max);
  archive("device", settings.device);
  archive("batch_policy", settings.batch_policy);
  archive("batch_per_worker", settings.batch_per_worker);
  archive("batch_min", settings.batch_min);
  archive("batch_max", settings.batch_max);
  archive("stop_train_loss", settings.stop_train_loss);
  archive("stop_epochs", settings.stop_epochs);
  archive("stop_time", settings.stop_time);
  archive("stop_rounds", settings.stop_rounds);
}

void VisitMember(auto& archive, auto& member) {
  archive("worker", member.worker);
  archive("node", member.node);
  archive("device", member.device);
  archive("emulated_speed", member.emulated_speed);
}

void VisitArtifact(auto& archive, auto& artifact) {
  archive("path", artifact.path);
  archive("size_bytes", artifact.size_bytes);
}

void VisitResult(auto& archive, auto& result) {
  archive("artifacts", result.artifacts);
  archive("validation_loss", result.validation_loss);
  archive("validation_accuracy", result.validation_accuracy);
  archive("validation_samples", result.validation_samples);
  archive("train_loss", result.train_loss);
  archive("rounds", result.rounds);
  archive("samples", result.samples);
  archive("epochs", result.epochs);
  archive("train_seconds", result.train_seconds);
  archive("stop_reason", result.stop_reason);
  archive("utilisation", result.utilisation);
}

void VisitWorker(auto& archive, auto& worker) {
  archive("batch_size", worker.batch_size);
  archive("samples", worker.samples);
  archive("samples_per_second", worker.samples_per_second);
  archive("idle_ratio", worker.idle_ratio);
}

void VisitProgress(auto& archive, auto& progress) {
  archive("rounds", progress.rounds);
  archive("epoch", progress.epoch);
  archive("epoch_consumed", progress.epoch_consumed);
  archive("epoch_samples", progress.epoch_samples);
  archive("samples", progress.samples);
  archive("loss", progress.loss);
  archive("samples_per_second", progress.samples_per_second);
  archive("elapsed_seconds", progress.elapsed_seconds);
  archive("eta_seconds", progress.eta_seconds);
  archive("plan", progress.plan);
  archive("workers", progress.workers);
}

void VisitJob(auto& archive, auto& record) {
  archive("id", record.id);
  archive("name", record.name);
  archive("uid", record.uid);
  archive("request_id", record.request_id);
  archive("settings", record.settings);
  archive("labels", record.labels);
  archive("state", record.state);
  archive("state_reason", record.state_reason);
  archive("error_field", record.error_field);
  archive("revision", record.revision);
  archive("create_time", record.create_time);
  archive("start_time", record.start_time);
  archive("end_time", record.end_time);
  archive("update_time", record.update_time);
  archive("generation", record.generation);
  archive("newest_plan", record.newest_plan);
  archive("cancel_reason", record.cancel_reason);
  archive("discard", record.discard);
  archive("members", record.members);
  archive("progress", record.progress);
  archive("result", record.result);
}

void VisitRound(auto& archive, auto& round) {
  archive("job", round.job);
  archive("round", round.round);
  archive("epoch", round.epoch);
  archive("samples", round.samples);
  archive("loss", round.loss);
  archive("seconds", round.seconds);
  archive("plan_version", round.plan_version);
  archive("worker_samples", round.worker_samples);
}

template <typename A, typename T>
void Fields(A& archive, T& record) {
  if constexpr (Record<T, policies::Plan>) {
    VisitPlan(archive, record);
  } else if constexpr (Record<T, job::JobSettings>) {
    VisitSettings(archive, record);
  } else if constexpr (Record<T, job::MemberRecord>) {
    VisitMember(archive, record);
  } else if constexpr (Record<T, job::ArtifactRecord>) {
    VisitArtifact(archive, record);
  } else if constexpr (Record<T, job::ResultRecord>) {
    VisitResult(archive, record);
  } else if constexpr (Record<T, job::WorkerProgress>) {
    VisitWorker(archive, record);
  } else if constexpr (Record<T, job::Progress>) {
    VisitProgress(archive, record);
  } else if constexpr (Record<T, job::JobRecord>) {
    VisitJob(archive, record);
  } else {
    static_assert(Record<T, job::RoundRecord>, "name the fields of this record above");
    VisitRound(archive, record);
  }
}

template <typename T>
std::string EncodeRecord(const T& record) {
  Writer writer;
  Fields(writer, record);
  writer.out["encoding"] = kEncodingVersion;
  std::string bytes;
  json::to_cbor(writer.out, bytes);
  return bytes;
}

absl::Status CheckEncoding(const json& in) {
  if (!in.is_object()) return absl::DataLossError("store: a record is damaged");
  const auto version = in.find("encoding");
  if (version == in.end() || !version->is_number_integer()) {
    return absl::DataLossError("store: a record lacks its encoding version");
  }
  if (*version <= kEncodingVersion) return absl::OkStatus();
  return absl::FailedPreconditionError("store: a record has encoding " + version->dump() +
                                       "; this program knows up to " +
                                       std::to_string(kEncodingVersion));
}

// The library throws on an impossible length even when it is asked not to throw, so it is not
// asked.
template <typename T>
absl::StatusOr<T> DecodeRecord(std::string_view bytes) {
  T record;
  try {
    const json in = json::from_cbor(bytes.begin(), bytes.end());
    const absl::Status status = CheckEncoding(in);
    if (!status.ok()) return status;
    Reader reader{in};
    Fields(reader, record);
  } catch (const json::exception& error) {
    return absl::DataLossError(std::string("store: a record is damaged: ") + error.what());
  }
  return record;
}

}  // namespace

std::string EncodeJob(const job::JobRecord& record) { return EncodeRecord(record); }
std::string EncodeRound(const job::RoundRecord& record) { return EncodeRecord(record); }

absl::StatusOr<job::JobRecord> DecodeJob(std::string_view bytes) {
  return DecodeRecord<job::JobRecord>(bytes);
}
absl::StatusOr<job::RoundRecord> DecodeRound(std::string_view bytes) {
  return DecodeRecord<job::RoundRecord>(bytes);
}

}  // namespace tactus::store
