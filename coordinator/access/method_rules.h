// What each call asks of who makes it. Of this project's services their protos say so
// (tactus.v1.may_call); of gRPC's own it stands here.

#pragma once

#include <map>
#include <string>

#include "tactus/v1/access.pb.h"

namespace tactus::access {

// By path, as gRPC has it: "/tactus.v1.Jobs/CreateJob". Every method that a coordinator serves; one
// that is not here is nobody's.
const std::map<std::string, v1::MethodRule>& MethodRules();

// Null: there is no such method.
const v1::MethodRule* RuleOf(const std::string& path);

// "Jobs/CreateJob" of "/tactus.v1.Jobs/CreateJob": what metrics, messages and the audit log have.
std::string ShortMethod(const std::string& path);

// Of a method by its short name. Requires: there is one.
const std::string& PathOf(const std::string& method);
const v1::MethodRule& RuleOfShort(const std::string& method);

}  // namespace tactus::access
