// `tactus admin backup`.
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

#include "client/render/error_lines.h"
#include "client/text/text.h"
#include "client/verbs/words.h"
#include "runtime/process.h"

namespace tactus::client {
namespace {

class BackupVerb : public Verb {
 public:
  void Declare(CLI::App& program) override {
    AddVerb(AdminGroup(program), "backup",
            "Save a copy that a coordinator can be started from, while this one goes on")
        ->add_option("file", file_, "A file that does not exist yet")
        ->required();
  }
  ExitCode Run(const Means& means) override {
    std::error_code error;
    if (std::filesystem::exists(file_, error)) {
      means.screen.Say(file_ + ": exists already; allowed is a new file");
      return ExitCode::kConflict;
    }
    std::uint64_t bytes = 0;
    if (const absl::Status saved = Save(*means.client, &bytes); !saved.ok()) {
      return ReportError(saved, means.screen);
    }
    means.screen.Print(file_ + "\n");
    means.screen.Say(FormatBytes(bytes) + " saved");
    return ExitCode::kOk;
  }

 private:
  // The file is there whole or not at all.
  absl::Status Save(api::Client& client, std::uint64_t* bytes) const {
    const std::string part = file_ + ".part";
    std::ofstream out(part, std::ios::binary | std::ios::trunc);
    if (!out) return OfLocalFile(runtime::FileError(errno, part, "cannot be written"));
    const auto failed = [&part] {
      return OfLocalFile(
          absl::ResourceExhaustedError(part + ": cannot be written; the disk is full"));
    };
    absl::Status status = client.Backup([&](std::string_view data) -> absl::Status {
      *bytes += data.size();
      out.write(data.data(), static_cast<std::streamsize>(data.size()));
      return out ? absl::OkStatus() : failed();
    });
    out.close();
    if (status.ok() && !out) status = failed();
    std::error_code error;
    if (status.ok()) {
      std::filesystem::rename(part, file_, error);
      if (error)
        status = OfLocalFile(runtime::FileError(error.value(), file_, "cannot be written"));
    }
    if (!status.ok()) std::filesystem::remove(part, error);
    return status;
  }

  std::string file_;
};

}  // namespace

std::unique_ptr<Verb> MakeBackup() { return std::make_unique<BackupVerb>(); }

}  // namespace tactus::client
