// The folders of jobs on this node: worker logs and results, until they are of no use.

#pragma once

#include <boost/asio/thread_pool.hpp>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "base/time.h"

namespace tactus::agent {

// What a job's workers write for it, in the folder of all jobs.
inline std::string ResultFolder(const std::string& jobs, const std::string& job) {
  return jobs + "/" + job + "/result";
}

// Removes what a job left in FOLDER/JOB some time after its last worker ended: the coordinator has
// its own copy of logs and results by then. A result that did not arrive there is kept longer. When
// a job was here last is its folder's own time of modification, and a file in it says that a result
// did not arrive, so that the next agent knows both. Used on one thread; the disk's work of
// removing is done on another.
class JobFolders {
 public:
  struct Options {
    std::string folder{};                           // exists
    Duration keep = Seconds(24 * 3600);             // of a job without a result that is not sent
    Duration keep_unsent = Seconds(7 * 24 * 3600);  // of the others
  };

  // Goes on with removing what an earlier agent had begun to remove.
  explicit JobFolders(Options options);
  ~JobFolders();  // Waits for the folder that is being removed, if there is one.
  JobFolders(const JobFolders&) = delete;
  JobFolders& operator=(const JobFolders&) = delete;

  // The job is here until now.
  void Touch(const std::string& job) const;

  // A file of the job's result is on its way to the coordinator; later, whether it arrived. The
  // result is sent when all of its files have arrived.
  void BeginSend(const std::string& job);
  void EndSend(const std::string& job, bool arrived);

  // Removes the checkpoints that a former group of the job left here, written and not brought away
  // when it was lost: the next one goes on from an older one. Requires: none of the job's workers
  // runs here.
  void RemoveCheckpoints(const std::string& job);

  // Removes what a worker that has ended had thrown away: JOB/scratch-WORKER.
  void RemoveScratch(const std::string& job, const std::string& worker);

  // Removes the folders that were kept long enough. Those `in_use`, and of results on their way,
  // are touched instead, so that their time begins when they are not any more; call this often
  // compared with `keep`. `now` [ns since 1970]. Returns how many it removed.
  std::size_t Sweep(const std::set<std::string>& in_use, std::int64_t now);

 private:
  struct Sending {
    int files = 0;      // on their way
    bool lost = false;  // one did not arrive
  };
  std::string PathOf(const std::string& job) const { return options_.folder + "/" + job; }
  std::string UnsentMark(const std::string& job) const;
  bool IsOld(const std::string& job, std::int64_t now) const;
  void RemoveLater(const std::string& path);

  const Options options_;
  std::map<std::string, Sending> sending_;  // by job
  boost::asio::thread_pool thread_{1};
};

}  // namespace tactus::agent
