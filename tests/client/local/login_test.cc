#include "client/local/login.h"

#include <gtest/gtest.h>

namespace tactus::client {
namespace {

TEST(LoginTest, AContextIsNamedByTheHostOfTheFirstOfSeveral) {
  runtime::UserFolders folders;
  folders.config = "/home/me/.config/tactus";

  EXPECT_EQ(PlaceOf({.server = "a.lab:7070"}, folders).context, "a.lab");
  const LoginPlace place = PlaceOf({.server = "a.lab:7070,b.lab:7070"}, folders);
  EXPECT_EQ(place.context, "a.lab");
  EXPECT_EQ(place.server, "a.lab:7070,b.lab:7070");
  EXPECT_EQ(place.folder, "/home/me/.config/tactus/tls/a.lab");
  EXPECT_EQ(PlaceOf({.server = "a.lab:7070,b.lab:7070", .name = "lab"}, folders).context, "lab");
}

}  // namespace
}  // namespace tactus::client
