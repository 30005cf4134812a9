#include "coordinator/access/provenance.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/time/time.h"
#include "runtime/now.h"
#include "runtime/sha256.h"

namespace tactus::access {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kStatementType[] = "https://in-toto.io/Statement/v1";
constexpr char kPredicateType[] = "https://slsa.dev/provenance/v1";
constexpr char kBuildType[] = "urn:tactus:training-job:v1";
constexpr std::size_t kFilesMax = 65'536;

Json FileOf(const Provenance::File& file) {
  Json fields = {{"name", file.name}};
  if (!file.sha256.empty()) fields["digest"] = {{"sha256", file.sha256}};
  return fields;
}

Json ParametersOf(const Provenance& record) {
  Json spec = Json::parse(record.spec, nullptr, false);
  if (spec.is_discarded()) spec = Json::object();
  return {{"job", record.job},
          {"submittedBy", record.owner},
          {"spec", std::move(spec)},
          {"labels", record.labels},
          {"from", record.from}};
}

Json NodesOf(const Provenance& record) {
  Json nodes = Json::array();
  for (const Provenance::Node& node : record.nodes) {
    nodes.push_back({{"name", node.name}, {"id", node.id}, {"devices", node.devices}});
  }
  return nodes;
}

Json InputsOf(const Provenance& record) {
  Json inputs = Json::array();
  for (const Provenance::Input& input : record.inputs) {
    Json fields = {{"name", input.field}, {"uri", "tactus:" + input.file}};
    if (!input.sha256.empty()) fields["digest"] = {{"sha256", input.sha256}};
    inputs.push_back(std::move(fields));
  }
  if (!record.from.empty()) inputs.push_back({{"name", "from"}, {"uri", "tactus:" + record.from}});
  return inputs;
}

// SLSA has no place for when it was signed; names of others begin with whose they are.
Json RunOf(const Provenance& record) {
  Json metadata = {{"invocationId", record.uid}};
  if (record.started > 0) metadata["startedOn"] = runtime::UtcText(record.started);
  metadata["finishedOn"] = runtime::UtcText(record.ended);
  metadata["tactus_createdOn"] = runtime::UtcText(record.created);
  metadata["tactus_signedOn"] = runtime::UtcText(record.signed_at);
  Json plans = FileOf(record.plans);
  plans["uri"] = "tactus:" + record.job + "/decisions";
  return {{"builder", {{"id", record.builder}, {"version", {{"tactus", record.version}}}}},
          {"metadata", std::move(metadata)},
          {"byproducts", Json::array({std::move(plans)})}};
}

// ---- Reading

absl::Status NoStatement(const std::string& what) {
  return absl::InvalidArgumentError("statement: " + what);
}

// What a path of names leads to; null: there is nothing.
const Json* At(const Json& fields, std::initializer_list<const char*> path) {
  const Json* at = &fields;
  for (const char* const name : path) {
    if (!at->is_object()) return nullptr;
    const auto found = at->find(name);
    if (found == at->end()) return nullptr;
    at = &*found;
  }
  return at;
}

std::string TextAt(const Json& fields, std::initializer_list<const char*> path) {
  const Json* const found = At(fields, path);
  return found != nullptr && found->is_string() ? found->get<std::string>() : "";
}

std::int64_t TimeAt(const Json& fields, std::initializer_list<const char*> path) {
  absl::Time time;
  std::string error;
  const std::string text = TextAt(fields, path);
  if (text.empty() || !absl::ParseTime(absl::RFC3339_full, text, &time, &error)) return 0;
  return absl::ToUnixSeconds(time);
}

// Errors: the one list that has something else than files with hashes.
absl::StatusOr<std::vector<Provenance::File>> FilesAt(const Json* list, const std::string& what) {
  if (list == nullptr || !list->is_array()) return NoStatement("has no " + what);
  if (list->size() > kFilesMax) return NoStatement(what + " has more than 65,536 files");
  std::vector<Provenance::File> files;
  for (const Json& one : *list) {
    Provenance::File file = {.name = TextAt(one, {"name"}),
                             .sha256 = TextAt(one, {"digest", "sha256"})};
    if (file.name.empty() || !runtime::IsSha256(file.sha256)) {
      return NoStatement(what + " has a file without name or sha256");
    }
    files.push_back(std::move(file));
  }
  return files;
}

}  // namespace

std::string StatementOf(const Provenance& record) {
  Json subject = Json::array();
  for (const Provenance::File& file : record.files) subject.push_back(FileOf(file));
  const Json inside = {{"nodes", NodesOf(record)},
                       {"attempts", record.attempts},
                       {"stopReason", record.stop_reason}};
  const Json definition = {{"buildType", kBuildType},
                           {"externalParameters", ParametersOf(record)},
                           {"internalParameters", inside},
                           {"resolvedDependencies", InputsOf(record)}};
  const Json statement = {
      {"_type", kStatementType},
      {"subject", std::move(subject)},
      {"predicateType", kPredicateType},
      {"predicate", {{"buildDefinition", definition}, {"runDetails", RunOf(record)}}}};
  return statement.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

absl::StatusOr<Provenance> ReadStatement(const std::string& text) {
  const Json fields = Json::parse(text, nullptr, false);
  if (!fields.is_object()) return NoStatement("is no JSON object");
  if (TextAt(fields, {"_type"}) != kStatementType) return NoStatement("is none of in-toto's");
  if (TextAt(fields, {"predicateType"}) != kPredicateType)
    return NoStatement("is no provenance of SLSA's");
  const Json* const definition = At(fields, {"predicate", "buildDefinition"});
  const Json* const run = At(fields, {"predicate", "runDetails"});
  if (definition == nullptr || run == nullptr)
    return NoStatement("has no buildDefinition or runDetails");
  if (TextAt(*definition, {"buildType"}) != kBuildType) return NoStatement("is of no training job");
  absl::StatusOr<std::vector<Provenance::File>> files = FilesAt(At(fields, {"subject"}), "subject");
  if (!files.ok()) return files.status();
  absl::StatusOr<std::vector<Provenance::File>> plans =
      FilesAt(At(*run, {"byproducts"}), "byproducts");
  if (!plans.ok()) return plans.status();
  Provenance record = {.files = *std::move(files),
                       .job = TextAt(*definition, {"externalParameters", "job"}),
                       .owner = TextAt(*definition, {"externalParameters", "submittedBy"}),
                       .builder = TextAt(*run, {"builder", "id"}),
                       .version = TextAt(*run, {"builder", "version", "tactus"}),
                       .created = TimeAt(*run, {"metadata", "tactus_createdOn"}),
                       .started = TimeAt(*run, {"metadata", "startedOn"}),
                       .ended = TimeAt(*run, {"metadata", "finishedOn"}),
                       .signed_at = TimeAt(*run, {"metadata", "tactus_signedOn"})};
  if (!plans->empty()) record.plans = plans->front();
  if (const Json* const nodes = At(*definition, {"internalParameters", "nodes"})) {
    for (const Json& node : *nodes) {
      record.nodes.push_back({.name = TextAt(node, {"name"}), .id = TextAt(node, {"id"})});
    }
  }
  if (record.builder.empty() || record.signed_at == 0)
    return NoStatement("has no builder, or no time");
  return record;
}

}  // namespace tactus::access
