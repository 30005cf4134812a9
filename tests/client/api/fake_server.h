// The public API in this process, on a free port, answering what a test put into it.

#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/time.h"
#include "tactus/v1/admin.grpc.pb.h"
#include "tactus/v1/artifacts.grpc.pb.h"
#include "tactus/v1/jobs.grpc.pb.h"
#include "tactus/v1/nodes.grpc.pb.h"

namespace tactus::api {

// Set the members before the first call; read them when the calls are over.
class FakeServer {
 public:
  FakeServer();
  ~FakeServer();

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  void Shutdown();

  // What call number i, from 0, of each kind ends with; null: ok.
  std::function<grpc::Status(std::size_t i)> create_job;
  std::function<grpc::Status(std::size_t i)> delete_job;
  std::function<grpc::Status(std::size_t i)> update_job;
  std::function<grpc::Status(std::size_t i)> watch_end;
  std::function<grpc::Status(std::size_t i)> logs_end;
  std::function<grpc::Status(std::size_t i)> download_end;
  std::function<grpc::Status(std::size_t i)> upload_end;

  std::vector<v1::CreateJobRequest> created;
  std::vector<v1::UpdateJobRequest> updated;
  std::size_t deleted = 0;
  std::vector<v1::WatchJobRequest> watched;
  std::vector<std::vector<v1::JobEvent>> watches;  // the events of each stream that is opened
  std::vector<v1::StreamLogsRequest> logged;
  std::vector<std::vector<v1::LogEntry>> logs;
  bool logs_say_open = false;      // by their header, as a coordinator does
  std::size_t logs_stay_open = 0;  // the first ones, until the client ends them
  Duration logs_last{};            // each stream lasts at least so long

  std::string content;  // of every artifact and every blob
  std::size_t chunk_bytes = 4;
  // Bytes that download number i sends before it ends; not given: all.
  std::vector<std::size_t> download_bytes;
  std::size_t downloads_stay_open = 0;          // the first ones, until the client ends them
  std::vector<std::uint64_t> download_offsets;  // as they were asked for

  v1::Blob blob;                              // what there is of the blob that is uploaded
  std::string uploaded;                       // its bytes
  std::size_t uploads = 0;                    // that were begun
  std::size_t upload_bytes_max = 1 << 20;     // one upload takes so many, then it ends
  std::vector<std::uint64_t> upload_offsets;  // as they were given

 private:
  class Jobs;
  class Artifacts;
  class Admin;
  int port_ = 0;
  std::unique_ptr<Jobs> jobs_;
  std::unique_ptr<Artifacts> artifacts_;
  std::unique_ptr<Admin> admin_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace tactus::api
