// kill -9 at random moments, under a load of submits, updates and cancels.

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/rng.h"
#include "tests/integration/durability/client.h"
#include "tests/integration/durability/coordinator_process.h"

namespace tactus {
namespace {

constexpr int kKills = 200;
constexpr std::uint64_t kClients = 4;
constexpr std::uint64_t kSeed = 20260101;
// From the first call of a life to its kill.
constexpr std::chrono::microseconds kLifeLeast{20'000}, kLifeMost{250'000};

// Every job on record by its label "request"; none twice.
std::map<std::string, v1::Job> OnRecord(const std::string& server) {
  const std::unique_ptr<v1::Jobs::Stub> stub =
      v1::Jobs::NewStub(grpc::CreateChannel(server, grpc::InsecureChannelCredentials()));
  std::map<std::string, v1::Job> jobs;
  v1::ListJobsRequest request;
  request.set_page_size(1000);
  do {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
    v1::ListJobsResponse page;
    const grpc::Status status = stub->ListJobs(&context, request, &page);
    EXPECT_TRUE(status.ok()) << status.error_message();
    for (v1::Job& job : *page.mutable_jobs()) {
      const std::string label = job.labels().at("request");
      const auto [found, fresh] = jobs.emplace(label, std::move(job));
      EXPECT_TRUE(fresh) << "two jobs of request " << label << ": " << found->second.name();
    }
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  return jobs;
}

class DurabilityTest : public testing::Test {
 protected:
  DurabilityTest() {
    for (std::uint64_t i = 0; i < kClients; ++i) {
      clients_.push_back(std::make_unique<Client>(i + 1, kSeed + i + 1));
    }
  }

  // Starts the coordinator; what was acknowledged in the lives before is there.
  void StartAndCheck() {
    server_ = coordinator_.Start();
    ASSERT_FALSE(server_.empty()) << coordinator_.Log();
    const std::map<std::string, v1::Job> on_record = OnRecord(server_);
    std::size_t known = 0;
    for (const auto& client : clients_) {
      client->Check(on_record);
      for (const auto& [request, job] : client->jobs()) known += on_record.contains(request);
    }
    EXPECT_EQ(known, on_record.size()) << "a job that nobody submitted";
  }

  // All clients at work until the coordinator is killed.
  void LiveAndDie() {
    std::vector<std::thread> threads;
    for (const auto& client : clients_) {
      threads.emplace_back([&client, this] { client->Work(server_); });
    }
    const auto spare = static_cast<std::uint64_t>((kLifeMost - kLifeLeast).count());
    std::this_thread::sleep_for(kLifeLeast + std::chrono::microseconds(rng_.Below(spare)));
    coordinator_.Kill();
    for (std::thread& thread : threads) thread.join();
  }

  Client::Tally Sum() const {
    Client::Tally sum;
    for (const auto& client : clients_) {
      sum.submits += client->tally().submits;
      sum.updates += client->tally().updates;
      sum.cancels += client->tally().cancels;
      sum.in_doubt += client->tally().in_doubt;
      sum.repeated += client->tally().repeated;
    }
    return sum;
  }

  Rng rng_{kSeed};
  CoordinatorProcess coordinator_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::string server_;
};

TEST_F(DurabilityTest, WhatWasAcknowledgedSurvivesKillsAtRandomMoments) {
  for (int kill = 0; kill < kKills; ++kill) {
    SCOPED_TRACE("seed=" + std::to_string(kSeed) + " kill=" + std::to_string(kill));
    ASSERT_NO_FATAL_FAILURE(StartAndCheck());
    LiveAndDie();
    if (HasFailure()) return;
  }
  StartAndCheck();

  // The load was one: each kind of call was acknowledged and was cut off, many times.
  const Client::Tally tally = Sum();
  std::printf("submits=%d updates=%d cancels=%d in_doubt=%d repeated=%d\n", tally.submits,
              tally.updates, tally.cancels, tally.in_doubt, tally.repeated);
  EXPECT_GT(tally.submits, kKills);
  EXPECT_GT(tally.updates, kKills);
  EXPECT_GT(tally.cancels, kKills);
  EXPECT_GT(tally.in_doubt, kKills);
  EXPECT_GT(tally.repeated, kKills / 10);
}

}  // namespace
}  // namespace tactus
