// What the kernel tells of a process from outside.

#pragma once

#include <sys/types.h>

#include <string_view>

namespace tactus::agent {

struct ProcessSighting {
  bool stopped = false;          // by a signal or a debugger
  bool storage = false;          // a thread of its waits for a disk, which nothing interrupts
  double processor_seconds = 0;  // that its threads have taken
};

// Of a process that is gone: nothing.
ProcessSighting LookAtProcess(pid_t pid);

// Whether `ancestor` is `pid`, or started it, or started who did. False where the line is broken,
// as a process between them has ended.
bool IsBelow(pid_t pid, pid_t ancestor);

// Of the text of /proc/PID/stat, or of a thread's; one that is malformed tells nothing. ticks: of
// the clock, in a second. Source: proc(5).
ProcessSighting ParseProcessStat(std::string_view stat, double ticks);

}  // namespace tactus::agent
