#include "tests/coordinator/tape/tape_fixture.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <system_error>

#include "base/check.h"
#include "coordinator/job/cluster.h"
#include "coordinator/tape/tape_reader.h"
#include "tests/coordinator/job/rig.h"

namespace tactus::tape {

std::vector<Frame> SmallJobFrames() {
  std::vector<job::Event> events = {job::Join("a", 2), job::Join("b", 1),
                                    job::JobSubmitted{job::Job(1)}};
  for (std::uint64_t worker = 1; worker <= 3; ++worker) {
    events.push_back(job::Said(worker, job::Ready()));
  }
  for (std::uint64_t worker = 1; worker <= 3; ++worker) {
    events.push_back(job::Said(worker, job::EndpointMessage{.generation = 1, .endpoint = "e"}));
  }
  for (std::uint64_t round = 0; round < 5; ++round) {
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      job::ReportMessage report =
          job::ReportOf(rank, {.round = round, .batch_sizes = {32, 32, 32}});
      if (round == 3) report.report.loss_mean_global = std::numeric_limits<double>::quiet_NaN();
      events.push_back(job::Said(rank + 1, report));
    }
  }
  std::vector<Frame> frames = {Header{.program_version = "1.2.3", .wall_offset = job::kWallOffset},
                               Start{.time = job::At(5)}};
  job::Cluster cluster(job::kWallOffset);
  double seconds = 5;
  for (const job::Event& event : events) {
    seconds += 0.1;
    const Instant now = job::At(seconds);
    frames.emplace_back(Step{.event = event, .time = now, .actions = cluster.Step(event, now)});
  }
  frames.emplace_back(End{});
  return frames;
}

std::string Bytes(const std::vector<Frame>& frames) {
  std::string bytes = Preamble();
  for (const Frame& frame : frames) bytes += EncodeFrame(frame);
  return bytes;
}

TapeTest::TapeTest() : folder_(testing::TempDir() + "tactus-tape-XXXXXX") {
  TACTUS_CHECK(mkdtemp(folder_.data()) != nullptr);
}

TapeTest::~TapeTest() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::string TapeTest::Write(const std::string& bytes) const {
  std::ofstream(Path("written.tape"), std::ios::binary) << bytes;
  return Path("written.tape");
}

TapeTest::Read TapeTest::ReadAll(const std::string& path) {
  absl::StatusOr<TapeReader> reader = TapeReader::Open(path);
  Read read{.status = reader.status()};
  while (read.status.ok()) {
    absl::StatusOr<Frame> frame = reader->Next();
    read.status = frame.status();
    if (!frame.ok()) break;
    read.frames.push_back(*std::move(frame));
    if (std::holds_alternative<End>(read.frames.back())) break;
  }
  return read;
}

}  // namespace tactus::tape
