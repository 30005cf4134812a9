// The three forms of a message between a job and its worker agree: each kind, with every field set,
// goes the whole way from the worker's JSON by protobuf into the core's struct, or back. A field
// that stands in the list alone, or in the schema alone, stops the process where the two are bound.

#include <google/protobuf/util/json_util.h>

#include <string>
#include <variant>

#include "agent/worker/messages.h"
#include "coordinator/codec/document.h"
#include "coordinator/spec/resolve.h"
#include "gtest/gtest.h"
#include "protocol/worker_message_fields.h"
#include "runtime/message_archive.h"
#include "tactus/v1/worker.pb.h"
#include "tests/support/filled.h"

namespace tactus {
namespace {

using google::protobuf::util::JsonStringToMessage;
using google::protobuf::util::MessageToJsonString;

constexpr std::string_view kUtf8 = "\xc3\xa9 \"\\\n";

// What an agent would make of a worker's line; unknown fields are errors.
v1::FromWorker Parse(const worker::FromWorker& message) {
  v1::FromWorker parsed;
  const auto status = JsonStringToMessage(worker::Format(message), &parsed);
  EXPECT_TRUE(status.ok()) << status.ToString();
  return parsed;
}

worker::ToWorker Receive(const v1::ToWorker& message) {
  std::string line;
  EXPECT_TRUE(MessageToJsonString(message, &line).ok());
  auto received = worker::ParseToWorker(line);
  EXPECT_TRUE(received.ok()) << received.status();
  return *std::move(received);
}

template <typename T>
void ExpectEqual(const T& found, const T& expected) {
  EXPECT_EQ(codec::Document(found), codec::Document(expected)) << kKind<T>;
}

template <typename... Ts>
void ExpectAllComeUp(const std::variant<Ts...>&) {
  const runtime::MessageFields<std::variant<Ts...>, v1::FromWorker> fields;
  const auto expect = [&fields]<typename T>(const T& expected) {
    const std::optional<std::variant<Ts...>> found = fields.Read(Parse(expected));
    ASSERT_TRUE(found && std::holds_alternative<T>(*found)) << kKind<T>;
    ExpectEqual(std::get<T>(*found), expected);
  };
  (expect(Filled<Ts>(kUtf8)), ...);
}

template <typename... Ts>
void ExpectAllComeDown(const std::variant<Ts...>&) {
  const runtime::MessageFields<std::variant<Ts...>, v1::ToWorker> fields;
  const auto expect = [&fields]<typename T>(const T& expected) {
    v1::ToWorker proto;
    fields.Write(expected, proto);
    const worker::ToWorker found = Receive(proto);
    ASSERT_TRUE(std::holds_alternative<T>(found)) << kKind<T>;
    ExpectEqual(std::get<T>(found), expected);
  };
  (expect(Filled<Ts>(kUtf8)), ...);
}

TEST(WorkerMessagesTest, EveryFieldComesUp) { ExpectAllComeUp(protocol::FromWorker()); }

TEST(WorkerMessagesTest, EveryFieldComesDown) { ExpectAllComeDown(protocol::ToWorker()); }

// The specification within has tests of its own.
TEST(WorkerMessagesTest, EveryFieldOfAStartComesDown) {
  const auto expected = Filled<worker::StartMessage>(kUtf8);
  const runtime::MessageFields<worker::StartMessage, v1::Start> fields({.theirs = {"spec"}});
  v1::ToWorker proto;
  fields.Write(expected, *proto.mutable_start());
  v1::JobSpec spec;
  spec.set_name("shakespeare");
  spec.mutable_model()->set_builtin("bytes-lm");
  spec.mutable_data()->set_text("corpus.txt");
  spec.mutable_optimizer()->mutable_sgd();
  *proto.mutable_start()->mutable_spec() = *spec::Resolve(spec);

  ExpectEqual(std::get<worker::StartMessage>(Receive(proto)), expected);
}

}  // namespace
}  // namespace tactus
