// The safetensors format: what is written is read, and files of any other origin are refused.

#include "agent/tensors/safetensors.h"

#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tactus::tensors {
namespace {

using testing::HasSubstr;

class SafetensorsFileTest : public testing::Test {
 protected:
  SafetensorsFileTest()
      : path_(testing::TempDir() + "/tactus-" + std::to_string(getpid()) + ".safetensors") {}
  ~SafetensorsFileTest() override { std::filesystem::remove(path_); }

  void WriteBytes(const std::string& bytes) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
  }

  // A file of this header and as many bytes of data.
  void WriteFile(const std::string& header, std::size_t data) const {
    WriteBytes(LengthOf(header.size()) + header + std::string(data, 'x'));
  }

  static std::string LengthOf(std::uint64_t value) {
    std::string bytes(8, '\0');
    for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>((value >> (8 * i)) & 0xff);
    return bytes;
  }

  std::string Refusal() const {
    const absl::StatusOr<SafetensorsFile> file = ReadSafetensors(path_);
    if (file.ok()) return "taken";
    EXPECT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(file.status().message());
  }

  std::string RefusalOf(const std::string& header, std::size_t data) const {
    WriteFile(header, data);
    return Refusal();
  }

  const std::string path_;
};

TEST_F(SafetensorsFileTest, WhatIsWrittenIsRead) {
  const std::vector<float> weights = {1, 2, 3, 4, 5, 6};
  const std::vector<std::uint64_t> counts = {7};
  ASSERT_TRUE(WriteSafetensors(path_,
                               {{.name = "w",
                                 .type = "F32",
                                 .shape = {2, 3},
                                 .bytes = std::as_bytes(std::span(weights))},
                                {.name = "empty", .type = "F32", .shape = {0, 2}},
                                {.name = "n",
                                 .type = "U64",
                                 .element_bytes = 8,
                                 .shape = {},
                                 .bytes = std::as_bytes(std::span(counts))}},
                               {{"rounds", "12"}})
                  .ok());

  const absl::StatusOr<SafetensorsFile> file = ReadSafetensors(path_);

  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->metadata,
            (std::map<std::string, std::string>{{"format", "pt"}, {"rounds", "12"}}));
  ASSERT_EQ(file->tensors.size(), 3u);
  const NamedTensor& tensor = file->tensors.at("w");
  EXPECT_EQ(tensor.type, "F32");
  EXPECT_EQ(tensor.shape, (std::vector<std::int64_t>{2, 3}));
  ASSERT_EQ(tensor.bytes.size(), 24u);
  EXPECT_EQ(std::memcmp(tensor.bytes.data(), weights.data(), 24), 0);
  EXPECT_EQ(std::memcmp(file->tensors.at("n").bytes.data(), counts.data(), 8), 0);
  EXPECT_TRUE(file->tensors.at("empty").bytes.empty());
}

TEST_F(SafetensorsFileTest, AHeaderIsTakenAtItsWordOnlyWithinTheFile) {
  WriteBytes("");
  EXPECT_THAT(Refusal(), HasSubstr("it has 0 bytes"));
  WriteBytes("1234567");
  EXPECT_THAT(Refusal(), HasSubstr("it has 7 bytes"));
  for (const std::uint64_t length : {std::uint64_t{3}, std::uint64_t{1} << 32, ~std::uint64_t{0}}) {
    WriteBytes(LengthOf(length) + "{}");
    EXPECT_THAT(Refusal(), HasSubstr("a header of " + std::to_string(length) + " bytes"));
  }
  // Within the file and too long all the same.
  WriteFile(std::string(kHeaderBytesMax + 1, ' '), 0);
  EXPECT_THAT(Refusal(), HasSubstr("allowed: " + std::to_string(kHeaderBytesMax)));
}

TEST_F(SafetensorsFileTest, AHeaderThatIsNoneIsRefused) {
  for (const char* header : {"", "{", "[]", "3", "{\"a\": 1", "\xff\xfe{}"}) {
    EXPECT_THAT(RefusalOf(header, 4), HasSubstr("its header is no JSON object")) << header;
  }
  // Deep nesting must not cost a stack.
  EXPECT_THAT(RefusalOf(std::string(1 << 20, '['), 4), HasSubstr("no JSON object"));
  EXPECT_THAT(RefusalOf(R"({"__metadata__": []})", 0), HasSubstr("__metadata__ is no object"));
  EXPECT_THAT(RefusalOf(R"({"__metadata__": {"a": 1}})", 0), HasSubstr("other than texts"));
}

TEST_F(SafetensorsFileTest, ATensorThatDoesNotAddUpIsRefused) {
  const auto refusal = [&](const std::string& entry) {
    return RefusalOf("{\"a\": " + entry + "}", 8);
  };
  const auto of = [](const std::string& type, const std::string& shape,
                     const std::string& offsets) {
    return "{\"dtype\": " + type + ", \"shape\": " + shape + ", \"data_offsets\": " + offsets + "}";
  };

  EXPECT_EQ(refusal(of("\"F32\"", "[2]", "[0, 8]")), "taken");
  EXPECT_EQ(refusal(of("\"F32\"", "[2, 1, 1]", "[0, 8]")), "taken");
  EXPECT_THAT(refusal("3"), HasSubstr("has no dtype"));
  EXPECT_THAT(refusal(R"({"dtype": "F32", "shape": [2]})"), HasSubstr("has no dtype"));
  EXPECT_THAT(refusal(of("\"F31\"", "[2]", "[0, 8]")), HasSubstr("a dtype that is not known"));
  EXPECT_THAT(refusal(of("32", "[2]", "[0, 8]")), HasSubstr("a dtype that is not known"));
  for (const char* shape : {"2", "[-2]", "[2.5]", "[\"2\"]", "[18446744073709551615]",
                            "[4294967296, 4294967296, 2]", "[9223372036854775807]"}) {
    EXPECT_THAT(refusal(of("\"F32\"", shape, "[0, 8]")), HasSubstr("a shape that is none"))
        << shape;
  }
  for (const char* offsets : {"8", "[8]", "[0, 4, 8]", "{}"}) {
    EXPECT_THAT(refusal(of("\"F32\"", "[2]", offsets)), HasSubstr("not two")) << offsets;
  }
  for (const char* offsets : {"[0, 9]", "[8, 0]", "[-1, 7]", "[0, 18446744073709551615]"}) {
    EXPECT_THAT(refusal(of("\"F32\"", "[2]", offsets)), HasSubstr("beyond the file's 8 bytes"))
        << offsets;
  }
  EXPECT_THAT(refusal(of("\"F32\"", "[1]", "[0, 8]")),
              HasSubstr("tensor 'a' has 8 bytes, its shape needs 4"));
  EXPECT_THAT(refusal(of("\"U64\"", "[2]", "[0, 8]")), HasSubstr("its shape needs 16"));
}

TEST_F(SafetensorsFileTest, TensorsCoverTheDataOnce) {
  const auto header = [](const std::string& a, const std::string& b) {
    return "{\"a\": {\"dtype\": \"U8\", \"shape\": [4], \"data_offsets\": " + a +
           "}, \"b\": {\"dtype\": \"U8\", \"shape\": [4], \"data_offsets\": " + b + "}}";
  };

  EXPECT_EQ(RefusalOf(header("[4, 8]", "[0, 4]"), 8), "taken");
  EXPECT_THAT(RefusalOf(header("[0, 4]", "[0, 4]"), 4), HasSubstr("do not cover its data once"));
  EXPECT_THAT(RefusalOf(header("[0, 4]", "[3, 7]"), 7), HasSubstr("do not cover its data once"));
  EXPECT_THAT(RefusalOf(header("[0, 4]", "[5, 9]"), 9), HasSubstr("do not cover its data once"));
  EXPECT_THAT(RefusalOf(header("[0, 4]", "[4, 8]"), 9), HasSubstr("do not cover its data once"));
  EXPECT_THAT(RefusalOf("{}", 1), HasSubstr("do not cover its data once"));
}

TEST_F(SafetensorsFileTest, AFileThatIsNotThereIsNotFound) {
  EXPECT_EQ(ReadSafetensors(path_ + ".none").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ReadSafetensors(testing::TempDir()).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tactus::tensors
