// What a job's result has at its top, by name: workers write it, and whoever puts one into a folder
// of a person's has to know it again.

#pragma once

#include <array>

namespace tactus::protocol {

inline constexpr const char* kModelFile = "model.pt";             // TorchScript
inline constexpr const char* kWeightsFile = "model.safetensors";  // parameters and buffers
inline constexpr const char* kSummaryFile = "summary.json";
inline constexpr const char* kCurvesFolder = "tensorboard";
// The file among a suspended group's, or a cancelled job's, that it goes on from.
inline constexpr const char* kCheckpointFile = "checkpoint.safetensors";
// The folder of the copies of its parameters that a job keeps: "snapshots/12.500.safetensors", by
// the seconds that it had trained.
inline constexpr const char* kSnapshotFolder = "snapshots/";

inline constexpr std::array kResultNames = {kModelFile,    kWeightsFile,    kSummaryFile,
                                            kCurvesFolder, kCheckpointFile, kSnapshotFolder};

}  // namespace tactus::protocol
