// What it costs to train a transformer on one device, on a row of devices that split its layers
// (1-D), or on a q x q mesh (2-D), and which of the three a model, its devices and links ask for.
//
// Pure arithmetic by the specification's tables. b samples, s sequence, h hidden, n heads, v
// vocabulary, N layers, p devices of a replica, q = sqrt(p).
//
// Source: [optimus] table 1 and the memory buffers of its reference code; [megatron].

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tactus::policies {

// How one replica of the model is laid out.
enum class MeshKind { kNone, kOneD, kTwoD };

inline constexpr std::string_view NameOf(MeshKind kind) {
  return kind == MeshKind::kNone ? "none" : kind == MeshKind::kOneD ? "1d" : "2d";
}

// A transformer's sizes, each >= 1 but for positions.
struct TransformerSizes {
  std::uint64_t layers = 1;
  std::uint64_t hidden = 1;  // a multiple of heads
  std::uint64_t heads = 1;
  std::uint64_t vocabulary = 1;
  std::uint64_t sequence = 1;
  std::uint64_t positions = 0;  // rows of a table that is added to the tokens'; 0: there is none
  bool tied = true;             // one table of the vocabulary is both embedding and head
};

// How a replica trains, whatever its layout.
struct MeshTraining {
  std::uint32_t state_buffers = 2;  // of the optimizer, each as long as the parameters
  bool recompute = true;            // of each layer its input is kept, the rest computed again
  // Broadcasts and reductions go round a ring in pieces, rather than down a tree.
  bool pipelined = true;
};

// One replica's layout.
struct MeshShape {
  MeshKind kind = MeshKind::kNone;
  std::uint32_t devices = 1;  // 1 where kind is kNone; 2-D: a square

  friend bool operator==(const MeshShape&, const MeshShape&) = default;
};

// Elements that each device sends for one layer of `batch` samples. [elements]
//
//   1-D   forward 4 (p - 1) / p bsh;     backward 4 (p - 1) / p bsh, with recompute twice that
//   2-D   forward c (7 bsh + 12 h^2);    backward c (14 bsh + 24 h^2), with recompute 3/2 of it
//         c = log2(p) / (2 sqrt(p)) by trees, 1 / sqrt(p) pipelined
double ForwardElements(const MeshShape& shape, const TransformerSizes& sizes, std::uint64_t batch,
                       const MeshTraining& training);
double BackwardElements(const MeshShape& shape, const TransformerSizes& sizes, std::uint64_t batch,
                        const MeshTraining& training);

// Multiply-adds of each device in a step of `batch` samples: layers, and the product with the
// vocabulary, which is not computed again.
double Products(const MeshShape& shape, const TransformerSizes& sizes, std::uint64_t batch,
                const MeshTraining& training);

// Parameters of a device, of matrices and tables: layers 12 h^2 / p and a table of the vocabulary
// v h / p, twice where it is not tied. Of positions a device has all in 1-D, and in 2-D what its
// column has of channels, h / q. [elements]
double Parameters(const MeshShape& shape, const TransformerSizes& sizes);

// What each device holds in such a step: parameters, gradients, the optimizer's state, activations
// and what products need besides. Largest over devices. [bytes]
//
// Differs: the specification's table of buffers leaves out parameters, the optimizer and the
// scores of the attention, which are here.
double MeshBytes(const MeshShape& shape, const TransformerSizes& sizes, std::uint64_t batch,
                 const MeshTraining& training);

// The largest batch that fits into so many bytes; a multiple of q in 2-D. 0: none does.
std::uint64_t LargestBatch(const MeshShape& shape, const TransformerSizes& sizes,
                           const MeshTraining& training, double bytes);

// Why the sizes cannot be split so, with the nearest choice that can; empty: they can. batch: of a
// replica; 0: any.
std::string ReasonAgainst(const MeshShape& shape, const TransformerSizes& sizes,
                          std::uint64_t batch = 0);

// A device as it is measured.
struct MeshDevice {
  std::string name{};
  std::string node{};
  double products_per_second = 1;  // multiply-adds, > 0
  std::uint64_t memory_bytes = 0;
};

// As many meshes of `each` devices as there may be, each by the indices of its devices in the order
// of their places: of devices that are alike (speed and memory within a tenth of each other) and
// within nodes, as far as may be; then of alike ones of several nodes, and at last of what is left.
// Fewer than `each` devices are left over. Deterministic. each: >= 1.
std::vector<std::vector<std::size_t>> FormMeshes(const std::vector<MeshDevice>& devices,
                                                 std::size_t each);

// What links carry, in each direction. [bytes/second], > 0
struct MeshLinks {
  double within = 1;   // a device of a node, to another one of it
  double between = 1;  // a node, which its devices share
  double latency = 0;  // of one message [seconds]
};

// What a step of one replica takes, on devices that are alike. [seconds]
struct MeshSeconds {
  double compute = 0;
  double transfer = 0;   // of activations and parameters within the replica
  double gradients = 0;  // between replicas

  double step() const { return compute + transfer + gradients; }
};

// Where a replica is.
struct MeshPlace {
  double products_per_second = 1;  // of each device
  std::uint32_t per_node = 1;      // devices of it on a node, >= 1
  std::uint32_t replicas = 1;      // that share gradients, >= 1
  bool one_node = false;           // all of these are on one
};
MeshSeconds SecondsOf(const MeshShape& shape, const TransformerSizes& sizes, std::uint64_t batch,
                      const MeshTraining& training, const MeshPlace& place, const MeshLinks& links);

// Of what is asked for.
struct MeshAsk {
  TransformerSizes sizes{};
  MeshTraining training{};
  std::vector<MeshDevice> devices{};
  MeshLinks links{};
  std::uint64_t batch = 1;  // samples of a step, over all replicas
  // Only layouts of this kind, and of so many devices; nothing, or 0: whatever is best.
  bool any_kind = true;
  MeshKind kind = MeshKind::kNone;
  std::uint32_t mesh_devices = 0;
};

// A replica: which devices, in the order of their places, row by row.
struct MeshReplica {
  MeshShape shape{};
  std::vector<std::size_t> devices{};  // indices in MeshAsk::devices
  double samples_per_second = 0;       // by itself
  std::uint64_t batch = 0;             // that this was reckoned with
};

// What one layout would cost, for people to compare.
struct MeshAlternative {
  MeshShape shape{};
  std::uint32_t replicas = 0;     // 0: there are none
  double samples_per_second = 0;  // of all replicas
  double bytes = 0;               // of the device that needs most, at the batch
  std::uint64_t batch_max = 0;    // of a replica
  std::string reason{};           // why not; empty: it can be had
};

// Every device is in one replica at most.
struct MeshChoice {
  std::vector<MeshReplica> replicas{};  // empty: nothing fits
  std::vector<std::size_t> idle{};      // devices without a place
  double samples_per_second = 0;
  std::string reason{};                         // for a person
  std::vector<MeshAlternative> alternatives{};  // each layout alone, on all devices
  double missing_bytes = 0;  // where nothing fits: of the layout that lacks least
};

// Forms replicas from devices that are alike (speed and memory within a tenth of each other), as
// far as may be within nodes, so that slow links lie between replicas; of each kind of device the
// layout that trains most samples a second and fits. Replicas of several layouts may come of it, as
// a mesh of slow devices beside one fast device. Deterministic; ties go to fewer devices, and to
// 1-D before 2-D. devices: at least one.
MeshChoice ChooseMesh(const MeshAsk& ask);

}  // namespace tactus::policies
