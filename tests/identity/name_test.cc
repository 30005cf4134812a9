#include "identity/name.h"

#include <gtest/gtest.h>

namespace tactus::identity {
namespace {

TEST(NameTest, EveryKindIsReadAsItIsWritten) {
  for (const Name& name : {Name{.domain = "tactus", .kind = Kind::kCoordinator},
                           Name{.domain = "lab.example", .kind = Kind::kNode, .name = "gpu-7"},
                           Name{.domain = "tactus", .kind = Kind::kUser, .name = "a.B_c@d"}}) {
    EXPECT_EQ(ParseSpiffeId(SpiffeIdOf(name)), name) << SpiffeIdOf(name);
  }
  EXPECT_EQ(SpiffeIdOf({.domain = "tactus", .kind = Kind::kNode, .name = "gpu-7"}),
            "spiffe://tactus/node/gpu-7");
}

TEST(NameTest, WhatIsAlmostAnIdIsNone) {
  for (const char* text :
       {"", "spiffe://", "spiffe://tactus", "spiffe://tactus/", "spiffe://tactus/node/",
        "spiffe://tactus/node/a/b", "spiffe://tactus/node/A", "spiffe://tactus/node/..",
        "spiffe://tactus/user/", "spiffe://tactus/user/a b", "spiffe://tactus/user/a%2fb",
        "spiffe://tactus/coordinator/", "spiffe://tactus/coordinator2",
        "SPIFFE://tactus/coordinator", "spiffe:///coordinator", "spiffe://Tactus/coordinator",
        "https://tactus/coordinator", "spiffe://tactus/admin/alice",
        "spiffe://tactus//coordinator"}) {
    EXPECT_FALSE(ParseSpiffeId(text)) << text;
  }
  EXPECT_FALSE(ParseSpiffeId(std::string_view("spiffe://tactus/node/a\0b", 24)));
}

}  // namespace
}  // namespace tactus::identity
