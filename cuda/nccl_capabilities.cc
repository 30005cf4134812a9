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

}  // namespace tactus::cuda::nccl
