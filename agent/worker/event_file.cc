#include "agent/worker/event_file.h"

#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace tactus::worker {
namespace {

std::array<std::uint32_t, 256> MakeCrcTable() {
  constexpr std::uint32_t kCastagnoli = 0x82f63b78;  // with its bits reversed
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kCastagnoli : 0);
    table[byte] = crc;
  }
  return table;
}

// So that a CRC of bytes that hold CRCs is not a special one.
std::uint32_t Masked(std::uint32_t crc) { return std::rotr(crc, 15) + 0xa282ead8; }

// A protobuf message in the making. Numbers are little-endian on every host that Tactus runs on.
static_assert(std::endian::native == std::endian::little);
class Message {
 public:
  void Varint(int field, std::uint64_t value) {
    Key(field, 0);
    Raw(value);
  }
  void Double(int field, double value) {
    Key(field, 1);
    Fixed(&value, sizeof(value));
  }
  void Float(int field, float value) {
    Key(field, 5);
    Fixed(&value, sizeof(value));
  }
  void Bytes(int field, std::string_view bytes) {
    Key(field, 2);
    Raw(bytes.size());
    text_.append(bytes);
  }

  const std::string& text() const { return text_; }

 private:
  void Key(int field, unsigned wire) { Raw(static_cast<unsigned>(field) << 3 | wire); }
  void Raw(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) text_.push_back(static_cast<char>(value | 0x80));
    text_.push_back(static_cast<char>(value));
  }
  void Fixed(const void* data, std::size_t size) {
    text_.append(static_cast<const char*>(data), size);
  }

  std::string text_;
};

// Field numbers of tensorflow.Event, Summary, Summary.Value, SummaryMetadata and TensorProto.
namespace event {
constexpr int kWallTime = 1;
constexpr int kStep = 2;
constexpr int kFileVersion = 3;
constexpr int kSummary = 5;
}  // namespace event
namespace summary {
constexpr int kValue = 1;
}  // namespace summary
namespace value {
constexpr int kTag = 1;
constexpr int kSimpleValue = 2;
constexpr int kTensor = 8;
constexpr int kMetadata = 9;
}  // namespace value
namespace metadata {
constexpr int kPluginData = 1;
constexpr int kPluginName = 1;  // of the plugin data
}  // namespace metadata
namespace tensor {
constexpr int kDtype = 1;
constexpr int kShape = 2;
constexpr int kStringValue = 8;
constexpr std::uint64_t kString = 7;  // DT_STRING
}  // namespace tensor

Message EventAt(double wall_seconds) {
  Message message;
  message.Double(event::kWallTime, wall_seconds);
  return message;
}

Message SummaryAt(double wall_seconds, std::uint64_t step, const Message& values) {
  Message message = EventAt(wall_seconds);
  message.Varint(event::kStep, step);
  message.Bytes(event::kSummary, values.text());
  return message;
}

std::string HostName() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

absl::Status FileError(int error, const std::string& path) {
  return absl::ErrnoToStatus(error, "cannot write " + path);
}

}  // namespace

std::uint32_t Crc32c(std::string_view bytes) {
  static const std::array<std::uint32_t, 256> table = MakeCrcTable();
  std::uint32_t crc = 0xffffffff;
  for (const char byte : bytes) {
    crc = (crc >> 8) ^ table[(crc ^ static_cast<unsigned char>(byte)) & 0xff];
  }
  return ~crc;
}

absl::StatusOr<EventFile> EventFile::Open(const std::string& folder, double wall_seconds) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return FileError(error.value(), folder);
  EventFile file("events.out.tfevents." + std::to_string(static_cast<std::uint64_t>(wall_seconds)) +
                 "." + HostName() + "." + std::to_string(getpid()));
  file.path_ = folder + "/" + file.name_;
  file.file_.reset(std::fopen(file.path_.c_str(), "wbe"));
  if (file.file_ == nullptr) return FileError(errno, file.path_);
  Message first = EventAt(wall_seconds);
  first.Bytes(event::kFileVersion, "brain.Event:2");
  if (absl::Status s = file.Write(first.text()); !s.ok()) return s;
  return file;
}

absl::Status EventFile::Append(double wall_seconds, std::uint64_t step,
                               const std::vector<Scalar>& scalars) {
  Message values;
  for (const Scalar& scalar : scalars) {
    Message one;
    one.Bytes(value::kTag, scalar.tag);
    one.Float(value::kSimpleValue, scalar.value);
    values.Bytes(summary::kValue, one.text());
  }
  return Write(SummaryAt(wall_seconds, step, values).text());
}

absl::Status EventFile::AppendText(double wall_seconds, std::uint64_t step, const std::string& tag,
                                   const std::string& markdown) {
  Message plugin;
  plugin.Bytes(metadata::kPluginName, "text");
  Message about;
  about.Bytes(metadata::kPluginData, plugin.text());
  Message text;
  text.Varint(tensor::kDtype, tensor::kString);
  text.Bytes(tensor::kShape, "");  // a single one
  text.Bytes(tensor::kStringValue, markdown);
  Message one;
  one.Bytes(value::kTag, tag);
  one.Bytes(value::kTensor, text.text());
  one.Bytes(value::kMetadata, about.text());
  Message values;
  values.Bytes(summary::kValue, one.text());
  return Write(SummaryAt(wall_seconds, step, values).text());
}

absl::Status EventFile::Write(std::string_view event) {
  if (file_ == nullptr) return absl::FailedPreconditionError(path_ + " is given up");
  const std::uint64_t length = event.size();
  std::string record(sizeof(length), '\0');
  std::memcpy(record.data(), &length, sizeof(length));
  const auto append = [&record](std::uint32_t crc) {
    const std::uint32_t masked = Masked(crc);
    record.append(reinterpret_cast<const char*>(&masked), sizeof(masked));
  };
  append(Crc32c(record));
  record.append(event);
  append(Crc32c(event));
  const bool written = std::fwrite(record.data(), 1, record.size(), file_.get()) == record.size() &&
                       std::fflush(file_.get()) == 0;
  if (written) return absl::OkStatus();
  const int error = errno;
  file_.reset();
  return FileError(error, path_);
}

}  // namespace tactus::worker
