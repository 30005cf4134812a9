#!/usr/bin/env python3
"""The whole life of a job, from a client that knows nothing of Tactus but a coordinator's address.

    job_life.py HOST:PORT TEXT_FILE

Services and messages are found through server reflection (reflection.py). Needs grpcio and protobuf alone (Debian:
python3-grpcio). TEXT_FILE is a text of some kilobytes that every node can read. Prints a line for each step; ends
with 1 when an answer is not what it has to be.
"""
import hashlib
import sys
import time
import uuid

import grpc

from reflection import Reflected, as_dict

TIMEOUT = 10  # seconds; the coordinator refuses calls without a deadline


def spec(text_file, **stop):
    return {
        "name": "life",
        "model": {"builtin": "bytes-lm", "options": {"width": 16, "heads": 2, "layers": 1, "context": 16}},
        "data": {"text": text_file},
        "stop": stop,
        "workers": {"min": 1, "max": 1},
        "adapt": {"batch": {"policy": "BATCH_POLICY_FIXED", "per_worker": 8}},
    }


def state_of(jobs, name):
    return as_dict(jobs.GetJob({"name": name}, timeout=TIMEOUT))["state"].removeprefix("JOB_STATE_")


def watch_until(jobs, name, states, timeout=120):
    """Follows the job's events until it has one of the states; returns the job."""
    events = jobs.WatchJob({"name": name}, timeout=timeout)
    for event in events:
        if event.HasField("job"):
            job = as_dict(event.job)
            if job["state"].removeprefix("JOB_STATE_") in states:
                events.cancel()
                return job
    raise AssertionError(f"{name} ended before it was {states}: it is {state_of(jobs, name)}")


def say(step, text):
    print(f"{step}: {text}", flush=True)


def refused(call):
    """The error of a call that has to be refused, with its details."""
    try:
        call()
    except grpc.RpcError as error:
        return error
    raise AssertionError("a call that makes no sense was accepted")


def validate(jobs, text_file):
    jobs.CreateJob({"spec": spec(text_file, rounds=5), "validate_only": True}, timeout=TIMEOUT)
    error = refused(lambda: jobs.CreateJob({"spec": spec(text_file), "validate_only": True}, timeout=TIMEOUT))
    assert error.code() == grpc.StatusCode.INVALID_ARGUMENT, error
    say("validate", f"a job without end is refused: {error.details()}")


def create(jobs, text_file):
    request = {"spec": spec(text_file, time="3600s"), "labels": {"team": "examples"},
               "request_id": str(uuid.uuid4())}
    job = jobs.CreateJob(request, timeout=TIMEOUT)
    again = jobs.CreateJob(request, timeout=TIMEOUT)  # as after a lost answer
    assert job.name == again.name, "the same request made two jobs"
    say("create", job.name)
    return job.name


def change(jobs, name):
    job = jobs.UpdateJob({"name": name, "spec": {"priority": 5}, "labels": {"team": "examples", "seen": "yes"},
                          "update_mask": "spec.priority,labels"}, timeout=TIMEOUT)
    assert job.spec.priority == 5 and job.labels["seen"] == "yes", as_dict(job)
    error = refused(lambda: jobs.UpdateJob({"name": name, "spec": {"name": "other"}, "update_mask": "spec.name"},
                                           timeout=TIMEOUT))
    say("update", f"priority 5; another name is refused: {error.code().name}")


def hold(jobs, name):
    jobs.PauseJob({"name": name}, timeout=TIMEOUT)
    paused = watch_until(jobs, name, ["PAUSED"])
    say("pause", f"holds a checkpoint after {paused.get('checkpoint_rounds', 0)} rounds")
    jobs.ResumeJob({"name": name}, timeout=TIMEOUT)
    watch_until(jobs, name, ["RUNNING"])
    say("resume", "runs again")


def end(jobs, name):
    jobs.CancelJob({"name": name, "grace": "60s"}, timeout=TIMEOUT)
    job = watch_until(jobs, name, ["CANCELLED", "FAILED"])
    assert job["state"] == "JOB_STATE_CANCELLED", job
    say("cancel", job["state_reason"])
    return job


def read_history(jobs, name):
    rounds = jobs.ListRounds({"name": name, "points_max": 10}, timeout=TIMEOUT)
    assert 1 <= len(rounds.rounds) <= 10, len(rounds.rounds)
    say("rounds", f"{len(rounds.rounds)} of them, the last is {rounds.rounds[-1].round}")
    decisions = jobs.ListDecisions({"name": name}, timeout=TIMEOUT)
    assert decisions.decisions, "a job without a decision"
    say("decisions", decisions.decisions[0].reason)
    lines = "".join(entry.text for entry in jobs.StreamLogs({"name": name}, timeout=TIMEOUT)).splitlines()
    say("logs", f"{len(lines)} lines")


def download(jobs, job):
    for artifact in job["result"]["artifacts"]:
        content = b"".join(chunk.data for chunk in jobs.DownloadArtifact(
            {"name": job["name"], "path": artifact["path"]}, timeout=60))
        assert len(content) == int(artifact["size_bytes"]), artifact
        assert hashlib.sha256(content).hexdigest() == artifact["sha256"], artifact
        say("download", f"{artifact['path']}, {len(content)} bytes")


def forget(jobs, name):
    # Its workers may still be ending, which is refused as well.
    for _ in range(30):
        try:
            jobs.DeleteJob({"name": name}, timeout=TIMEOUT)
            break
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.FAILED_PRECONDITION, error
            time.sleep(1)
    error = refused(lambda: jobs.GetJob({"name": name}, timeout=TIMEOUT))
    assert error.code() == grpc.StatusCode.NOT_FOUND, error
    say("delete", "it is gone")


def is_serving(channel, service):
    """grpc.health.v1, whose messages are a string in field 1 and an enum in field 1, 1 for SERVING; the server
    answers for it without describing it to reflection."""
    check = channel.unary_unary("/grpc.health.v1.Health/Check",
                                request_serializer=lambda name: b"\x0a" + bytes([len(name)]) + name.encode(),
                                response_deserializer=bytes)
    return check(service, timeout=TIMEOUT) == b"\x08\x01"


def main(address, text_file):
    api = Reflected(grpc.insecure_channel(address))
    say("services", ", ".join(sorted(api.services())))
    for name in ("", "tactus.v1.Jobs", "tactus.v1.Nodes", "tactus.v1.Artifacts", "tactus.v1.Admin",
                 "tactus.v1.Enrolment"):
        assert is_serving(api.channel, name), name
    jobs = api.service("tactus.v1.Jobs")

    validate(jobs, text_file)
    name = create(jobs, text_file)
    watch_until(jobs, name, ["RUNNING"])
    say("watch", "it runs")
    change(jobs, name)
    hold(jobs, name)
    job = end(jobs, name)
    read_history(jobs, name)
    download(jobs, job)
    forget(jobs, name)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: job_life.py HOST:PORT TEXT_FILE")
    main(*sys.argv[1:])
