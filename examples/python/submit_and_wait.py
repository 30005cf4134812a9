#!/usr/bin/env python3
"""Submits a job and waits for it, with stubs made of the .proto files. Needs grpcio and protobuf (Debian:
python3-grpcio) and, to make the stubs, Debian's protobuf-compiler-grpc:

    protoc --proto_path=proto --python_out=STUBS --grpc_python_out=STUBS \\
        --plugin=protoc-gen-grpc_python=/usr/bin/grpc_python_plugin $(cd proto && find tactus/v1 -name '*.proto')
    PYTHONPATH=STUBS submit_and_wait.py HOST:PORT TEXT_FILE

or, with grpcio-tools 1.34 or newer, `python3 -m grpc_tools.protoc` in the place of the first two words and without
the plugin. (Debian 12's own python3-grpc-tools is too old for optional fields.)
"""
import sys
import uuid

import grpc
from tactus.v1 import jobs_pb2, jobs_pb2_grpc, nodes_pb2, nodes_pb2_grpc, spec_pb2


def main(address, text_file):
    channel = grpc.insecure_channel(address)
    jobs = jobs_pb2_grpc.JobsStub(channel)
    nodes = nodes_pb2_grpc.NodesStub(channel)
    for node in nodes.ListNodes(nodes_pb2.ListNodesRequest(), timeout=10).nodes:
        print(node.name, [device.name for device in node.devices])

    spec = spec_pb2.JobSpec(name="stubs")
    spec.model.builtin = "bytes-lm"
    spec.model.options.width, spec.model.options.heads, spec.model.options.layers = 16, 2, 1
    spec.data.text = text_file
    spec.stop.rounds = 30
    job = jobs.CreateJob(jobs_pb2.CreateJobRequest(spec=spec, request_id=str(uuid.uuid4())), timeout=10)
    print(job.name)
    for event in jobs.WatchJob(jobs_pb2.WatchJobRequest(name=job.name), timeout=300):
        if event.HasField("job"):
            job = event.job
            print(jobs_pb2.JobState.Name(job.state), job.state_reason)
    print(f"validation loss {job.result.validation.loss:.4f}")
    return 0 if job.state == jobs_pb2.JOB_STATE_SUCCEEDED else 1


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: submit_and_wait.py HOST:PORT TEXT_FILE")
    sys.exit(main(*sys.argv[1:]))
