#include "cuda/nccl_capabilities.h"

namespace tactus::cuda::nccl {
namespace {

constexpr int kShrinkFrom = 22703;
constexpr int kRevokeFrom = 22807;
constexpr int kGrowFrom = 22902;
constexpr int kLeftOutFrom = 22803;
constexpr int kLeftOutTo = 22808;

}  // namespace

Capabilities OfVersion(int nccl_version) {
  if (nccl_version >= kLeftOutFrom && nccl_version <= kLeftOutTo) return {};
  return {.shrink = nccl_version >= kShrinkFrom,
          .revoke = nccl_version >= kRevokeFrom,
          .grow = nccl_version >= kGrowFrom};
}

std::string VersionText(int nccl_version) {
  if (nccl_version <= 0) return "none";
  const int major = nccl_version < 10'000 ? 1'000 : 10'000;  // before 2.9, and since
  return std::to_string(nccl_version / major) + "." + std::to_string(nccl_version % major / 100) +
         "." + std::to_string(nccl_version % 100);
}

}  // namespace tactus::cuda::nccl
