// Names for calls, so that one that is repeated is done once.

#pragma once

#include <string>

namespace tactus::api {

// A random UUID (version 4), "f47ac10b-58cc-4372-a567-0e02b2c3d479". Any thread.
std::string NewRequestId();

}  // namespace tactus::api
