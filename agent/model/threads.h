// How many threads the arithmetic of this process uses.

#pragma once

namespace tactus::model {

// Sets the threads of libtorch's own loops and, where it is loaded, of OpenBLAS, which does not
// follow libtorch's setting. count >= 1.
void SetComputeThreads(int count);

}  // namespace tactus::model
