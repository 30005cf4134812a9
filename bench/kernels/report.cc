#include "bench/kernels/report.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace tactus::bench {
namespace {

// Names come from us and from the driver: printable but for what JSON escapes.
std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) quoted += c;
  }
  return quoted + '"';
}

void WriteSpread(std::FILE* file, const char* name, const Spread& spread) {
  std::fprintf(file, ", \"%s\": {\"min\": %.9g, \"median\": %.9g, \"max\": %.9g}", name, spread.min,
               spread.median, spread.max);
}

void WriteRows(std::FILE* file, const char* name, const std::vector<Measured>& rows) {
  std::fprintf(file, ",\n \"%s\": [", name);
  const char* separator = "\n";
  for (const Measured& row : rows) {
    std::fprintf(file,
                 "%s  {\"operation\": %s, \"formula\": %s, \"segments\": %zu, \"bytes\": %zu, "
                 "\"sets\": %zu, \"calls\": %zu",
                 separator, Quoted(row.operation).c_str(), Quoted(row.formula).c_str(),
                 row.segments, row.bytes, row.sets, row.calls);
    if (row.bytes > 0) {
      WriteSpread(file, "bytes_per_s", row.bytes_per_s);
      WriteSpread(file, "copy_share", row.copy_share);
      if (row.aimed) {
        std::fprintf(file, ", \"aim\": %.9g, \"met\": %s", kAimShare, Met(row) ? "true" : "false");
      }
    }
    WriteSpread(file, "on_device_us", row.on_device_us);
    WriteSpread(file, "on_host_us", row.on_host_us);
    std::fprintf(file, "}");
    separator = ",\n";
  }
  std::fprintf(file, "\n ]");
}

// A cell: GB/s, and its share of the copy's.
void PrintCell(const Results& results, const Measured& first, std::size_t bytes) {
  for (const Measured& row : results.bandwidth) {
    if (row.operation != first.operation || row.segments != first.segments || row.bytes != bytes) {
      continue;
    }
    const char* const verdict = !row.aimed ? "" : Met(row) ? ", met" : ", **missed**";
    std::printf(" %.0f: %.2f (%.2f to %.2f)%s |", row.bytes_per_s.median / 1e9,
                row.copy_share.median, row.copy_share.min, row.copy_share.max, verdict);
    return;
  }
  std::printf(" |");
}

void PrintBandwidth(const Results& results, const std::vector<std::size_t>& sizes) {
  std::printf(
      "GB/s: share of the copy's, median (min to max); the aim is %.1f from %zu MiB, for "
      "reductions "
      "and LAMB from %zu MiB\n\n",
      kAimShare, kAimBytes / kMebibyte, kReductionAimBytes / kMebibyte);
  std::printf("| operation | segments | bytes |");
  for (const std::size_t bytes : sizes) {
    std::printf(" %.0f MiB |", static_cast<double>(bytes) / kMebibyte);
  }
  std::printf("\n| --- | --- | --- |");
  for (std::size_t i = 0; i < sizes.size(); ++i) std::printf(" --- |");
  std::printf("\n");
  const Measured* before = nullptr;
  for (const Measured& row : results.bandwidth) {
    const bool told =
        before != nullptr && before->operation == row.operation && before->segments == row.segments;
    before = &row;
    if (told) continue;
    const std::string segments = row.segments == 0 ? "" : std::to_string(row.segments);
    std::printf("| %s | %s | %s |", row.operation.c_str(), segments.c_str(), row.formula.c_str());
    for (const std::size_t bytes : sizes) PrintCell(results, row, bytes);
    std::printf("\n");
  }
}

void PrintOverhead(const Results& results) {
  std::printf(
      "\nMicroseconds of a call on 32 elements, many queued in a row, median (min to max)\n");
  std::printf("\n| operation | on the device | to queue it, on the host |\n| --- | --- | --- |\n");
  for (const Measured& row : results.overhead) {
    std::printf("| %s | %.2f (%.2f to %.2f) | %.2f (%.2f to %.2f) |\n", row.operation.c_str(),
                row.on_device_us.median, row.on_device_us.min, row.on_device_us.max,
                row.on_host_us.median, row.on_host_us.min, row.on_host_us.max);
  }
}

}  // namespace

bool Met(const Measured& row) { return row.copy_share.median >= kAimShare; }

void PrintTables(const Results& results, const std::vector<std::size_t>& sizes) {
  const Run& run = results.run;
  std::printf("Device: %s, L2 %.0f MiB; CUDA %s, driver for CUDA %s; %d repetitions, %s\n\n",
              run.device.c_str(), run.l2_mebibytes, run.runtime.c_str(), run.driver.c_str(),
              run.repetitions, run.graph ? "bandwidth by graph replay" : "call by call");
  std::printf(
      "Copy on the device, %.0f MiB by cudaMemcpyAsync, 8 n bytes: %.0f GB/s (%.0f to %.0f)\n\n",
      run.copy_mebibytes, results.copy_bytes_per_s.median / 1e9, results.copy_bytes_per_s.min / 1e9,
      results.copy_bytes_per_s.max / 1e9);
  if (!results.bandwidth.empty()) PrintBandwidth(results, sizes);
  if (!results.overhead.empty()) PrintOverhead(results);
  for (const LeftOut& row : results.left_out) {
    std::printf("\nLeft out, as the device's memory does not hold it: %s, %zu segments, %.0f MiB\n",
                row.operation.c_str(), row.segments, static_cast<double>(row.bytes) / kMebibyte);
  }
}

bool WriteJson(const Results& results, const std::string& path) {
  std::FILE* const file = std::fopen(path.c_str(), "w");
  if (file == nullptr) {
    std::fprintf(stderr, "bench_kernels: %s: %s\n", path.c_str(), std::strerror(errno));
    return false;
  }
  const Run& run = results.run;
  std::fprintf(file,
               "{\"device\": %s, \"driver\": %s, \"runtime\": %s, \"l2_mebibytes\": %.9g,\n"
               " \"copy_mebibytes\": %.9g, \"repetitions\": %d, \"graph\": %s",
               Quoted(run.device).c_str(), Quoted(run.driver).c_str(), Quoted(run.runtime).c_str(),
               run.l2_mebibytes, run.copy_mebibytes, run.repetitions, run.graph ? "true" : "false");
  WriteSpread(file, "copy_bytes_per_s", results.copy_bytes_per_s);
  WriteRows(file, "bandwidth", results.bandwidth);
  WriteRows(file, "overhead", results.overhead);
  std::fprintf(file, ",\n \"left_out\": %zu\n}\n", results.left_out.size());
  const bool written = std::ferror(file) == 0;
  if (std::fclose(file) == 0 && written) return true;
  std::fprintf(stderr, "bench_kernels: %s: %s\n", path.c_str(), std::strerror(errno));
  return false;
}

}  // namespace tactus::bench
