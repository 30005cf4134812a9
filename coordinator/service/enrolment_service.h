// tactus.v1.Enrolment: tokens, certificates, and others in their place.

#pragma once

#include <grpcpp/grpcpp.h>

#include "coordinator/access/enrolment.h"
#include "coordinator/service/door.h"
#include "runtime/control_thread.h"
#include "tactus/v1/enrolment.grpc.pb.h"

namespace tactus::service {

class EnrolmentService final : public v1::Enrolment::CallbackService {
 public:
  // All outlive the service. `enrolment` is used on the files' thread alone; null: there is no
  // authority, and every call is refused.
  struct Surroundings {
    access::Enrolment* enrolment;
    runtime::ControlThread& files;
    const Door& door;
  };

  explicit EnrolmentService(const Surroundings& surroundings) : around_(surroundings) {}

  grpc::ServerUnaryReactor* CreateToken(grpc::CallbackServerContext* context,
                                        const v1::CreateTokenRequest* request,
                                        v1::CreateTokenResponse* response) override;
  grpc::ServerUnaryReactor* Enrol(grpc::CallbackServerContext* context,
                                  const v1::EnrolRequest* request,
                                  v1::EnrolResponse* response) override;
  grpc::ServerUnaryReactor* Renew(grpc::CallbackServerContext* context,
                                  const v1::RenewRequest* request,
                                  v1::RenewResponse* response) override;

 private:
  const Surroundings around_;
};

}  // namespace tactus::service
