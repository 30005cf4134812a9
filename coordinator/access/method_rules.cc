#include "coordinator/access/method_rules.h"

#include "base/check.h"
#include "tactus/agent/v1/session.pb.h"
#include "tactus/v1/admin.pb.h"
#include "tactus/v1/artifacts.pb.h"
#include "tactus/v1/enrolment.pb.h"
#include "tactus/v1/jobs.pb.h"
#include "tactus/v1/nodes.pb.h"

namespace tactus::access {
namespace {

using google::protobuf::FileDescriptor;

// The files whose services a coordinator serves.
const FileDescriptor* const* Files() {
  static const FileDescriptor* const kFiles[] = {
      v1::CreateJobRequest::descriptor()->file(),
      v1::GetNodeRequest::descriptor()->file(),
      v1::GetBlobRequest::descriptor()->file(),
      v1::BackupRequest::descriptor()->file(),
      agent::v1::FromAgent::descriptor()->file(),
      v1::EnrolRequest::descriptor()->file(),
      nullptr,
  };
  return kFiles;
}

v1::MethodRule Rule(v1::Role users, bool nodes) {
  v1::MethodRule rule;
  rule.set_users(users);
  rule.set_nodes(nodes);
  return rule;
}

void AddOurs(std::map<std::string, v1::MethodRule>& rules) {
  for (const FileDescriptor* const* file = Files(); *file != nullptr; ++file) {
    for (int s = 0; s < (*file)->service_count(); ++s) {
      const auto* const service = (*file)->service(s);
      for (int m = 0; m < service->method_count(); ++m) {
        const auto* const method = service->method(m);
        rules["/" + service->full_name() + "/" + method->name()] =
            method->options().GetExtension(v1::may_call);
      }
    }
  }
}

// Whether it is well is everybody's to ask who is somebody; what there is to call, a viewer's; who
// is connected, an admin's.
void AddOthers(std::map<std::string, v1::MethodRule>& rules) {
  for (const char* const method : {"Check", "Watch"}) {
    rules[std::string("/grpc.health.v1.Health/") + method] = Rule(v1::ROLE_VIEWER, true);
  }
  rules["/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"] =
      Rule(v1::ROLE_VIEWER, false);
  for (const char* const method : {"GetTopChannels", "GetServers", "GetServer", "GetServerSockets",
                                   "GetChannel", "GetSubchannel", "GetSocket"}) {
    rules[std::string("/grpc.channelz.v1.Channelz/") + method] = Rule(v1::ROLE_ADMIN, false);
  }
}

}  // namespace

const std::map<std::string, v1::MethodRule>& MethodRules() {
  static const auto* const kRules = [] {
    auto* rules = new std::map<std::string, v1::MethodRule>;  // lives as long as the process
    AddOurs(*rules);
    AddOthers(*rules);
    return rules;
  }();
  return *kRules;
}

const v1::MethodRule* RuleOf(const std::string& path) {
  const auto found = MethodRules().find(path);
  return found == MethodRules().end() ? nullptr : &found->second;
}

std::string ShortMethod(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos || slash == 0) return path;
  const std::size_t begin = path.find_last_of("./", slash - 1);
  return begin == std::string::npos ? path : path.substr(begin + 1);
}

const std::string& PathOf(const std::string& method) {
  static const auto* const kPaths = [] {
    auto* paths = new std::map<std::string, std::string>;  // likewise
    for (const auto& [path, rule] : MethodRules()) (*paths)[ShortMethod(path)] = path;
    return paths;
  }();
  const auto found = kPaths->find(method);
  TACTUS_CHECK(found != kPaths->end());
  return found->second;
}

const v1::MethodRule& RuleOfShort(const std::string& method) {
  return MethodRules().at(PathOf(method));
}

}  // namespace tactus::access
