// Numbers in sentences for a person.

#pragma once

#include <string>

namespace tactus::policies {

// Three digits or so: "402", "41.3", "0.17", "0.0042".
std::string Figure(double value);

// "12.5 %" of 0.125.
std::string Percent(double fraction);

}  // namespace tactus::policies
