// How a caller knows that a stream is open before anything comes of it.

#pragma once

namespace tactus::runtime {

// The coordinator sends this header as soon as it has accepted a stream on which nothing may come
// for long; a call that it refuses is without it. gRPC's own headers do not tell the two apart.
inline constexpr char kStreamHeader[] = "tactus-stream";
inline constexpr char kStreamOpen[] = "open";

}  // namespace tactus::runtime
