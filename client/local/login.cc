#include "client/local/login.h"

#include <filesystem>
#include <system_error>

#include "client/local/settings.h"
#include "client/render/exit_code.h"
#include "runtime/host_port.h"
#include "runtime/process.h"

namespace tactus::client {

namespace fs = std::filesystem;

LoginPlace PlaceOf(const LoginWords& words, const runtime::UserFolders& folders) {
  LoginPlace place = {.context = words.name,
                      .server = words.server,
                      .folder = words.folder,
                      .config_path = folders.config + "/config.yaml"};
  // Of several coordinators, the first gives the name.
  const auto parsed = runtime::ParseHostPort(runtime::SplitAddresses(words.server).front());
  if (place.context.empty()) place.context = parsed ? parsed->host : words.server;
  if (place.folder.empty()) place.folder = folders.config + "/tls/" + place.context;
  std::error_code ignored;
  const fs::path whole = fs::absolute(place.folder, ignored);
  if (!ignored) place.folder = whole.lexically_normal().string();
  return place;
}

absl::Status MakeRoomFor(const LoginPlace& place) {
  std::error_code error;
  fs::create_directories(fs::path(place.folder).parent_path(), error);
  if (!error) return absl::OkStatus();
  return OfLocalFile(runtime::FileError(error.value(), place.folder, "cannot be made"));
}

absl::Status UseLogin(const LoginPlace& place) {
  const absl::Status added = AddContext(
      place.config_path, {.name = place.context, .server = place.server, .tls_dir = place.folder});
  return added.ok() ? UseContext(place.config_path, place.context) : added;
}

}  // namespace tactus::client
