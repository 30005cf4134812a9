#include "coordinator/spec/engine_options.h"

#include "agent/engine/option_fields.h"
#include "coordinator/spec/spec_reader.h"

namespace tactus::spec {

engine::EngineOptions EngineOptionsOf(const ResolvedSpec& spec) {
  engine::EngineOptions options;
  SpecReader reader(*spec);
  ReadSpec(reader, options);
  return options;
}

}  // namespace tactus::spec
