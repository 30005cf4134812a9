// Brings what finished workers left to the coordinator: last words and the files of results.

#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "agent/daemon/artifact_upload.h"
#include "agent/daemon/job_folders.h"
#include "agent/daemon/last_words.h"
#include "base/id.h"

namespace tactus::agent {

// A worker's last words are on the disk before anybody hears them, and as long as they or a file
// that they name are not with the coordinator: an agent that is killed in between is followed by
// one that says them anew and goes on with the files. Used on the control thread alone.
class ResultUploads {
 public:
  struct Handlers {
    // A file was not taken and never will be: what the worker finished is lost.
    std::function<void(WorkerId worker, const std::string& reason)> lost;
    // An upload is over, well or not.
    std::function<void()> ended;
  };

  // jobs: the folder of all jobs. Uploader and folders outlive this; the uploader calls nothing
  // after its end.
  ResultUploads(std::string jobs, ArtifactUploader& uploader, JobFolders& folders,
                Handlers handlers);

  // What a former agent left.
  const std::vector<LastWords>& inherited() const { return inherited_; }

  // A coordinator of this store is there: what was left by workers of it, to be said anew. The rest
  // waits for its own, as long as its job's folder is kept: those numbers may be others' here.
  std::vector<LastWords> TakeInherited(const std::string& server);

  // Makes them durable; to be called before they are said. Where the disk does not allow it they
  // are lost with this agent.
  void Keep(const LastWords& words);

  // Brings up the files that they name. Requires: Keep, or TakeInherited.
  void Upload(const LastWords& words);

  // Words are kept, or their files are on their way.
  bool waits() const { return !endings_.empty(); }

  // The coordinator has all that was said: forgets the words whose files are brought up, too.
  void Forget();

 private:
  struct Ending {
    std::string job{};
    std::size_t files = 0;  // on their way
  };

  void Begin(const LastWords& words, const std::string& path);

  const std::string jobs_;
  ArtifactUploader& uploader_;
  JobFolders& folders_;
  const Handlers handlers_;
  std::vector<LastWords> inherited_;
  std::map<WorkerId, Ending> endings_;
};

}  // namespace tactus::agent
