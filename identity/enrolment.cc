#include "identity/enrolment.h"

#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/support/channel_arguments.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "identity/credentials.h"
#include "identity/tls_folder.h"
#include "identity/token.h"
#include "runtime/host_port.h"
#include "runtime/now.h"
#include "runtime/status.h"
#include "tactus/v1/enrolment.grpc.pb.h"

namespace tactus::identity {
namespace {

constexpr Duration kBetweenAttempts = Seconds(0.5);
constexpr Duration kAttemptMin = Seconds(2);

std::unique_ptr<v1::Enrolment::Stub> StubAt(
    const std::string& server, const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
  return v1::Enrolment::NewStub(grpc::CreateCustomChannel(server, credentials, arguments));
}

// Whether nobody has answered, or one that stands by.
bool MayAnotherAnswer(const absl::Status& status) {
  const std::string reason = runtime::ReasonOf(status).reason;
  if (absl::IsDeadlineExceeded(status)) return reason.empty();
  return absl::IsUnavailable(status) && (reason.empty() || reason == "NOT_LEADING");
}

using Call = std::function<grpc::Status(v1::Enrolment::Stub& at, grpc::ClientContext* context)>;

// Those of a list, of which one leads.
class Coordinators {
 public:
  Coordinators(const std::string& servers,
               const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
    for (const std::string& server : runtime::SplitAddresses(servers)) {
      stubs_.push_back(StubAt(server, credentials));
    }
  }

  // Calls one after the other until one answers; what it says, or the last of those that did not.
  // Each has an equal part of the time that is left, so that a host that is gone without a word
  // does not take all of it.
  absl::Status Ask(Instant last, const Call& call) const {
    absl::Status status;
    for (std::size_t i = 0; i < stubs_.size(); ++i) {
      const Duration part = (last - runtime::Now()) / static_cast<std::int64_t>(stubs_.size() - i);
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() +
                           std::max<Duration>(part, kAttemptMin));
      status = runtime::FromGrpc(call(*stubs_[i], &context));
      if (!MayAnotherAnswer(status)) return status;
    }
    return status;
  }

 private:
  std::vector<std::unique_ptr<v1::Enrolment::Stub>> stubs_;  // not empty
};

absl::StatusOr<Certificate> Keep(const std::string& folder, const std::string& certificate,
                                 const std::string& authorities) {
  absl::StatusOr<Certificate> kept =
      KeepInFolder(folder, {.authority = authorities, .certificate = certificate});
  if (kept.ok()) return kept;
  return absl::Status(kept.status().code(),
                      folder + ": what the coordinator gave does not go together: " +
                          std::string(kept.status().message()));
}

}  // namespace

absl::StatusOr<Certificate> EnrolInto(const EnrolOrder& order) {
  const std::optional<Token> token = ParseToken(order.token);
  if (!token) {
    return absl::InvalidArgumentError(
        "token: is none; allowed is tactus1-..., as tactus admin token prints it");
  }
  const absl::StatusOr<std::string> request = RequestFor(order.folder);
  if (!request.ok()) return request.status();
  const absl::StatusOr<Bootstrap> bootstrap = MakeBootstrapCredentials(token->authority);
  if (!bootstrap.ok()) return bootstrap.status();
  const Coordinators coordinators(order.server, bootstrap->credentials);
  v1::EnrolRequest question;
  question.set_token(TokenText(*token));
  question.set_certificate_request(*request);
  v1::EnrolResponse answer;
  const Instant last = runtime::Now() + order.within;
  // It may be started after who enrols, as machines are.
  while (true) {
    const absl::Status status =
        coordinators.Ask(last, [&](v1::Enrolment::Stub& at, grpc::ClientContext* context) {
          return at.Enrol(context, question, &answer);
        });
    if (status.ok()) return Keep(order.folder, answer.certificate(), answer.authorities());
    if (bootstrap->wrong->load()) {
      return absl::FailedPreconditionError(
          "token: who answers at " + order.server +
          " is not the coordinator whose authority the token pins; nothing was sent to it");
    }
    if (!MayAnotherAnswer(status)) return status;
    if (runtime::Now() + kBetweenAttempts >= last) {
      return absl::UnavailableError("no coordinator answers at " + order.server + " (" +
                                    std::string(status.message()) + ")");
    }
    std::this_thread::sleep_for(kBetweenAttempts);
  }
}

absl::StatusOr<Certificate> RenewOver(const std::string& folder, const std::string& server,
                                      Duration within) {
  const absl::StatusOr<std::string> request = RequestFor(folder);
  if (!request.ok()) return request.status();
  const auto credentials = MakeChannelCredentials(folder);
  if (!credentials.ok()) return credentials.status();
  v1::RenewRequest question;
  question.set_certificate_request(*request);
  v1::RenewResponse answer;
  const absl::Status status =
      Coordinators(server, *credentials)
          .Ask(runtime::Now() + within, [&](v1::Enrolment::Stub& at, grpc::ClientContext* context) {
            return at.Renew(context, question, &answer);
          });
  if (!status.ok()) return status;
  return Keep(folder, answer.certificate(), answer.authorities());
}

}  // namespace tactus::identity
