#include "agent/data/field_error.h"

#include <gtest/gtest.h>

namespace tactus::data {
namespace {

TEST(FieldErrorTest, AFieldIsPartOfTheTextAndDataOfItsOwn) {
  const absl::Status status = AtField("model.loss", absl::NotFoundError("/a: b: no such file"));
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(), "model.loss: /a: b: no such file");
  EXPECT_EQ(FieldErrorOf(status).field, "model.loss");
  EXPECT_EQ(FieldErrorOf(status).message, "/a: b: no such file");
}

TEST(FieldErrorTest, AFieldWithinAnotherIsNamedFromOutside) {
  const absl::Status status =
      AtField("data.idx", AtField("inputs", absl::InvalidArgumentError("empty")));
  EXPECT_EQ(status.message(), "data.idx.inputs: empty");
  EXPECT_EQ(FieldErrorOf(status).field, "data.idx.inputs");
  EXPECT_EQ(FieldErrorOf(status).message, "empty");
}

TEST(FieldErrorTest, ATextThatLooksLikeAFieldIsNone) {
  const FieldError error = FieldErrorOf(absl::InvalidArgumentError("checkpoint: damaged"));
  EXPECT_EQ(error.field, "");
  EXPECT_EQ(error.message, "checkpoint: damaged");
}

}  // namespace
}  // namespace tactus::data
