// The bucket `test` of tests/support/s3_server.py.

#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/temporary_folder.h"

namespace tactus::support {

// Serves from its making to its end, on loopback. Where botocore is not installed it does not, and
// says so.
class BucketProcess {
 public:
  BucketProcess();
  ~BucketProcess();
  BucketProcess(const BucketProcess&) = delete;
  BucketProcess& operator=(const BucketProcess&) = delete;

  // False: tests are to be skipped.
  bool serves() const { return !address_.empty(); }
  std::string endpoint() const { return "http://" + address_; }
  static constexpr char kKeyId[] = "AKTEST";
  static constexpr char kSecret[] = "a-secret/of+the=test";

  // An order, as the program has them, and the state afterwards. Ends the test where it fails.
  nlohmann::json Order(const nlohmann::json& order);
  // No objects, no faults, the right time, long pages.
  void Clear();
  nlohmann::json State() { return Order(nlohmann::json::object()); }

 private:
  const TemporaryFolder folder_;
  int process_ = -1;
  std::string address_;
};

}  // namespace tactus::support
