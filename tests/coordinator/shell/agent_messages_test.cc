// What agents of earlier versions say is understood: their messages, kept as bytes.

#include <gmock/gmock.h>
#include <google/protobuf/unknown_field_set.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_split.h"
#include "coordinator/codec/document.h"
#include "coordinator/job/record_fields.h"
#include "coordinator/shell/agent_conversion.h"

namespace tactus::service {
namespace {

namespace pb = google::protobuf;
using nlohmann::json;

// Of the present version; a later one adds a file of its own and keeps this one.
constexpr char kVersion[] = "0.1";

std::string FileOf(const std::string& version) {
  return std::string(std::getenv("TACTUS_SOURCE")) + "/tests/golden/agent_messages/" + version +
         ".txt";
}

// ---- How the bytes were made: every message that an agent has, every field set

void Fill(pb::Message& message);

void FillField(pb::Message& message, const pb::FieldDescriptor& field) {
  const pb::Reflection& set = *message.GetReflection();
  const int times = field.is_repeated() ? 2 : 1;
  for (int i = 0; i < times; ++i) {
    const bool list = field.is_repeated();
    switch (field.cpp_type()) {
      case pb::FieldDescriptor::CPPTYPE_STRING: {
        const std::string text = field.name() == "node" ? "a" : field.name();
        list ? set.AddString(&message, &field, text) : set.SetString(&message, &field, text);
        break;
      }
      case pb::FieldDescriptor::CPPTYPE_UINT64:
        list ? set.AddUInt64(&message, &field, field.number() + i)
             : set.SetUInt64(&message, &field, field.number());
        break;
      case pb::FieldDescriptor::CPPTYPE_UINT32:
        list ? set.AddUInt32(&message, &field, field.number() + i)
             : set.SetUInt32(&message, &field, field.number());
        break;
      case pb::FieldDescriptor::CPPTYPE_INT64:
        set.SetInt64(&message, &field, field.number());
        break;
      case pb::FieldDescriptor::CPPTYPE_INT32:
        set.SetInt32(&message, &field, field.number());
        break;
      case pb::FieldDescriptor::CPPTYPE_DOUBLE:
        list ? set.AddDouble(&message, &field, field.number() + 0.5 * i)
             : set.SetDouble(&message, &field, field.number() + 0.5);
        break;
      case pb::FieldDescriptor::CPPTYPE_BOOL:
        set.SetBool(&message, &field, true);
        break;
      case pb::FieldDescriptor::CPPTYPE_ENUM:
        set.SetEnumValue(&message, &field, 1);
        break;
      case pb::FieldDescriptor::CPPTYPE_MESSAGE:
        Fill(list ? *set.AddMessage(&message, &field) : *set.MutableMessage(&message, &field));
        break;
      default:
        FAIL() << field.full_name();
    }
    if (field.is_map()) break;  // a second entry would have the first one's key
  }
}

// Of those of which only one can be set, none.
void Fill(pb::Message& message) {
  const pb::Descriptor& type = *message.GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    if (type.field(i)->real_containing_oneof() == nullptr) FillField(message, *type.field(i));
  }
}

// One message for each alternative, by its name.
std::map<std::string, agent::v1::FromAgent> EveryMessage() {
  std::map<std::string, agent::v1::FromAgent> every;
  const pb::Descriptor& type = *agent::v1::FromAgent::descriptor();
  for (int i = 0; i < type.oneof_decl(0)->field_count(); ++i) {
    const pb::FieldDescriptor& field = *type.oneof_decl(0)->field(i);
    agent::v1::FromAgent message;
    Fill(message);
    FillField(message, field);
    every[field.name()] = message;
  }
  const agent::v1::FromAgent relayed = every.at("from_worker");
  every.erase("from_worker");
  const pb::Descriptor& worker = *v1::FromWorker::descriptor();
  for (int i = 0; i < worker.oneof_decl(0)->field_count(); ++i) {
    const pb::FieldDescriptor& field = *worker.oneof_decl(0)->field(i);
    agent::v1::FromAgent message = relayed;
    FillField(*message.mutable_from_worker()->mutable_message(), field);
    every["from_worker." + field.name()] = message;
  }
  every.erase("from_worker.snapshotted");  // the agent's alone
  return every;
}

// ---- How they are read

// Fields that nobody knows any more.
int Unknown(const pb::Message& message) {
  int count = message.GetReflection()->GetUnknownFields(message).field_count();
  std::vector<const pb::FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const pb::FieldDescriptor* field : fields) {
    if (field->cpp_type() != pb::FieldDescriptor::CPPTYPE_MESSAGE) continue;
    const pb::Reflection& get = *message.GetReflection();
    if (!field->is_repeated()) {
      count += Unknown(get.GetMessage(message, field));
      continue;
    }
    for (int i = 0; i < get.FieldSize(message, field); ++i) {
      count += Unknown(get.GetRepeatedMessage(message, field, i));
    }
  }
  return count;
}

// What the core is told; what is no event says what there is of it.
json Understood(const agent::v1::FromAgent& message) {
  json said = {{"sequence", message.sequence()}, {"acknowledged", message.acknowledged()}};
  if (message.has_hello()) {
    const absl::StatusOr<job::NodeJoined> joined = FromProto(message.hello());
    EXPECT_TRUE(joined.ok()) << joined.status();
    if (joined.ok()) said["event"] = codec::Document(*joined);
    said["incarnation"] = message.hello().incarnation();
    said["metrics_address"] = message.hello().metrics_address();
    said["agent_version"] = message.hello().agent_version();
    said["server_id"] = message.hello().server_id();
    said["epoch"] = message.hello().epoch();
  } else if (message.has_log_lines()) {
    const agent::v1::LogLines& lines = message.log_lines();
    said["log_lines"] = {lines.worker_id(), lines.job_id(), lines.offset(), lines.text()};
  } else if (!message.has_heartbeat()) {
    const absl::StatusOr<job::Event> event = FromProto(message, "a");
    EXPECT_TRUE(event.ok()) << event.status();
    if (event.ok()) said["event"] = codec::Document(*event);
  }
  return said;
}

// Whatever was understood still is; newer versions may understand more.
bool Holds(const json& present, const json& former) {
  if (former.is_object()) {
    return std::ranges::all_of(former.items(), [&](const auto& item) {
      return present.contains(item.key()) && Holds(present.at(item.key()), item.value());
    });
  }
  if (!former.is_array()) return present == former;
  if (!present.is_array() || present.size() != former.size()) return false;
  for (std::size_t i = 0; i < former.size(); ++i) {
    if (!Holds(present[i], former[i])) return false;
  }
  return true;
}

// A line each: name, bytes in hexadecimal digits, what was understood.
void WriteFile() {
  std::ofstream file(FileOf(kVersion));
  for (const auto& [name, message] : EveryMessage()) {
    file << name << "\t" << absl::BytesToHexString(message.SerializeAsString()) << "\t"
         << Understood(message).dump() << "\n";
  }
}

class AgentMessagesTest : public testing::TestWithParam<const char*> {};

TEST_P(AgentMessagesTest, OfThisVersionAreUnderstoodAsTheyWereMeant) {
  const bool absent = !std::ifstream(FileOf(GetParam())).good();
  if (absent && std::getenv("TACTUS_REWRITE_GOLDEN") != nullptr) WriteFile();
  std::ifstream file(FileOf(GetParam()));
  int messages = 0;
  for (std::string line; std::getline(file, line); ++messages) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits('\t', 2));
    ASSERT_EQ(parts.size(), 3u);
    SCOPED_TRACE(parts[0]);
    agent::v1::FromAgent message;
    ASSERT_TRUE(message.ParseFromString(absl::HexStringToBytes(parts[1])));
    EXPECT_EQ(Unknown(message), 0);
    const json present = Understood(message);
    EXPECT_TRUE(Holds(present, json::parse(parts[2]))) << present.dump() << "\n" << parts[2];
  }
  EXPECT_GE(messages, 11);
}

// The first of a version to come has to keep this one's file.
INSTANTIATE_TEST_SUITE_P(Versions, AgentMessagesTest, testing::Values("0.1"));

TEST(AgentMessagesOfThisVersionTest, HaveTheirFile) {
  EXPECT_EQ(std::string(TACTUS_VERSION).substr(0, 3), kVersion)
      << "add a file of the new version's messages: it is written with TACTUS_REWRITE_GOLDEN=1";
}

}  // namespace
}  // namespace tactus::service
