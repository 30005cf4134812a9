#include "tests/agent/data/scratch.h"

#include <unistd.h>
#include <zlib.h>

#include <cstdlib>
#include <fstream>

#include "base/check.h"

namespace tactus::data {
namespace {

constexpr uid_t kNobody = 65534;

}  // namespace

Bytes ToBytes(std::string_view text) { return Bytes(text.begin(), text.end()); }

ScratchFolder::ScratchFolder() {
  path_ = (std::filesystem::temp_directory_path() / "tactus-data-XXXXXX").string();
  TACTUS_CHECK(::mkdtemp(path_.data()) != nullptr);
  std::filesystem::permissions(path_, std::filesystem::perms{0755});
}

ScratchFolder::~ScratchFolder() { std::filesystem::remove_all(path_); }

std::string ScratchFolder::Write(const std::string& name, const Bytes& bytes) const {
  const std::string path = PathOf(name);
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  file.close();
  TACTUS_CHECK(file.good());
  return path;
}

std::string ScratchFolder::Write(const std::string& name, std::string_view text) const {
  return Write(name, ToBytes(text));
}

std::string ScratchFolder::MakeFolder(const std::string& name) const {
  std::filesystem::create_directories(PathOf(name));
  return PathOf(name);
}

OrdinaryUser::OrdinaryUser() : was_root_(::geteuid() == 0) {
  if (was_root_) TACTUS_CHECK(::seteuid(kNobody) == 0);
}

OrdinaryUser::~OrdinaryUser() {
  if (was_root_) TACTUS_CHECK(::seteuid(0) == 0);
}

Bytes CifarRecords(const std::vector<std::uint8_t>& labels) {
  Bytes bytes;
  for (std::size_t record = 0; record < labels.size(); ++record) {
    bytes.push_back(labels[record]);
    for (std::size_t pixel = 0; pixel < 3072; ++pixel) {
      bytes.push_back(static_cast<std::uint8_t>(record * 31 + pixel));
    }
  }
  return bytes;
}

Bytes IdxFile(const IdxParts& parts) {
  Bytes bytes = {0, 0, parts.type, static_cast<std::uint8_t>(parts.shape.size())};
  for (const std::uint32_t dimension : parts.shape) {
    for (const int shift : {24, 16, 8, 0}) {
      bytes.push_back(static_cast<std::uint8_t>(dimension >> shift));
    }
  }
  bytes.insert(bytes.end(), parts.elements.begin(), parts.elements.end());
  return bytes;
}

Bytes NpyFile(const NpyParts& parts) {
  return NpyFileWithText(parts.version,
                         "{'descr': '" + parts.descr + "', 'fortran_order': " +
                             parts.fortran_order + ", 'shape': " + parts.shape + ", }  \n",
                         parts.elements);
}

Bytes NpyFileWithText(std::uint8_t version, const std::string& text, const Bytes& elements) {
  Bytes bytes = {0x93, 'N', 'U', 'M', 'P', 'Y', version, 0};
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  for (std::size_t i = 0; i < length_bytes; ++i) {
    bytes.push_back(static_cast<std::uint8_t>(text.size() >> (8 * i)));
  }
  bytes.insert(bytes.end(), text.begin(), text.end());
  bytes.insert(bytes.end(), elements.begin(), elements.end());
  return bytes;
}

Bytes Gzip(const Bytes& bytes) {
  z_stream stream = {};
  constexpr int kGzip = 16;
  constexpr int kMemoryLevel = 8;
  TACTUS_CHECK(deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzip + MAX_WBITS,
                            kMemoryLevel, Z_DEFAULT_STRATEGY) == Z_OK);
  Bytes out(deflateBound(&stream, bytes.size()) + 64);
  stream.next_in = const_cast<Bytef*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = out.data();
  stream.avail_out = static_cast<uInt>(out.size());
  TACTUS_CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string ErrorOf(const DataOptions& options) {
  const absl::StatusOr<Split> split = OpenData(options);
  return split.ok() ? "ok" : std::string(split.status().message());
}

std::optional<std::string> RealDataFolder() {
  std::string folder;
  if (const char* const named = std::getenv("TACTUS_SHARED_DATA")) {
    folder = named;
  } else if (const char* const source = std::getenv("TACTUS_SOURCE")) {
    folder = std::string(source) + "/../shared/data";
  }
  if (folder.empty() || !std::filesystem::is_directory(folder)) return std::nullopt;
  return folder;
}

}  // namespace tactus::data
