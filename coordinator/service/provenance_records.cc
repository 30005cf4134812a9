#include "coordinator/service/provenance_records.h"

#include <google/protobuf/util/json_util.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "coordinator/access/envelope.h"
#include "coordinator/files/job_folder.h"
#include "coordinator/job/snapshots.h"
#include "coordinator/shell/job_conversion.h"
#include "identity/certificate.h"
#include "identity/secret_file.h"
#include "runtime/job_files.h"
#include "runtime/now.h"
#include "runtime/process.h"
#include "runtime/sha256.h"
#include "runtime/status.h"

namespace tactus::service {
namespace {

constexpr std::int64_t kNanoseconds = 1'000'000'000;
constexpr int kDecisionsOfPage = 1000;

std::string JsonOf(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string json;
  return google::protobuf::util::MessageToJsonString(message, &json, options).ok() ? json : "{}";
}

// Those of the result, and the snapshots that are no part of it, as `tactus download` fetches them.
std::vector<access::Provenance::File> FilesOf(const job::JobRecord& record) {
  std::map<std::string, std::string> files;
  for (const job::ArtifactRecord& snapshot : job::SnapshotsOf(record)) {
    files[snapshot.path] = snapshot.sha256;
  }
  if (record.result) {
    for (const job::ArtifactRecord& file : record.result->artifacts) files[file.path] = file.sha256;
  }
  std::vector<access::Provenance::File> list;
  for (const auto& [path, sha256] : files) {
    if (!ProvenanceRecords::IsOne(path)) list.push_back({.name = path, .sha256 = sha256});
  }
  return list;
}

// By name, each device once.
std::vector<access::Provenance::Node> NodesOf(const job::JobRecord& record) {
  std::map<std::string, std::set<std::string>> devices;
  const auto add = [&](const std::vector<job::MemberRecord>& members) {
    for (const job::MemberRecord& member : members) devices[member.node].insert(member.device);
  };
  for (const job::GroupRecord& group : record.groups) add(group.members);
  add(record.members);
  for (const job::AttemptRecord& attempt : record.attempts) {
    for (const std::string& node : attempt.nodes) devices[node];
  }
  std::vector<access::Provenance::Node> nodes;
  for (const auto& [node, names] : devices) {
    nodes.push_back({.name = node, .devices = {names.begin(), names.end()}});
  }
  return nodes;
}

std::vector<access::Provenance::Input> InputsOf(const v1::JobSpec& spec) {
  std::vector<access::Provenance::Input> inputs;
  for (const auto& [field, file] : runtime::FilesOf(spec)) {
    const bool uploaded = file.starts_with(runtime::kUploaded);
    inputs.push_back({.field = field,
                      .file = file,
                      .sha256 = uploaded ? file.substr(runtime::kUploaded.size()) : ""});
  }
  return inputs;
}

bool SameFiles(const std::vector<access::Provenance::File>& one,
               const std::vector<access::Provenance::File>& other) {
  return std::ranges::equal(one, other, [](const auto& a, const auto& b) {
    return a.name == b.name && a.sha256 == b.sha256;
  });
}

// Whether the record that lies there is of these files.
bool IsThere(const std::string& folder, const std::vector<access::Provenance::File>& files) {
  const auto text = identity::ReadSmallFile(folder + "/" + access::kProvenanceFile);
  if (!text.ok()) return false;
  const absl::StatusOr<access::Envelope> envelope = access::ReadEnvelope(*text);
  if (!envelope.ok()) return false;
  const absl::StatusOr<access::Provenance> record = access::ReadStatement(envelope->payload);
  return record.ok() && SameFiles(record->files, files);
}

absl::StatusOr<identity::TlsTexts> ReadTls(const std::string& folder) {
  absl::StatusOr<std::string> authority = identity::ReadSmallFile(folder + "/ca.pem");
  if (!authority.ok()) return authority.status();
  absl::StatusOr<std::string> certificate = identity::ReadSmallFile(folder + "/cert.pem");
  if (!certificate.ok()) return certificate.status();
  absl::StatusOr<std::string> key = identity::ReadKeyFile(folder + "/key.pem");
  if (!key.ok()) return key.status();
  return identity::TlsTexts{.authority = *std::move(authority),
                            .certificate = *std::move(certificate),
                            .key = *std::move(key)};
}

}  // namespace

access::Provenance ProvenanceOf(const job::JobRecord& record) {
  v1::JobSpec spec;
  const bool read = spec.ParseFromString(record.spec);
  return {.files = FilesOf(record),
          .job = JobName(record.name),
          .uid = record.uid,
          .owner = record.owner,
          .from = record.from.empty() ? "" : JobName(record.from),
          .spec = JsonOf(spec),
          .labels = record.labels,
          .inputs = read ? InputsOf(spec) : std::vector<access::Provenance::Input>{},
          .nodes = NodesOf(record),
          .attempts = static_cast<std::uint32_t>(record.attempts.size()),
          .stop_reason = record.result ? record.result->stop_reason : record.state_reason,
          .builder = access::kUnidentified,
          .version = TACTUS_VERSION,
          .created = record.create_time / kNanoseconds,
          .started = record.start_time / kNanoseconds,
          .ended = record.end_time / kNanoseconds};
}

struct ProvenanceRecords::Order {
  std::string folder{};  // of the job
  std::string job{};
  access::Provenance record{};
  std::string plans{};
  Done done{};
};

bool ProvenanceRecords::IsOne(const std::string& path) {
  return path == access::kProvenanceFile || path == access::kPlansFile;
}

void ProvenanceRecords::Make(const std::string& job, Done done) const {
  around_.core.FindJob(
      job, [this, done = std::move(done)](const absl::StatusOr<job::JobRecord>& found) mutable {
        absl::Status status = found.status();
        if (status.ok() && !job::IsFinal(found->state)) {
          status = absl::FailedPreconditionError(JobName(found->name) + ": it is not over");
        }
        auto order = std::make_shared<Order>();
        order->done = std::move(done);
        if (status.ok()) {
          order->job = found->name;
          order->folder = JobFolder(around_.state_folder, found->name);
          order->record = ProvenanceOf(*found);
          if (order->record.files.empty()) {
            status = absl::NotFoundError(JobName(found->name) + ": it has no files to vouch for");
          }
        }
        around_.files.Post([this, order, status] {
          if (!status.ok() || IsThere(order->folder, order->record.files))
            return order->done(status);
          GatherPlans(order, "");
        });
      });
}

void ProvenanceRecords::GatherPlans(const std::shared_ptr<Order>& order,
                                    const std::string& page_token) const {
  around_.core.ListDecisions(
      {.id = order->job, .page_size = kDecisionsOfPage, .page_token = page_token},
      [this, order](const absl::StatusOr<store::Page<job::DecisionRecord>>& page) {
        if (page.ok()) {
          for (const job::DecisionRecord& one : page->items) {
            order->plans += JsonOf(ToProto(order->job, one.decision)) + "\n";
          }
          if (!page->next.empty()) return GatherPlans(order, page->next);
        }
        around_.files.Post([this, order, status = page.status()] {
          order->done(status.ok() ? Write(*order) : status);
        });
      });
}

// Files' thread. The plans first: whoever finds the record finds what it speaks of.
absl::Status ProvenanceRecords::Write(const Order& order) const {
  access::Provenance record = order.record;
  record.plans = {.name = access::kPlansFile, .sha256 = runtime::Sha256Of(order.plans)};
  record.signed_at = runtime::WallSeconds();
  identity::TlsTexts tls;
  if (!around_.tls_dir.empty()) {
    absl::StatusOr<identity::TlsTexts> texts = ReadTls(around_.tls_dir);
    if (!texts.ok()) return texts.status();
    tls = *std::move(texts);
    const auto own = identity::CheckTlsTexts(tls, record.signed_at);
    if (!own.ok()) return own.status();
    record.builder = identity::SpiffeIdOf(own->holder);
    for (access::Provenance::Node& node : record.nodes) {
      node.id = identity::SpiffeIdOf(
          {.domain = own->holder.domain, .kind = identity::Kind::kNode, .name = node.name});
    }
  }
  access::Envelope envelope = {.payload_type = access::kStatementPayload,
                               .payload = access::StatementOf(record)};
  absl::Status status = around_.tls_dir.empty()
                            ? absl::OkStatus()
                            : access::AddSignature(tls.certificate, tls.key, envelope);
  if (status.ok()) status = runtime::MakeWritableFolder(order.folder);
  if (status.ok()) {
    status = runtime::WriteFileWhole(order.folder + "/" + access::kPlansFile, order.plans);
  }
  if (!status.ok()) return status;
  return runtime::WriteFileWhole(order.folder + "/" + access::kProvenanceFile,
                                 access::TextOf(envelope));
}

}  // namespace tactus::service
