// The part of Agent that ends it: a goodbye in time, and the end.

#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <utility>

#include "agent/daemon/agent.h"
#include "base/time.h"
#include "runtime/logging.h"
#include "runtime/now.h"

namespace tactus::agent {

using runtime::Logger;
using runtime::Quoted;

namespace {

constexpr Duration kGoodbyeLimit = Seconds(1);

}  // namespace

// What becomes of the workers' groups is the coordinator's to say, which lets the others go on.
void Agent::Leave(Farewell farewell, Duration grace, std::function<void()> done) {
  if (stopping_ || leaving_) return;
  const auto stop = [this, grace, done = std::move(done)] { Stop(grace, done); };
  if (Settled()) return stop();
  leaving_ = Leaving{
      .reason = std::move(farewell.reason), .end = runtime::Now() + farewell.within, .stop = stop};
  Logger("agent")->info("agent leaving node={} within_seconds={} workers={} reason={}",
                        options_.node, ToSeconds(farewell.within), workers_.size(),
                        Quoted(leaving_->reason));
  tactus::agent::v1::FromAgent up;
  *up.mutable_leaving() = LeavingNow();
  // Never refused. Before whatever follows from it, so that nobody takes that for a failure.
  static_cast<void>(link_.Send(up, Importance::kNode));
  if (!link_.connected()) SuspendWorkers();
  while (!preparing_.empty()) GiveUpPreparing(preparing_.begin()->first);
  leave_timer_.At(leaving_->end, [this] {
    Logger("agent")->warn("agent left too early node={} workers={} files_wait={} words_wait={}",
                          options_.node, workers_.size(), !uploader_.idle(), link_.HoldsWords());
    leaving_->stop();
  });
}

// Of a node that leaves while the coordinator is away: one member's vote takes all of its group to
// the next round's edge, with a checkpoint. Who does not train yet just ends.
void Agent::SuspendWorkers() {
  tactus::v1::ToWorker suspend;
  suspend.mutable_stop()->set_reason("node " + options_.node + " is leaving: " + leaving_->reason);
  suspend.mutable_stop()->set_suspend(true);
  for (const auto& [id, running] : workers_) running.worker->Send(suspend);
}

tactus::agent::v1::Leaving Agent::LeavingNow() const {
  tactus::agent::v1::Leaving leaving;
  leaving.set_reason(leaving_->reason);
  const Duration left = std::max(leaving_->end - runtime::Now(), Duration(0));
  *leaving.mutable_within() = google::protobuf::util::TimeUtil::NanosecondsToDuration(left.count());
  return leaving;
}

bool Agent::Settled() const {
  // Nobody was there yet to whom they could be said.
  const bool unsaid = link_.server().empty() && !results_.inherited().empty();
  return workers_.empty() && preparing_.empty() && uploader_.idle() && !unsaid &&
         !link_.HoldsWords();
}

void Agent::Stop(Duration grace, std::function<void()> done) {
  leave_timer_.Cancel();
  for (const auto& [id, running] : workers_) {
    running.worker->StopSoon(stopping_ ? Duration(0) : grace);
  }
  if (std::exchange(stopping_, true)) return;
  while (!preparing_.empty()) GiveUpPreparing(preparing_.begin()->first);
  stopped_ = std::move(done);
  // Workers are killed at the same time; whatever else is open is not waited for.
  stop_timer_.After(grace + kGoodbyeLimit, [this] {
    workers_.clear();
    metrics_.SetWorkers(0);
    if (!std::exchange(closing_, true)) link_.Close(kGoodbyeLimit, std::move(stopped_));
  });
  EndIfDone();
}

void Agent::EndIfDone() {
  if (leaving_ && !stopping_ && Settled()) {
    Logger("agent")->info("agent left in time node={}", options_.node);
    return leaving_->stop();
  }
  if (!stopping_ || closing_ || !workers_.empty() || !uploader_.idle()) return;
  closing_ = true;
  stop_timer_.Cancel();
  link_.Close(kGoodbyeLimit, std::move(stopped_));
}

}  // namespace tactus::agent
