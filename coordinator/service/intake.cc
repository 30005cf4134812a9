#include "coordinator/service/intake.h"

#include "coordinator/access/bounds.h"
#include "coordinator/service/serving.h"
#include "runtime/logging.h"
#include "runtime/now.h"

namespace tactus::service {

void Intake::Take(boost::asio::ip::tcp::socket connection,
                  grpc::experimental::ExternalConnectionAcceptor& acceptor) {
  boost::system::error_code ignored;
  const std::string host =
      access::HostOfAddress(connection.remote_endpoint(ignored).address().to_string());
  const Connections::Verdict verdict =
      open_.Admit(host, connection.native_handle(), runtime::Now());
  if (verdict != Connections::Verdict::kAdmitted) return Refuse(host, verdict);
  HandOver(std::move(connection), acceptor);
}

void Intake::Refuse(const std::string& host, Connections::Verdict verdict) {
  const std::uint64_t unsaid = open_.CountRefusal(runtime::Now());
  const bool of_host = verdict == Connections::Verdict::kTooManyOfHost;
  const std::string why = of_host ? "the host has " + std::to_string(open_.limits().of_host) +
                                        ", which is all that each may (--connections-per-host)"
                                  : "there are " + std::to_string(open_.limits().all) +
                                        ", three quarters of the files that may be open";
  if (unsaid > 0) {
    runtime::Logger("listener")
        ->warn("connections refused count={} host={} reason={}", unsaid, host,
               runtime::Quoted(why));
  }
  if (refused_) refused_(unsaid, host, why);
}

}  // namespace tactus::service
