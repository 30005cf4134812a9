#include "policies/prior.h"

#include "policies/memory.h"

namespace tactus::policies {
namespace {

// Grows when a field changes its meaning and keeps its name.
constexpr std::uint32_t kVersion = 1;

}  // namespace

std::string BytesOf(const Prior& prior) {
  MemoryWriter writer;
  writer.Write(kVersion);
  writer.Write(prior);
  return writer.Finish();
}

ReadPrior PriorOf(std::string_view bytes) {
  MemoryReader reader(bytes);
  if (!reader.ok()) return {.refusal = "it is damaged"};
  std::uint32_t version = 0;
  Prior prior;
  reader.Read(version);
  reader.Read(prior);
  if (!reader.Finish() || version != kVersion) {
    return {.refusal = "it is of another version, or its numbers cannot be"};
  }
  return {.prior = prior};
}

}  // namespace tactus::policies
