#include "runtime/message_archive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tactus/v1/jobs.pb.h"

namespace tactus::runtime {
namespace {

using testing::ElementsAre;

struct Sum {
  std::string name{};
  double value = 0;
  std::string unit{};
};
void Fields(auto& archive, Of<Sum> auto& sum) {
  archive("name", sum.name);
  archive("value", sum.value);
  archive("unit", sum.unit);
}

struct Choice {
  std::string to{};
  std::vector<Sum> inputs{};
  std::optional<double> measured_gain{};
};
void Fields(auto& archive, Of<Choice> auto& choice) {
  archive("to", choice.to);
  archive("inputs", choice.inputs);
  archive("measured_gain", choice.measured_gain);
}

const std::vector<std::string_view> kNotOfAChoice = {
    "name", "plan_version", "axis",           "round",        "train_time",
    "from", "metric",       "predicted_gain", "alternatives", "reason"};

// Two fields of one message, in structs of their own.
struct Inner {
  std::uint64_t size_bytes = 0;
  std::string sha256{};
};
void Fields(auto& archive, Of<Inner> auto& inner) {
  archive("size_bytes", inner.size_bytes);
  archive("sha256", inner.sha256);
}
struct Outer {
  JobId job{};
  Inner inner{};
  std::string path{};
};
void Fields(auto& archive, Of<Outer> auto& outer) {
  archive("job", outer.job);
  Inline(archive, "inner", outer.inner);
  archive("path", outer.path);
}

// Not as the messages have them.
struct Wide {
  std::uint64_t loss = 0;
};
void Fields(auto& archive, Of<Wide> auto& wide) { archive("loss", wide.loss); }
struct Inputs {
  Sum inputs{};
};
void Fields(auto& archive, Of<Inputs> auto& one) { archive("inputs", one.inputs); }

TEST(MessageArchiveTest, StructsWithinAndListsOfThemAreMessages) {
  const MessageFields<Choice, v1::Decision> fields({.theirs = kNotOfAChoice});
  v1::Decision proto;

  fields.Write({.to = "b", .inputs = {{.name = "x", .value = 1.5}, {.unit = "s"}}}, proto);

  EXPECT_EQ(proto.to(), "b");
  ASSERT_EQ(proto.inputs_size(), 2);
  EXPECT_EQ(proto.inputs(0).name(), "x");
  EXPECT_EQ(proto.inputs(0).value(), 1.5);
  EXPECT_EQ(proto.inputs(1).unit(), "s");
}

TEST(MessageArchiveTest, AnOptionalThatIsEmptyIsNotSet) {
  const MessageFields<Choice, v1::Decision> fields({.theirs = kNotOfAChoice});
  v1::Decision without, with;

  fields.Write({}, without);
  fields.Write({.measured_gain = 0}, with);

  EXPECT_FALSE(without.has_measured_gain());
  EXPECT_TRUE(with.has_measured_gain());
}

TEST(MessageArchiveTest, AnInlinedStructsFieldsStandAmongTheOthers) {
  const MessageFields<Outer, v1::Artifact> fields({.ours = {"job"}});
  v1::Artifact proto;

  fields.Write({.job = JobId{3}, .inner = {.size_bytes = 7, .sha256 = "ab"}, .path = "p"}, proto);

  EXPECT_EQ(proto.path(), "p");
  EXPECT_EQ(proto.size_bytes(), 7u);
  EXPECT_EQ(proto.sha256(), "ab");
}

TEST(MessageArchiveDeathTest, AFieldThatOneOfThemLacksIsNamed) {
  using Renamed = MessageFields<Sum, v1::Alternative>;
  using Forgotten = MessageFields<Inner, v1::Artifact>;

  EXPECT_DEATH(Renamed(), "tactus.v1.Alternative.name: the message lacks this field of the struct");
  EXPECT_DEATH(Forgotten(), "tactus.v1.Artifact.path: the struct lacks this field of the message");
}

TEST(MessageArchiveDeathTest, AFieldOfAnotherTypeIsNamed) {
  using Wider = MessageFields<Wide, v1::JobProgress>;
  using Oftener = MessageFields<Inputs, v1::Decision>;

  EXPECT_DEATH(Wider(), "tactus.v1.JobProgress.loss: is of another type in the struct");
  EXPECT_DEATH(Oftener(), "tactus.v1.Decision.inputs: is of another type in the struct");
}

}  // namespace
}  // namespace tactus::runtime
