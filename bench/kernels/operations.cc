#include "bench/kernels/operations.h"

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "cuda/ops/adam.h"
#include "cuda/ops/adasum.h"
#include "cuda/ops/block_momentum.h"
#include "cuda/ops/combination.h"
#include "cuda/ops/convert.h"
#include "cuda/ops/extremes.h"
#include "cuda/ops/gather.h"
#include "cuda/ops/lamb.h"
#include "cuda/ops/lanes.h"
#include "cuda/ops/quantise.h"
#include "cuda/ops/sgd.h"
#include "cuda/ops/sign_pack.h"
#include "cuda/ops/vector.h"

namespace tactus::bench {
namespace {

namespace kernels = cuda::kernels;
using cuda::Stream;
using Prepare = std::function<Call(const Setting&)>;

// Small steps, so that parameters stay where they are however often one is taken.
constexpr float kRate = 1e-6f;
constexpr float kMomentum = 0.9f;
constexpr float kScale = 8;  // a quantiser's: above all normal numbers

struct Flat {
  std::string name;
  std::string formula;
  double bytes_per_element;
};

// An operation over whole buffers, of n elements each.
Operation OverBuffers(Flat flat, Prepare prepare) {
  return {.name = std::move(flat.name),
          .formula = std::move(flat.formula),
          .bytes_per_element = flat.bytes_per_element,
          .prepare = std::move(prepare)};
}

// An operation by segments.
Operation BySegments(Flat flat, Prepare prepare) {
  Operation operation = OverBuffers(std::move(flat), std::move(prepare));
  operation.by_segments = true;
  return operation;
}

// What reductions count with. [CountersFor(rows)]
std::span<std::uint32_t> Counters(const Setting& setting, std::size_t rows) {
  constexpr std::size_t kBytes = sizeof(std::uint32_t);
  const std::span<std::uint8_t> bytes =
      setting.workspace.Bytes(kernels::CountersFor(rows) * kBytes, 0);
  return {reinterpret_cast<std::uint32_t*>(bytes.data()), bytes.size() / kBytes};
}

Operation Reduction(Operation operation) {
  operation.aim_bytes = kReductionAimBytes;
  return operation;
}

// Room for so many sums a segment.
kernels::SumsInto SumsOf(const Setting& setting, std::size_t per_segment) {
  const SegmentedBuffer& segments = *setting.segments;
  return {.sums = setting.workspace.Doubles(per_segment * segments.segments()),
          .partials = setting.workspace.Doubles(per_segment * segments.chunks()),
          .counters = Counters(setting, segments.segments())};
}

kernels::SumsInto SumOf(const Setting& setting) {
  return {.sums = setting.workspace.Doubles(1),
          .partials = setting.workspace.Doubles(cuda::ChunksIn(setting.n)),
          .counters = Counters(setting, 1)};
}

std::span<float> FlatNormal(const Setting& setting) {
  return setting.workspace.Normal(setting.segments->flat_length());
}

// Values that lie one behind the other come into a buffer by segments, as gradients do from where
// libtorch left them.
Call GatherCall(const Setting& setting, bool adds) {
  const std::span<float> from = FlatNormal(setting);
  const std::size_t segments = setting.segments->segments();
  const std::size_t length = setting.segments->elements() / segments;  // without padding
  std::vector<cuda::GatherPart> parts;
  for (std::size_t i = 0; i < segments; ++i) {
    parts.push_back({.offset = i * length, .length = length, .from = &from[i * length]});
  }
  return [parts, adds, to = setting.workspace.Zero(from.size()), into = SumOf(setting)](
             Stream stream) { kernels::Gather(stream, {.parts = parts, .adds = adds}, to, into); };
}

std::span<const float> Scales(const Setting& setting, float scale) {
  return setting.workspace.Upload(std::vector<float>(setting.segments->segments(), scale));
}

void AddVectors(std::vector<Operation>& all) {
  all.push_back(OverBuffers({"copy", "8 n", 8}, [](const Setting& s) -> Call {
    return [from = s.workspace.Normal(s.n), to = s.workspace.Zero(s.n)](Stream stream) {
      kernels::Copy(stream, from, to);
    };
  }));
  all.push_back(OverBuffers({"fill", "4 n", 4}, [](const Setting& s) -> Call {
    return [x = s.workspace.Normal(s.n)](Stream stream) { kernels::Fill(stream, 1, x); };
  }));
  all.push_back(OverBuffers({"scale", "8 n", 8}, [](const Setting& s) -> Call {
    return [x = s.workspace.Normal(s.n)](Stream stream) { kernels::Scale(stream, 1, x); };
  }));
  all.push_back(OverBuffers({"axpy", "12 n", 12}, [](const Setting& s) -> Call {
    return [x = s.workspace.Normal(s.n), y = s.workspace.Normal(s.n)](Stream stream) {
      kernels::Axpy(stream, kRate, x, y);
    };
  }));
  all.push_back(Reduction(OverBuffers({"squared norm", "4 n", 4}, [](const Setting& s) -> Call {
    return [x = s.workspace.Normal(s.n), into = SumOf(s)](Stream stream) {
      kernels::SquaredNorm(stream, x, into);
    };
  })));
  all.push_back(Reduction(BySegments({"gather with norm", "8 n", 8},
                                     [](const Setting& s) { return GatherCall(s, false); })));
  all.push_back(Reduction(BySegments({"gather with norm, added", "12 n", 12},
                                     [](const Setting& s) { return GatherCall(s, true); })));
  all.push_back(Reduction(BySegments({"extremes", "4 n", 4}, [](const Setting& s) -> Call {
    const std::size_t segments = s.segments->segments();
    const kernels::ExtremesInto into{.extremes = {.max_abs = s.workspace.Zero(segments),
                                                  .nonfinite = s.workspace.Zero(segments)},
                                     .partials = s.workspace.Words(2 * s.segments->chunks()),
                                     .counters = Counters(s, segments)};
    return [x = FlatNormal(s), view = s.segments->view(), into](Stream stream) {
      kernels::ExtremesPerSegment(stream, x, view, into);
    };
  })));
}

Operation Sgd(Flat flat, float momentum, bool nesterov) {
  return OverBuffers(std::move(flat), [momentum, nesterov](const Setting& s) -> Call {
    const cuda::SgdStep step{
        .learning_rate = kRate, .momentum = momentum, .weight_decay = 1e-4f, .nesterov = nesterov};
    const std::span<float> buffer = momentum > 0 ? s.workspace.Zero(s.n) : std::span<float>();
    return [step, gradients = s.workspace.Normal(s.n), parameters = s.workspace.Normal(s.n),
            buffer](Stream stream) { kernels::Sgd(stream, step, gradients, parameters, buffer); };
  });
}

Operation Adam(std::string name, bool decoupled) {
  return OverBuffers({std::move(name), "28 n", 28}, [decoupled](const Setting& s) -> Call {
    const cuda::AdamStep step{.learning_rate = static_cast<double>(kRate),
                              .weight_decay = 0.01,
                              .decoupled = decoupled,
                              .step = 10};
    const kernels::AdamBuffers buffers{.gradients = s.workspace.Normal(s.n),
                                       .parameters = s.workspace.Normal(s.n),
                                       .first_moment = s.workspace.Normal(s.n),
                                       .second_moment = s.workspace.Positive(s.n)};
    return [step, buffers](Stream stream) { kernels::Adam(stream, step, buffers); };
  });
}

void AddOptimizers(std::vector<Operation>& all) {
  all.push_back(Sgd({"sgd", "12 n", 12}, 0, false));
  all.push_back(Sgd({"sgd, momentum", "20 n", 20}, kMomentum, false));
  all.push_back(Sgd({"sgd, nesterov", "20 n", 20}, kMomentum, true));
  all.push_back(Adam("adam", false));
  all.push_back(Adam("adamw", true));
  all.push_back(Reduction(BySegments({"lamb", "40 n", 40}, [](const Setting& s) -> Call {
    const cuda::LambStep step{.learning_rate = static_cast<double>(kRate),
                              .weight_decay = 0.01,
                              .ratio_min = 0.01,
                              .ratio_max = 10,
                              .step = 10};
    const cuda::LambBuffers buffers{
        .gradients = FlatNormal(s),
        .parameters = FlatNormal(s),
        .first_moment = FlatNormal(s),
        .second_moment = s.workspace.Positive(s.segments->flat_length())};
    return [step, buffers, view = s.segments->view(),
            into = SumsOf(s, kernels::kLambSumsPerSegment)](Stream stream) {
      kernels::Lamb(stream, step, view, buffers, into);
    };
  })));
}

Operation WeightedSum(std::size_t count) {
  const double bytes = 4.0 * static_cast<double>(count + 1);
  const std::string number = std::to_string(count);
  return OverBuffers({"weighted sum of " + number, "4 (" + number + " + 1) n", bytes},
                     [count](const Setting& s) -> Call {
                       std::vector<cuda::Weighted> parts;
                       for (std::size_t p = 0; p < count; ++p) {
                         parts.push_back({.weight = 1.0 / static_cast<double>(count),
                                          .buffer = s.workspace.Normal(s.n)});
                       }
                       return [parts, out = s.workspace.Zero(s.n)](Stream stream) {
                         kernels::WeightedSum(stream, parts, out);
                       };
                     });
}

Operation BlockMomentum(Flat flat, double momentum) {
  return OverBuffers(std::move(flat), [momentum](const Setting& s) -> Call {
    const cuda::BlockMomentumStep step{.scale = 0.5, .learning_rate = 0.1, .momentum = momentum};
    const cuda::BlockMomentumBuffers buffers{
        .start = s.workspace.Normal(s.n),
        .delta = s.workspace.Normal(s.n),
        .momentum = momentum > 0 ? s.workspace.Zero(s.n) : std::span<float>(),
        .parameters = s.workspace.Normal(s.n)};
    return [step, buffers](Stream stream) { kernels::BlockMomentum(stream, step, buffers); };
  });
}

void AddCombinations(std::vector<Operation>& all) {
  all.push_back(
      Reduction(BySegments({"adasum, dot and norms", "8 n", 8}, [](const Setting& s) -> Call {
        return [a = FlatNormal(s), b = FlatNormal(s), view = s.segments->view(),
                into = SumsOf(s, cuda::kAdasumSumsPerSegment)](Stream stream) {
          kernels::AdasumPartials(stream, {.a = a, .b = b}, view, into);
        };
      })));
  all.push_back(BySegments({"adasum, combine", "12 n", 12}, [](const Setting& s) -> Call {
    return [a = FlatNormal(s), b = FlatNormal(s), view = s.segments->view(),
            sums = SumsOf(s, cuda::kAdasumSumsPerSegment).sums](Stream stream) {
      kernels::AdasumCombine(stream, {.a = a, .b = b}, view, sums, a);
    };
  }));
  for (const std::size_t count : {2, 4, 8}) all.push_back(WeightedSum(count));
  all.push_back(OverBuffers({"parameter delta", "12 n", 12}, [](const Setting& s) -> Call {
    return [now = s.workspace.Normal(s.n), start = s.workspace.Normal(s.n),
            delta = s.workspace.Zero(s.n)](Stream stream) {
      kernels::ParameterDelta(stream, now, start, delta);
    };
  }));
  all.push_back(BlockMomentum({"delta applied", "12 n", 12}, 0));
  all.push_back(BlockMomentum({"delta applied, block momentum", "20 n", 20}, 0.3));
}

using Encode = void (*)(Stream, float, std::span<const float>, std::span<std::uint16_t>);
using Decode = void (*)(Stream, float, std::span<const std::uint16_t>, std::span<float>);

Operation To16Bits(std::string name, Encode encode) {
  return OverBuffers({std::move(name), "6 n", 6}, [encode](const Setting& s) -> Call {
    return [encode, from = s.workspace.Normal(s.n), to = s.workspace.Halves(s.n)](Stream stream) {
      encode(stream, 2, from, to);
    };
  });
}

Operation From16Bits(std::string name, Decode decode) {
  return OverBuffers({std::move(name), "6 n", 6}, [decode](const Setting& s) -> Call {
    return [decode, from = s.workspace.Halves(s.n), to = s.workspace.Zero(s.n)](Stream stream) {
      decode(stream, 0.5f, from, to);
    };
  });
}

void AddConversions(std::vector<Operation>& all) {
  all.push_back(To16Bits("to bfloat16", kernels::ToBfloat16));
  all.push_back(To16Bits("to float16", kernels::ToFloat16));
  all.push_back(From16Bits("from bfloat16", kernels::FromBfloat16));
  all.push_back(From16Bits("from float16", kernels::FromFloat16));
}

cuda::SignSource SignsOf(const Setting& s) {
  return {.input = FlatNormal(s), .error = s.workspace.Zero(s.segments->flat_length())};
}

Operation SignScales(std::string name, cuda::SignSharing sharing) {
  return Reduction(BySegments({std::move(name), "8 n", 8}, [sharing](const Setting& s) -> Call {
    const kernels::SignScalesInto into{.scales = s.workspace.Zero(s.segments->segments()),
                                       .norms = SumsOf(s, 1)};
    return [sharing, source = SignsOf(s), view = s.segments->view(), into](Stream stream) {
      kernels::SignScales(stream, view, sharing, source, into);
    };
  }));
}

void AddSigns(std::vector<Operation>& all) {
  all.push_back(SignScales("sign scales", cuda::SignSharing::kSegment));
  all.push_back(SignScales("sign scale of the table", cuda::SignSharing::kTable));
  all.push_back(BySegments({"sign pack", "(12 + 1/8) n", 12.125}, [](const Setting& s) -> Call {
    return [source = SignsOf(s), chunks = s.segments->Packed(1, s.workspace), scales = Scales(s, 1),
            words = s.workspace.Words(s.segments->Words(1))](Stream stream) {
      kernels::SignPack(stream, chunks, source, scales, words);
    };
  }));
  all.push_back(BySegments({"sign unpack", "(4 + 1/8) n", 4.125}, [](const Setting& s) -> Call {
    const cuda::SignMessage message{.words = s.workspace.Words(s.segments->Words(1)),
                                    .scales = Scales(s, 1)};
    return [message, chunks = s.segments->Packed(1, s.workspace), out = FlatNormal(s)](
               Stream stream) { kernels::SignUnpack(stream, chunks, message, out); };
  }));
  all.push_back(BySegments({"sign add", "(8 + 1/8) n", 8.125}, [](const Setting& s) -> Call {
    const cuda::SignMessage message{.words = s.workspace.Words(s.segments->Words(1)),
                                    .scales = Scales(s, kRate)};
    return [message, chunks = s.segments->Packed(1, s.workspace), out = FlatNormal(s)](
               Stream stream) { kernels::SignAdd(stream, chunks, message, 0.5, out); };
  }));
}

// What the three operations of the quantiser share.
struct Quantiser {
  kernels::PackedChunks chunks;
  cuda::Quantisation quantisation;
  std::span<std::uint32_t> words;
};

Quantiser QuantiserOf(const Setting& s, unsigned bits, float scale) {
  const std::size_t segments = s.segments->segments();
  return {.chunks = s.segments->Packed(bits, s.workspace),
          .quantisation = {.bits = s.workspace.Bytes(segments, static_cast<std::uint8_t>(bits)),
                           .scales = Scales(s, scale)},
          .words = s.workspace.Words(s.segments->Words(bits))};
}

void AddQuantiser(std::vector<Operation>& all, unsigned bits) {
  const double coded = bits / 8.0;
  const std::string number = std::to_string(bits);
  const auto flat = [&](const std::string& name, int plain) {
    return Flat{name + ", " + number + " bits",
                "(" + std::to_string(plain) + " + " + number + "/8) n", plain + coded};
  };
  all.push_back(BySegments(flat("quantise", 4), [bits](const Setting& s) -> Call {
    const cuda::QuantiseSource source{.values = FlatNormal(s), .draws = {.seed = 1}};
    return [q = QuantiserOf(s, bits, kScale), source](Stream stream) {
      kernels::Quantise(stream, q.chunks, q.quantisation, source, q.words);
    };
  }));
  all.push_back(BySegments(flat("dequantise", 4), [bits](const Setting& s) -> Call {
    return [q = QuantiserOf(s, bits, kScale), out = FlatNormal(s)](Stream stream) {
      kernels::Dequantise(stream, q.chunks, q.quantisation, q.words, out);
    };
  }));
  all.push_back(BySegments(flat("dequantise and add", 8), [bits](const Setting& s) -> Call {
    return [q = QuantiserOf(s, bits, kRate), out = FlatNormal(s)](Stream stream) {
      kernels::DequantiseAdd(stream, q.chunks, q.quantisation, {.words = q.words}, out);
    };
  }));
}

void AddLanes(std::vector<Operation>& all) {
  all.push_back(OverBuffers({"write lanes", "a few numbers", 0}, [](const Setting& s) -> Call {
    constexpr std::size_t kLanes = 16;
    std::array<cuda::LaneValue, kLanes> values{};
    for (std::size_t i = 0; i < kLanes; ++i) values[i] = {.lane = i, .if_finite = 1};
    values[0].norm_factor = 1;
    values[1].loss = cuda::LossLane::kAll;
    return [values, norm2 = s.workspace.Doubles(1), loss = s.workspace.Doubles(1),
            tail = s.workspace.Zero(kLanes)](Stream stream) {
      kernels::WriteLanes(stream, values, {.norm2 = norm2, .loss = loss, .common_loss = loss},
                          tail);
    };
  }));
}

}  // namespace

std::vector<Operation> Operations() {
  std::vector<Operation> all;
  AddVectors(all);
  AddOptimizers(all);
  AddCombinations(all);
  AddConversions(all);
  AddSigns(all);
  for (const unsigned bits : {2u, 4u, 8u}) AddQuantiser(all, bits);
  AddLanes(all);
  return all;
}

}  // namespace tactus::bench
