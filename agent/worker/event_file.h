// Event files of TensorBoard: records of scalars and text, appended while training goes on.

#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tactus::worker {

// One number under a name such as "train/loss".
struct Scalar {
  std::string tag{};
  float value = 0;
};

// One event file, readable while it grows. One thread.
//
// A record is its length (8 bytes), the masked CRC-32C of that, the event, the masked CRC-32C of
// the event; an event is the protobuf message tensorflow.Event, written here by hand, as a worker
// links no protobuf. The first says "brain.Event:2".
// Source: TensorFlow's record_writer.cc and event.proto, summary.proto, by their documentation.
class EventFile {
 public:
  // Creates `folder` and in it events.out.tfevents.SECONDS.HOST.PID.
  // wall_seconds: since 1970, here and below, as in the events.
  // Errors: the file system's, with the path.
  static absl::StatusOr<EventFile> Open(const std::string& folder, double wall_seconds);

  // Each appends one event and hands it to the system. After an error nothing more is written.
  absl::Status Append(double wall_seconds, std::uint64_t step, const std::vector<Scalar>& scalars);
  // `markdown` as TensorBoard's text tab shows it.
  absl::Status AppendText(double wall_seconds, std::uint64_t step, const std::string& tag,
                          const std::string& markdown);

  // The file's own name, without the folder.
  const std::string& name() const { return name_; }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  explicit EventFile(std::string name) : name_(std::move(name)) {}
  absl::Status Write(std::string_view event);

  std::string name_;
  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
};

// CRC-32C (Castagnoli), as the records have it before it is masked.
std::uint32_t Crc32c(std::string_view bytes);

}  // namespace tactus::worker
