// Which worker has which place in the meshes of a job whose model is split over devices.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "coordinator/job/records.h"

namespace tactus::job {

// The members by rank: mesh after mesh, each row by row, as agent/collective/places.h reads ranks.
// Equal devices come into one mesh, and meshes into nodes, as far as may be, so that slow links lie
// between replicas; what is left then makes meshes of unequal devices, of which the slowest says
// how fast they are. devices: of a mesh, above 1; members: a multiple of it.
std::vector<MemberRecord> PlacedInMeshes(const std::vector<MemberRecord>& members,
                                         std::uint32_t devices);

// How a job's replicas lie over these members, which are by rank, for a person; empty where each
// device has all of the model, or they make no whole replicas.
std::string MeshWords(const JobSettings& settings, const std::vector<MemberRecord>& members);

inline constexpr char kMeshField[] = "model.options.mesh";

// Why a job of meshes cannot have this member, whose worker does not say that it knows them.
std::string WordsOfUnknownMesh(const MemberRecord& member);

// Of a group that fell apart, ranks in rising order, those who can go on: of meshes all of whose
// members are there.
std::vector<std::uint32_t> OfWholeMeshes(const std::vector<std::uint32_t>& ranks,
                                         std::uint32_t devices);

}  // namespace tactus::job
