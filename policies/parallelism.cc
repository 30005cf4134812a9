#include "policies/parallelism.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "policies/figures.h"

namespace tactus::policies {
namespace {

constexpr double kElementBytes = 4;
// Devices are alike whose speeds and memories differ by no more than this.
constexpr double kAlike = 0.1;

double Real(std::uint64_t value) { return static_cast<double>(value); }

std::uint32_t RootOf(std::uint32_t devices) {
  auto root = static_cast<std::uint32_t>(std::sqrt(static_cast<double>(devices)));
  while (root * root > devices) --root;
  while ((root + 1) * (root + 1) <= devices) ++root;
  return root;
}

// b s h and h^2.
struct Areas {
  Areas(const TransformerSizes& sizes, std::uint64_t batch)
      : activations(Real(batch) * Real(sizes.sequence) * Real(sizes.hidden)),
        weights(Real(sizes.hidden) * Real(sizes.hidden)) {}
  double activations;
  double weights;
};

// Of broadcasts and reductions along rows and columns.
double MeshFactor(std::uint32_t devices, bool pipelined) {
  const double root = std::sqrt(static_cast<double>(devices));
  return devices == 1 ? 0 : (pipelined ? 1 : std::log2(root)) / root;
}

std::string Words(const MeshShape& shape) {
  if (shape.kind == MeshKind::kNone) return "one device";
  const std::uint32_t root = RootOf(shape.devices);
  if (shape.kind == MeshKind::kOneD) return "1-D of " + std::to_string(shape.devices);
  return "2-D of " + std::to_string(root) + " x " + std::to_string(root);
}

// The other counts that divide all that has to be divided, nearest first.
std::string NearestSplit(const TransformerSizes& sizes, std::uint64_t split, MeshKind kind) {
  for (std::uint64_t away = 1; away < split; ++away) {
    for (const std::uint64_t other : {split - away, split + away}) {
      if (other == 0 || sizes.heads % other != 0 || sizes.hidden % other != 0) continue;
      const std::uint64_t devices = kind == MeshKind::kTwoD ? other * other : other;
      return std::to_string(devices) + (devices == 1 ? " device" : " devices");
    }
  }
  return "1 device";
}

}  // namespace

double ForwardElements(const MeshShape& shape, const TransformerSizes& sizes, std::uint64_t batch,
                       const MeshTraining& training) {
  const Areas areas(sizes, batch);
  const double p = shape.devices;
  if (shape.kind == MeshKind::kTwoD) {
    return MeshFactor(shape.devices, training.pipelined) *
           (7 * areas.activations + 12 * areas.weights);
  }
  return 4 * (p - 1) / p * areas.activations;
}

double BackwardElements(const MeshShape& shape, const TransformerSizes& sizes, std::uint64_t batch,
                        const MeshTraining& training) {
  const double forward = ForwardElements(shape, sizes, batch, training);
  const double own = shape.kind == MeshKind::kTwoD ? 2 * forward : forward;
  return own + (training.recompute ? forward : 0);
}

double Products(const MeshShape& shape, const TransformerSizes& sizes, std::uint64_t batch,
                const MeshTraining& training) {
  const double b = Real(batch);
  const double s = Real(sizes.sequence);
  const double h = Real(sizes.hidden);
  const double layer = 12 * b * s * h * h + 2 * b * s * s * h;
  const double passes = training.recompute ? 4 : 3;
  const double head = 3 * b * s * h * Real(sizes.vocabulary);
  return (passes * Real(sizes.layers) * layer + head) / shape.devices;
}

double Parameters(const MeshShape& shape, const TransformerSizes& sizes) {
  const double hidden = Real(sizes.hidden);
  const double tables = (sizes.tied ? 1 : 2) * Real(sizes.vocabulary) * hidden;
  const double split = (12 * Real(sizes.layers) * hidden * hidden + tables) / shape.devices;
  const double columns = shape.kind == MeshKind::kTwoD ? RootOf(shape.devices) : 1;
  return split + Real(sizes.positions) * hidden / columns;
}

double MeshBytes(const MeshShape& shape, const TransformerSizes& sizes, std::uint64_t batch,
                 const MeshTraining& training) {
  const Areas areas(sizes, batch);
  const double p = shape.devices;
  const double layers = Real(sizes.layers);
  const double vocabulary = Real(sizes.vocabulary) * Real(sizes.hidden) / p;
  const double parameters = Parameters(shape, sizes);
  const double split = areas.activations / p;
  // What 1-D leaves with every device: the inputs and outputs of its pairs of products.
  const double whole = shape.kind == MeshKind::kTwoD ? split : areas.activations;
  const double logits = Real(batch) * Real(sizes.sequence) * Real(sizes.vocabulary) / p;
  const double scores =
      Real(batch) * Real(sizes.heads) * Real(sizes.sequence) * Real(sizes.sequence) / p;
  const double forward = 3 * split + 2 * whole + std::max({4 * split, logits, vocabulary});
  const double kept =
      training.recompute ? layers * whole : layers * (7 * split + 2 * whole + scores);
  const double backward = 5 * split + 2 * whole + whole;
  const double panels =
      shape.kind == MeshKind::kTwoD && shape.devices > 1
          ? std::max({vocabulary, 4 * split + 4 * areas.weights / p, logits + vocabulary})
          : 0;
  return kElementBytes * ((2.0 + training.state_buffers) * parameters + kept + forward + backward +
                          2 * scores + panels);
}

std::uint64_t LargestBatch(const MeshShape& shape, const TransformerSizes& sizes,
                           const MeshTraining& training, double bytes) {
  const std::uint64_t step = shape.kind == MeshKind::kTwoD ? RootOf(shape.devices) : 1;
  const auto fits = [&](std::uint64_t steps) {
    return MeshBytes(shape, sizes, steps * step, training) <= bytes;
  };
  if (!fits(1)) return 0;
  std::uint64_t low = 1;
  while (low < (std::uint64_t{1} << 32) && fits(2 * low)) low *= 2;
  std::uint64_t high = 2 * low;
  while (high - low > 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return low * step;
}

std::string ReasonAgainst(const MeshShape& shape, const TransformerSizes& sizes,
                          std::uint64_t batch) {
  if (shape.kind == MeshKind::kNone) {
    return shape.devices == 1
               ? ""
               : "found none with " + std::to_string(shape.devices) + " devices, allowed is 1";
  }
  const std::uint32_t root = RootOf(shape.devices);
  const bool two = shape.kind == MeshKind::kTwoD;
  if (two && (shape.devices == 0 || root * root != shape.devices)) {
    const std::uint32_t below = std::max(1u, root);
    const std::uint32_t nearest =
        shape.devices - below * below <= (below + 1) * (below + 1) - shape.devices
            ? below * below
            : (below + 1) * (below + 1);
    return "found 2d with " + std::to_string(shape.devices) +
           " devices, allowed is a square; the nearest is " + std::to_string(nearest);
  }
  if (shape.devices == 0) return "found 0 devices, allowed are 1 and more";
  const std::uint64_t split = two ? root : shape.devices;
  const std::vector<std::pair<const char*, std::uint64_t>> sides = {{"heads", sizes.heads},
                                                                    {"width", sizes.hidden}};
  for (const auto& [name, value] : sides) {
    if (value % split == 0) continue;
    return "found " + std::to_string(value) + " " + name + ", which " + std::to_string(split) +
           (two ? " rows do" : " devices do") + " not divide; the nearest layout that does is of " +
           NearestSplit(sizes, split, shape.kind);
  }
  if (two && batch % split != 0) {
    return "found a batch of " + std::to_string(batch) + ", which " + std::to_string(split) +
           " rows do not divide; the nearest is " +
           std::to_string(std::max<std::uint64_t>(1, (batch + split / 2) / split) * split);
  }
  return "";
}

MeshSeconds SecondsOf(const MeshShape& shape, const TransformerSizes& sizes, std::uint64_t batch,
                      const MeshTraining& training, const MeshPlace& place,
                      const MeshLinks& links) {
  MeshSeconds seconds{.compute =
                          Products(shape, sizes, batch, training) / place.products_per_second};
  const double p = shape.devices;
  const double layers = Real(sizes.layers);
  const double elements = layers * (ForwardElements(shape, sizes, batch, training) +
                                    BackwardElements(shape, sizes, batch, training));
  const bool one_node = place.per_node >= shape.devices;
  // A node's link carries one ring in 1-D; in 2-D the rows, or the columns, that cross it at once.
  double link = one_node ? links.within : links.between;
  const double root = std::sqrt(p);
  if (shape.kind == MeshKind::kTwoD && !one_node) {
    link = std::min(links.within, links.between / std::sqrt(static_cast<double>(place.per_node)));
  }
  const double passes = training.recompute ? 4 : 3;
  double messages = 0;
  if (shape.kind == MeshKind::kOneD) messages = layers * passes * 2 * 2 * (p - 1);
  if (shape.kind == MeshKind::kTwoD && p > 1) {
    messages =
        layers * passes * 4 * 2 * (training.pipelined ? root - 1 + root : root * std::log2(root));
  }
  seconds.transfer = elements * kElementBytes / link + messages * links.latency;
  if (place.replicas > 1) {
    const double r = place.replicas;
    const double sharing = std::min<double>(place.per_node, p);
    const double between = place.one_node ? links.within : links.between / sharing;
    seconds.gradients = 2 * (r - 1) / r * Parameters(shape, sizes) * kElementBytes / between +
                        2 * (r - 1) * links.latency;
  }
  return seconds;
}

namespace {

// Devices that are alike, in the order in which meshes are filled: by node, then as given.
struct Sort {
  std::vector<std::size_t> devices{};
  double products_per_second = 0;  // of the slowest
  std::uint64_t memory_bytes = 0;  // of the smallest
};

bool Alike(double one, double other) {
  return std::abs(one - other) <= kAlike * std::max(one, other);
}

std::vector<Sort> SortsOf(const std::vector<MeshDevice>& devices) {
  std::vector<std::size_t> order(devices.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    return std::tuple(-devices[a].products_per_second, devices[b].memory_bytes) <
           std::tuple(-devices[b].products_per_second, devices[a].memory_bytes);
  });
  std::vector<Sort> sorts;
  std::vector<std::size_t> first;  // of each sort, to which the others are alike
  for (const std::size_t device : order) {
    std::size_t at = 0;
    for (; at < sorts.size(); ++at) {
      const MeshDevice& other = devices[first[at]];
      const bool alike = Alike(other.products_per_second, devices[device].products_per_second) &&
                         Alike(Real(other.memory_bytes), Real(devices[device].memory_bytes));
      if (alike) break;
    }
    if (at == sorts.size()) {
      sorts.push_back({.products_per_second = devices[device].products_per_second,
                       .memory_bytes = devices[device].memory_bytes});
      first.push_back(device);
    }
    Sort& sort = sorts[at];
    sort.devices.push_back(device);
    sort.products_per_second =
        std::min(sort.products_per_second, devices[device].products_per_second);
    sort.memory_bytes = std::min(sort.memory_bytes, devices[device].memory_bytes);
  }
  for (Sort& sort : sorts) std::ranges::sort(sort.devices);
  return sorts;
}

// Meshes of so many devices: as many as there may be within nodes, then of what is left, the nodes
// with the most left first.
std::vector<std::vector<std::size_t>> Fill(const std::vector<std::size_t>& devices,
                                           const std::vector<MeshDevice>& all, std::size_t each) {
  std::map<std::string, std::vector<std::size_t>> by_node;
  for (const std::size_t device : devices) by_node[all[device].node].push_back(device);
  std::vector<std::vector<std::size_t>> meshes;
  std::vector<std::vector<std::size_t>> left;
  for (const auto& [node, of_node] : by_node) {
    std::size_t at = 0;
    for (; at + each <= of_node.size(); at += each) {
      meshes.emplace_back(of_node.begin() + static_cast<std::ptrdiff_t>(at),
                          of_node.begin() + static_cast<std::ptrdiff_t>(at + each));
    }
    left.emplace_back(of_node.begin() + static_cast<std::ptrdiff_t>(at), of_node.end());
  }
  std::ranges::stable_sort(left, [](const auto& a, const auto& b) { return a.size() > b.size(); });
  std::vector<std::size_t> mesh;
  for (const std::vector<std::size_t>& of_node : left) {
    for (const std::size_t device : of_node) {
      mesh.push_back(device);
      if (mesh.size() < each) continue;
      meshes.push_back(std::exchange(mesh, {}));
    }
  }
  return meshes;
}

std::uint32_t MostOnANode(const std::vector<std::size_t>& mesh,
                          const std::vector<MeshDevice>& all) {
  std::map<std::string, std::uint32_t> on;
  std::uint32_t most = 1;
  for (const std::size_t device : mesh) most = std::max(most, ++on[all[device].node]);
  return most;
}

}  // namespace

std::vector<std::vector<std::size_t>> FormMeshes(const std::vector<MeshDevice>& devices,
                                                 std::size_t each) {
  TACTUS_CHECK(each >= 1);
  std::vector<std::vector<std::size_t>> meshes;
  std::vector<bool> placed(devices.size());
  for (const Sort& sort : SortsOf(devices)) {
    for (std::vector<std::size_t>& mesh : Fill(sort.devices, devices, each)) {
      for (const std::size_t device : mesh) placed[device] = true;
      meshes.push_back(std::move(mesh));
    }
  }
  std::vector<std::size_t> left;
  for (std::size_t device = 0; device < devices.size(); ++device) {
    if (!placed[device]) left.push_back(device);
  }
  for (std::vector<std::size_t>& mesh : Fill(left, devices, each)) {
    meshes.push_back(std::move(mesh));
  }
  return meshes;
}

namespace {

std::vector<MeshShape> ShapesFor(const MeshAsk& ask, std::size_t devices) {
  std::vector<MeshShape> shapes;
  const auto add = [&](MeshKind kind, std::uint32_t count) {
    if (count > devices || (!ask.any_kind && kind != ask.kind)) return;
    if (ask.mesh_devices > 0 && count != ask.mesh_devices) return;
    shapes.push_back({.kind = kind, .devices = count});
  };
  add(MeshKind::kNone, 1);
  for (std::uint32_t count = 2; count <= devices; ++count) add(MeshKind::kOneD, count);
  for (std::uint32_t root = 2; root * root <= devices; ++root) add(MeshKind::kTwoD, root * root);
  return shapes;
}

// The batch of one of so many replicas; a multiple of what has to divide it.
std::uint64_t BatchOf(const MeshShape& shape, std::uint64_t batch, std::size_t replicas) {
  const std::uint64_t step = shape.kind == MeshKind::kTwoD ? RootOf(shape.devices) : 1;
  const std::uint64_t share = std::max<std::uint64_t>(1, batch / replicas);
  return (share + step - 1) / step * step;
}

// The layout on all devices of a sort that it can be had on.
struct Trial {
  MeshAlternative told{};
  std::vector<MeshReplica> replicas{};
  double missing = std::numeric_limits<double>::infinity();  // bytes a device
};

// share: of the batch that this sort's devices take; below 1 there are others, with which they
// share gradients.
Trial Try(const MeshAsk& ask, const Sort& sort, const MeshShape& shape, double share) {
  Trial trial{.told = {.shape = shape}};
  trial.told.reason = ReasonAgainst(shape, ask.sizes);
  if (!trial.told.reason.empty()) return trial;
  const auto meshes = Fill(sort.devices, ask.devices, shape.devices);
  if (meshes.empty()) {
    trial.told.reason = "there are not as many devices that are alike";
    return trial;
  }
  const auto memory = Real(sort.memory_bytes);
  const auto samples =
      std::max<std::uint64_t>(1, static_cast<std::uint64_t>(Real(ask.batch) * share));
  std::uint64_t batch = BatchOf(shape, samples, meshes.size());
  trial.told.batch_max = LargestBatch(shape, ask.sizes, ask.training, memory);
  trial.told.bytes = MeshBytes(shape, ask.sizes, batch, ask.training);
  if (trial.told.batch_max == 0) {
    const double least = MeshBytes(shape, ask.sizes, BatchOf(shape, 1, 1), ask.training);
    trial.missing = least - memory;
    trial.told.reason = "a device needs " + Figure(least) + " bytes, and has " + Figure(memory);
    return trial;
  }
  batch = std::min(batch, trial.told.batch_max);  // in so many more passes
  trial.told.bytes = MeshBytes(shape, ask.sizes, batch, ask.training);
  trial.told.replicas = static_cast<std::uint32_t>(meshes.size());
  const bool one_node = share >= 1 && std::ranges::all_of(sort.devices, [&](std::size_t device) {
                          return ask.devices[device].node == ask.devices[sort.devices.front()].node;
                        });
  for (const std::vector<std::size_t>& mesh : meshes) {
    const MeshSeconds seconds =
        SecondsOf(shape, ask.sizes, batch, ask.training,
                  {.products_per_second = sort.products_per_second,
                   .per_node = MostOnANode(mesh, ask.devices),
                   .replicas = static_cast<std::uint32_t>(meshes.size()) + (share < 1 ? 1 : 0),
                   .one_node = one_node},
                  ask.links);
    trial.replicas.push_back({.shape = shape,
                              .devices = mesh,
                              .samples_per_second = Real(batch) / seconds.step(),
                              .batch = batch});
    trial.told.samples_per_second += trial.replicas.back().samples_per_second;
  }
  return trial;
}

std::string ReasonOf(const MeshChoice& choice) {
  std::map<std::pair<int, std::uint32_t>, int> counts;
  std::vector<MeshShape> shapes;
  for (const MeshReplica& replica : choice.replicas) {
    if (++counts[{static_cast<int>(replica.shape.kind), replica.shape.devices}] == 1) {
      shapes.push_back(replica.shape);
    }
  }
  std::string words;
  for (const MeshShape& shape : shapes) {
    const int count = counts[{static_cast<int>(shape.kind), shape.devices}];
    words += (words.empty() ? "" : " beside ") + std::to_string(count) + " x " + Words(shape);
  }
  return words + ": " + Figure(choice.samples_per_second) +
         " samples/s, the most of what fits its devices' memory";
}

}  // namespace

MeshChoice ChooseMesh(const MeshAsk& ask) {
  TACTUS_CHECK(!ask.devices.empty());
  MeshChoice choice{.missing_bytes = std::numeric_limits<double>::infinity()};
  const std::vector<Sort> sorts = SortsOf(ask.devices);
  double speed = 0;
  for (const MeshDevice& device : ask.devices) speed += device.products_per_second;
  std::map<std::pair<int, std::uint32_t>, MeshAlternative> told;
  std::vector<bool> placed(ask.devices.size());
  for (const Sort& sort : sorts) {
    const double part = Real(sort.devices.size()) * sort.products_per_second / speed;
    const double share = sorts.size() == 1 ? 1 : std::min(part, 0.999);
    Trial best;
    for (const MeshShape& shape : ShapesFor(ask, sort.devices.size())) {
      Trial trial = Try(ask, sort, shape, share);
      choice.missing_bytes = std::min(choice.missing_bytes, trial.missing);
      MeshAlternative& sum = told[{static_cast<int>(shape.kind), shape.devices}];
      const bool first = sum.shape == MeshShape{} && sum.reason.empty() && sum.replicas == 0;
      if (first || (sum.replicas == 0 && trial.told.replicas > 0)) {
        sum = trial.told;
      } else if (trial.told.replicas > 0) {
        sum.replicas += trial.told.replicas;
        sum.samples_per_second += trial.told.samples_per_second;
        sum.bytes = std::max(sum.bytes, trial.told.bytes);
        sum.batch_max = std::min(sum.batch_max, trial.told.batch_max);
      }
      const bool better = trial.told.samples_per_second > best.told.samples_per_second;
      if (better) best = std::move(trial);
    }
    for (MeshReplica& replica : best.replicas) {
      for (const std::size_t device : replica.devices) placed[device] = true;
      choice.samples_per_second += replica.samples_per_second;
      choice.replicas.push_back(std::move(replica));
    }
  }
  for (std::size_t device = 0; device < placed.size(); ++device) {
    if (!placed[device]) choice.idle.push_back(device);
  }
  for (auto& [shape, alternative] : told) choice.alternatives.push_back(std::move(alternative));
  if (!choice.replicas.empty()) {
    choice.missing_bytes = 0;
    choice.reason = ReasonOf(choice);
    return choice;
  }
  if (std::isinf(choice.missing_bytes)) {
    choice.missing_bytes = 0;
    choice.reason = "no layout can be had: " + (choice.alternatives.empty()
                                                    ? std::string("there are too few devices")
                                                    : choice.alternatives.back().reason);
    return choice;
  }
  choice.reason =
      "the model fits in no layout of these devices: of the one that lacks least, each "
      "device is short of " +
      std::to_string(static_cast<std::uint64_t>(std::ceil(choice.missing_bytes))) + " bytes";
  return choice;
}

}  // namespace tactus::policies
