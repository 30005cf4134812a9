// What was measured, as a table for people and as JSON.

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "bench/kernels/measure.h"
#include "bench/kernels/options.h"

namespace tactus::bench {

// The device and the setting of a run.
struct Run {
  std::string device{};
  std::string driver{};   // the CUDA version that it offers
  std::string runtime{};  // the CUDA version that this was built with
  double l2_mebibytes = 0;
  double copy_mebibytes = 0;  // the length of what is copied to find the device's bandwidth
  int repetitions = 0;
  bool graph = false;  // bandwidth by replayed graphs
};

// One operation on buffers of one size.
struct Measured {
  std::string operation{};
  std::string formula{};
  std::size_t segments = 0;  // 0: it knows none
  std::size_t bytes = 0;     // of one buffer of float32; 0 in those that tell of overhead
  bool aimed = false;        // whether kAimShare is the aim for so many bytes
  std::size_t sets = 0;      // of buffers that took turns
  std::size_t calls = 0;     // a repetition
  Spread bytes_per_s{};      // what the formula says, over the device's time
  Spread copy_share{};       // of the copy's bytes a second in the same repetition
  Spread on_device_us{};     // a call
  Spread on_host_us{};       // a call
};

// What could not be measured, for want of memory.
struct LeftOut {
  std::string operation{};
  std::size_t segments = 0;
  std::size_t bytes = 0;
};

struct Results {
  Run run{};
  Spread copy_bytes_per_s{};
  std::vector<Measured> bandwidth{};
  std::vector<Measured> overhead{};
  std::vector<LeftOut> left_out{};
};

// Whether the median reaches the aim, of one that has it.
bool Met(const Measured& row);

// Prints Markdown to standard output.
void PrintTables(const Results& results, const std::vector<std::size_t>& sizes);

// Errors: false, and the reason is on standard error.
bool WriteJson(const Results& results, const std::string& path);

}  // namespace tactus::bench
