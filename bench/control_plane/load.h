// The load generator's modes. Each returns the process's exit code and prints its figures with Say.

#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "bench/control_plane/arguments.h"

namespace tactus::bench {

// A connection of its own: channels to one address would share theirs otherwise. tls_dir: of who
// calls; empty: plain. Ends the process where its files do not do.
std::shared_ptr<grpc::Channel> NewConnection(const std::string& server,
                                             const std::string& tls_dir = "");

// --server --agents --connections --jobs --rounds --saturate [s] --window: simulated agents whose
// jobs train: one report a second each, for so many rounds; then as fast as the coordinator
// acknowledges, with at most `window` reports on their way for each. --tls: a folder with one of
// certificates for each agent, by its name, and one for a user ("user"); a connection has one
// certificate, so there have to be as many of them as agents.
int RunSessions(const Arguments& arguments);

// --address-file: the bare peer of the sessions, a server that parses, serialises and sends back
// what it gets. Ends with its parent.
int RunEchoServer(const Arguments& arguments);

// --server --agents --connections --seconds --window: streams of reports at saturation to it.
int RunEchoLoad(const Arguments& arguments);

// --server --clients --seconds | --count --tls: CreateJob, one after another for each client.
int RunSubmits(const Arguments& arguments);

// --address-file: waits for the file, then until the server there says SERVING; prints when.
int RunReady(const Arguments& arguments);

}  // namespace tactus::bench
