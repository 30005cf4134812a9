// Who makes a call.

#pragma once

#include <cstdint>
#include <string>

#include "identity/certificate.h"
#include "tactus/v1/access.pb.h"

namespace tactus::access {

struct Principal {
  enum class Kind {
    kLocal,  // whoever calls a coordinator that asks nobody
    kPage,   // the coordinator's own status page, which reads
    kUser,
    kNode,
    kStranger,  // has no certificate, and comes to get one
  };
  Kind kind = Kind::kLocal;
  std::string name{};  // of a user or node
  v1::Role role = v1::ROLE_UNSPECIFIED;
  identity::Certificate certificate{};  // of a user or node
  std::uint64_t rules = 0;              // the version of the gate's rules that it was let in by
};

// "local", "page", "user/alice", "node/gpu-7", "stranger".
inline std::string NameOf(const Principal& who) {
  switch (who.kind) {
    case Principal::Kind::kLocal:
      return "local";
    case Principal::Kind::kPage:
      return "page";
    case Principal::Kind::kUser:
      return "user/" + who.name;
    case Principal::Kind::kNode:
      return "node/" + who.name;
    case Principal::Kind::kStranger:
      return "stranger";
  }
  return "";
}

// What jobs have for their owner; empty: nobody in particular.
inline std::string OwnerOf(const Principal& who) {
  return who.kind == Principal::Kind::kUser ? NameOf(who) : "";
}

// The node that speaks; empty: it is not known, as nobody was asked.
inline std::string NodeOf(const Principal& who) {
  return who.kind == Principal::Kind::kNode ? who.name : "";
}

}  // namespace tactus::access
