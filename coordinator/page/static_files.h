// The files that a browser loads, as they lie in static/; the build writes them into the binary.

#pragma once

#include <string>
#include <vector>

namespace tactus::page {

struct StaticFile {
  std::string path = {};  // "/app.js"
  std::string content_type = {};
  std::string content = {};
};

const std::vector<StaticFile>& StaticFiles();

}  // namespace tactus::page
