// Looks through the whole database for what cannot be right.

#pragma once

#include <string>
#include <vector>

#include "coordinator/store/statements.h"

namespace tactus::store {

// One line a problem, at most some 1000: the database's own check, records that cannot be read or
// are not those of their row, history of jobs that are not there. Changes nothing.
std::vector<std::string> FindProblems(Statements& statements);

}  // namespace tactus::store
