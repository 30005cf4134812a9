// From the words of a command line to how the program ends.

#pragma once

#include <string>
#include <vector>

#include "client/local/surroundings.h"
#include "client/render/exit_code.h"
#include "client/render/screen.h"

namespace tactus::client {

// Does what `words` say, which are without the program's name.
ExitCode Answer(const std::vector<std::string>& words, const Surroundings& surroundings,
                const Screen& screen);

}  // namespace tactus::client
