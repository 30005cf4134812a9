"""What the dashboards show: four boards, from the fleet down to one job's decisions and what is broken.

A panel has a type, a title, a description that says what it means and what is good, a unit of Grafana's, its queries as
(expression, legend) and a size in Grafana's grid of 24 columns.
"""

GREEN_TO_RED = lambda orange, red: [(None, "green"), (orange, "orange"), (red, "red")]
RED_TO_GREEN = lambda orange, green: [(None, "red"), (orange, "orange"), (green, "green")]
STAT, NARROW, WIDE, HALF, THIRD = (4, 4), (3, 4), (24, 8), (12, 8), (8, 8)
JOB = '{job_id="$job_id"}'


def row(title):
    return {"type": "row", "title": title}


def stat(title, description, unit, query, size=STAT, **more):
    return {"type": "stat", "title": title, "description": description, "unit": unit, "queries": [(query, more.pop("legend", ""))],
            "size": size, **more}


def graph(title, description, unit, *queries, size=HALF, **more):
    return {"type": "timeseries", "title": title, "description": description, "unit": unit, "queries": list(queries), "size": size, **more}


def table(title, description, *queries, size=HALF, **more):
    return {"type": "table", "title": title, "description": description, "unit": "none", "queries": list(queries), "size": size, **more}


def timeline(title, description, *queries, size=WIDE):
    return {"type": "state-timeline", "title": title, "description": description, "unit": "none", "queries": list(queries), "size": size}


FLEET = {
    "uid": "tactus-fleet", "title": "Tactus / Fleet", "annotations": ["nodes"],
    "description": "All nodes and jobs of a coordinator, and the coordinator itself.",
    "panels": [
        stat("Goodput", "Samples a second that became part of a model, all running jobs.", "short",
             "fleet:tactus_job_goodput_samples_per_second:sum"),
        stat("Devices busy", "Share of the devices that a worker sits on. Low while jobs wait: see the queue.", "percentunit",
             "fleet:tactus_devices_busy:ratio", min=0, max=1),
        stat("Nodes", "Nodes whose agent is connected.", "short", "sum(tactus_node_connected)"),
        stat("Nodes lost", "Nodes that went unheard within the last hour and are not back.", "short",
             "count(tactus_node_connected == 0) or vector(0)", steps=GREEN_TO_RED(1, 2)),
        stat("Jobs running", "Jobs that train now.", "short", 'tactus_jobs{state="running"}'),
        stat("Longest wait", "How long the job has waited that waits longest; 0: nobody waits.", "s",
             "(time() - tactus_queue_oldest_timestamp_seconds) or vector(0)", steps=GREEN_TO_RED(3600, 86400)),
        row("Jobs"),
        graph("Jobs by state", "Jobs that are not over, and those that ended since the coordinator started.", "short",
              ("tactus_jobs", "{{state}}"), interpolation="stepAfter"),
        graph("Goodput by job", "Samples of applied rounds a second.", "short",
              ("tactus_job_goodput_samples_per_second", "{{job_id}}"), stack=True, fill=20),
        graph("Utilisation by job", "Goodput over the sum of the workers' own speeds: 1 when nobody waits for anybody.", "percentunit",
              ("job_id:tactus_job_utilisation:ratio", "{{job_id}}"), min=0, steps=RED_TO_GREEN(0.5, 0.8)),
        graph("Progress of the epoch", "Share of each job's running epoch that is done.", "percentunit",
              ("tactus_job_epoch_progress_ratio", "{{job_id}}"), min=0, max=1),
        row("Nodes"),
        graph("Devices", "Devices of all connected nodes by what they do.", "short",
              ("fleet:tactus_node_devices:sum", "{{state}}"), stack=True, fill=20, interpolation="stepAfter"),
        graph("Silence of agents", "Time since each agent was heard: it speaks every 2 s and counts as unreachable after 10 s.", "s",
              ("tactus_agent_heartbeat_age_seconds", "{{node}}"), min=0, steps=GREEN_TO_RED(6, 10)),
        graph("Workers by node", "Worker processes that each agent runs, of the agents that are scraped.", "short",
              ("tactus_agent_workers", "{{node}}"), stack=True, fill=20, interpolation="stepAfter"),
        table("Cordoned nodes", "Nodes that get no new workers because somebody said so.",
              ("tactus_node_cordoned == 1", "")),
        row("Coordinator"),
        graph("Store writes", "Time of a durable write: half of them, and 99 in 100, are faster. An SSD takes some milliseconds.", "s",
              ("histogram_quantile(0.5, sum by (le) (rate(tactus_wal_fsync_seconds_bucket[$__rate_interval])))", "half"),
              ("instance:tactus_wal_fsync_seconds:p99_5m", "99 in 100"), steps=GREEN_TO_RED(0.05, 0.1)),
        graph("Events", "Events that the core deals with in a second.", "ops",
              ("rate(tactus_events_total[$__rate_interval])", "{{instance}}")),
        graph("Processor", "Of one core: the whole process, and what of it the core spends deciding.", "percentunit",
              ("rate(process_cpu_seconds_total{job=\"tactus-coordinator\"}[$__rate_interval])", "process"),
              ("rate(tactus_controller_overhead_seconds_total[$__rate_interval])", "deciding"), min=0),
        graph("Memory", "Resident memory of coordinator and agents.", "bytes",
              ("process_resident_memory_bytes", "{{job}} {{node}}"), min=0),
        graph("Calls", "Calls answered a second, by method and code.", "ops",
              ("sum by (method, code) (rate(tactus_rpc_server_handled_total[$__rate_interval]))", "{{method}} {{code}}")),
        graph("Transfers", "Uploads and downloads under way.", "short", ("tactus_transfers", "{{direction}}"), interpolation="stepAfter"),
        graph("Files on their way", "Whole in the coordinator's folder, and on their way to the bucket; none without one.", "short",
              ("tactus_bucket_waiting_files", "{{instance}}"), min=0, interpolation="stepAfter"),
    ],
}

TRAINING = {
    "uid": "tactus-job", "title": "Tactus / Job", "job": True, "annotations": ["decisions"],
    "description": "One job: how it learns, how fast, and what each of its workers does. Decisions are marked.",
    "panels": [
        stat("State", "Where the job is.", "none", f"tactus_job_state{JOB}", legend="{{state}}", text="name"),
        stat("Loss", "Training loss of the last 20 steps.", "none", f"tactus_job_loss{JOB}"),
        stat("Goodput", "Samples of applied rounds a second; empty while the job does not train.", "short", f"tactus_job_goodput_samples_per_second{JOB}"),
        stat("Utilisation", "Goodput over the sum of the workers' own speeds: 1 when nobody waits.", "percentunit",
             f"job_id:tactus_job_utilisation:ratio{JOB}", steps=RED_TO_GREEN(0.5, 0.8)),
        stat("Epoch", "Epochs completed, and the share of the running one.", "none",
             f"tactus_job_epoch{JOB} + on(job_id) tactus_job_epoch_progress_ratio{JOB}"),
        stat("Time left", "The coordinator's estimate; empty while it has none.", "s", f"tactus_job_eta_seconds{JOB}"),
        row("Learning"),
        graph("Loss", "Training loss of the last 20 steps, and that of the newest validation. It falls; a rise after a decision is the decision's.", "none",
              (f"tactus_job_loss{JOB}", "loss"), (f"tactus_job_validation_loss{JOB}", "validation loss")),
        graph("Learning rate", "Of the newest round, and by what a rule multiplied the schedule's.", "none",
              (f"tactus_job_learning_rate{JOB}", "learning rate"), (f"tactus_job_learning_rate_gain_ratio{JOB}", "gain of the rule")),
        row("Speed"),
        graph("Samples a second", "What became part of the model, beside the sum of what the workers compute by themselves.", "short",
              (f"tactus_job_goodput_samples_per_second{JOB}", "goodput"), (f"job_id:tactus_job_samples:rate5m{JOB}", "over 5 minutes"),
              (f"sum(tactus_worker_samples_per_second{JOB})", "workers' own speeds")),
        graph("Round", "Duration of the newest round, and what 99 in 100 of the last hour's stayed below.", "s",
              (f"tactus_job_last_round_seconds{JOB}", "newest"), (f"job_id:tactus_job_last_round_seconds:p99_1h{JOB}", "99 in 100"), min=0),
        graph("Traffic", "Payload of the collectives that the workers reported, all together.", "Bps",
              (f"rate(tactus_job_collective_bytes_total{JOB}[$__rate_interval])", "all workers"), min=0),
        graph("Rounds", "Rounds a second, and those of them that taught nothing as a gradient was not finite.", "ops",
              (f"rate(tactus_job_rounds_total{JOB}[$__rate_interval])", "rounds"),
              (f"rate(tactus_job_skipped_rounds_total{JOB}[$__rate_interval])", "skipped"), min=0),
        row("Workers"),
        graph("Batch by worker", "Samples of a step of each worker. Faster devices get more.", "short",
              (f"tactus_worker_batch_samples{JOB}", "rank {{rank}}"), interpolation="stepAfter", min=0),
        graph("Idle by worker", "Share of time in which each waits for others. The one at 0 is the one they wait for.", "percentunit",
              (f"tactus_worker_idle_ratio{JOB}", "rank {{rank}}"), min=0, max=1, steps=GREEN_TO_RED(0.2, 0.5)),
        graph("Speed by worker", "Samples a second of each while it computes.", "short",
              (f"tactus_worker_samples_per_second{JOB}", "rank {{rank}}"), min=0),
        graph("Link by worker", "What the others together can bring each at once. An exchange is over when the slowest is through with it.", "Bps",
              (f"tactus_worker_link_bytes_per_second{JOB}", "rank {{rank}}"), min=0),
        table("Where the workers run", "Node and device of each rank.", (f"tactus_worker_info{JOB}", ""), facts=True),
    ],
}

ADAPTIVITY = {
    "uid": "tactus-adaptivity", "title": "Tactus / Adaptivity", "job": True, "annotations": ["decisions"],
    "description": "What the planner changed in one job, from which numbers, and whether it kept its promise. Decisions are marked; "
                   "`tactus explain JOB` gives their reasons.",
    "panels": [
        stat("Plan", "Version of the plan in force: one more with each change.", "none", f"tactus_job_plan_version{JOB}", size=NARROW),
        stat("Synchronization", "When the workers' results are combined.", "none", f"tactus_job_synchronization_mode{JOB}",
             legend="{{mode}}", text="name"),
        stat("Aggregation", "How they are combined.", "none", f"tactus_job_aggregation_mode{JOB}", legend="{{mode}}", text="name"),
        stat("Learning rate rule", "How the learning rate follows the batch.", "none", f"tactus_job_learning_rate_rule{JOB}",
             legend="{{rule}}", text="name"),
        stat("Encoding", "In which form the workers' results travel.", "none", f"tactus_job_encoding_mode{JOB}", legend="{{mode}}",
             text="name", size=NARROW),
        stat("Batch", "Samples of a step, all workers.", "short", f"tactus_job_global_batch_samples{JOB}", size=NARROW),
        stat("Period", "Steps between synchronizations.", "short", f"tactus_job_communication_period_steps{JOB}", size=NARROW),
        row("What was decided"),
        graph("Batch and noise scale", "The batch beside the gradient noise scale. A batch far above it learns little from its last samples.",
              "short", (f"tactus_job_global_batch_samples{JOB}", "batch"), (f"tactus_job_gradient_noise_scale{JOB}", "noise scale"), min=0),
        graph("Batch by worker", "Samples of a step of each worker.", "short", (f"tactus_worker_batch_samples{JOB}", "rank {{rank}}"),
              stack=True, fill=20, interpolation="stepAfter", min=0),
        graph("Period", "Optimizer steps between synchronizations: long ones save transfers and let the workers drift apart.", "short",
              (f"tactus_job_communication_period_steps{JOB}", "steps"), interpolation="stepAfter", min=0),
        timeline("Modes", "Synchronization, aggregation, learning rate rule and encoding in force.",
                 (f"tactus_job_synchronization_mode{JOB}", "synchronization {{mode}}"),
                 (f"tactus_job_aggregation_mode{JOB}", "aggregation {{mode}}"),
                 (f"tactus_job_learning_rate_rule{JOB}", "learning rate {{rule}}"),
                 (f"tactus_job_encoding_mode{JOB}", "encoding {{mode}}"), size=HALF),
        graph("Bytes of a round", "Payload of the collectives of a round, all workers: what an encoding makes less.", "bytes",
              (f"rate(tactus_job_collective_bytes_total{JOB}[$__rate_interval]) / rate(tactus_job_rounds_total{JOB}[$__rate_interval])",
               "bytes"), min=0),
        row("From which numbers"),
        graph("Orthogonality", "How far the workers' gradients differ. 1: they are orthogonal, and Adasum adds them; 1 over the workers: they "
              "are the same, and it averages.",
              "percentunit", (f"tactus_job_orthogonality_ratio{JOB}", "orthogonality"), min=0, max=1),
        graph("Idle", "Share of time in which the workers wait, on average: what equal shares and longer periods win back.", "percentunit",
              (f"job_id:tactus_worker_idle_ratio:avg{JOB}", "mean of the workers"), min=0, max=1, steps=GREEN_TO_RED(0.2, 0.5)),
        graph("Collectives", "Time of a round's transfer at a worker, all jobs of the coordinator: half, and 99 in 100, are faster.", "s",
              ("histogram_quantile(0.5, sum by (le) (rate(tactus_collective_seconds_bucket[$__rate_interval])))", "half"),
              ("histogram_quantile(0.99, sum by (le) (rate(tactus_collective_seconds_bucket[$__rate_interval])))", "99 in 100"), min=0),
        graph("Phases of a round", "Where the time of a worker's round goes, all jobs of the coordinator.", "percentunit",
              ("sum by (phase) (rate(tactus_round_seconds_sum{phase!=\"total\"}[$__rate_interval])) / ignoring(phase) group_left "
               "sum(rate(tactus_round_seconds_sum{phase=\"total\"}[$__rate_interval]))", "{{phase}}"),
              min=0, stack=True, fill=20),
        graph("Step", "Computing of one optimizer step, all jobs of the coordinator: half are faster.", "s",
              ("histogram_quantile(0.5, sum by (le) (rate(tactus_worker_step_seconds_bucket[$__rate_interval])))", "half"), min=0),
        row("What came of it"),
        graph("Promised and measured gain", "Of the newest decision of each kind: 25 % is a quarter more than before.", "percentunit",
              (f"tactus_job_decision_predicted_gain_ratio{JOB}", "{{kind}} promised"),
              (f"tactus_job_decision_measured_gain_ratio{JOB}", "{{kind}} measured"), interpolation="stepAfter"),
        graph("Error of the promise", "Promised less measured. Near 0 is good; far above, the model promises too much.", "percentunit",
              (f"tactus_decision_predicted_error_ratio{JOB}", "{{kind}}"), interpolation="stepAfter"),
        graph("Decisions", "Made within the last hour, by kind and what became of them; all jobs.", "short",
              ("sum by (kind, outcome) (increase(tactus_decisions_total[1h]))", "{{kind}} {{outcome}}"), min=0),
    ],
}

FAULTS = {
    "uid": "tactus-faults", "title": "Tactus / Faults", "annotations": ["nodes"],
    "description": "What is broken, slow or about to be: nodes, GPUs, disk, and what the coordinator drops.",
    "panels": [
        stat("Alerts", "Alerts that fire; docs/runbooks/ says what to do.", "short",
             'count(ALERTS{alertname=~"Tactus.*",alertstate="firing"}) or vector(0)', steps=GREEN_TO_RED(1, 2)),
        stat("Coordinator", "Whether Prometheus reaches it.", "none", 'up{job="tactus-coordinator"}', steps=RED_TO_GREEN(0.5, 1)),
        stat("Devices at fault", "They get no work; `tactus describe node` says why.", "short",
             'sum(tactus_node_devices{state="fault"}) or vector(0)', steps=GREEN_TO_RED(1, 2)),
        stat("Store", "1 while writes fail: changes are refused.", "none", "tactus_store_failing", steps=GREEN_TO_RED(0.5, 1)),
        stat("Disk left", "Of the coordinator's state folder.", "percentunit", "tactus_state_free_bytes / tactus_state_size_bytes",
             steps=RED_TO_GREEN(0.1, 0.2)),
        stat("Backlog", "Events whose actions wait, mostly for the disk.", "short", "tactus_event_backlog_events",
             steps=GREEN_TO_RED(1000, 30000)),
        row("Who comes and goes"),
        timeline("Nodes", "1 while connected; a node that was lost is shown for an hour.", ("tactus_node_connected", "{{node}}"), size=HALF),
        graph("Changes", "Agents that came, ended or went unheard, and workers that exited, within 5 minutes.", "short",
              ("increase(tactus_membership_changes_total[5m])", "{{reason}}"), min=0),
        graph("Scrapes", "Whether Prometheus reaches coordinator and agents.", "none", ('up{job=~"tactus-.*"}', "{{job}} {{node}}"),
              min=0, max=1, interpolation="stepAfter"),
        graph("Streams of agents", "1 while an agent is connected to the coordinator, as it sees it itself.", "none",
              ("tactus_agent_connected", "{{node}}"), min=0, max=1, interpolation="stepAfter"),
        row("Jobs"),
        graph("Since the last round", "Of running jobs. Training stands still where this grows.", "s",
              ('(time() - tactus_job_last_round_timestamp_seconds) and on(job_id) tactus_job_state{state="running"}', "{{job_id}}"), min=0),
        graph("Rounds that taught nothing", "Skipped as a gradient was not finite, within 5 minutes; after 10 in a row a job fails.", "short",
              ("increase(tactus_job_skipped_rounds_total[5m])", "{{job_id}}"), min=0, steps=GREEN_TO_RED(1, 3)),
        graph("Suspensions", "How often jobs were taken off their devices within the last hour.", "short",
              ("increase(tactus_job_suspensions_total[1h])", "{{job_id}}"), min=0),
        graph("Regroups", "How often jobs lost workers, or a connection between them, and the others went on, within the last hour.", "short",
              ("increase(tactus_job_regroups_total[1h])", "{{job_id}}"), min=0),
        graph("Wrong parameters", "Comparisons that found a worker's parameters wrong, within the last hour; it took over the others'.", "short",
              ("increase(tactus_job_differences_total[1h])", "{{job_id}}"), min=0, steps=GREEN_TO_RED(1, 2)),
        graph("Age of checkpoints", "Of jobs that have one.", "s", ("time() - tactus_checkpoint_last_success_timestamp_seconds", "{{job_id}}"), min=0),
        row("Coordinator"),
        graph("Store writes", "Time that 99 in 100 durable writes stay below, and writes that failed in a second.", "s",
              ("instance:tactus_wal_fsync_seconds:p99_5m", "99 in 100"), ("rate(tactus_store_write_failures_total[5m])", "failures/s"),
              steps=GREEN_TO_RED(0.05, 0.1)),
        graph("Bucket", "Requests a second that brought nothing: refused, busy (tried again) or broken. None without a bucket.", "ops",
              ('sum by (method, outcome) (rate(tactus_bucket_requests_total{outcome=~"refused|busy|broken"}[5m]))', "{{method}} {{outcome}}"), min=0),
        graph("Left out", "Series beyond the bounds, and reports that agents dropped, within the last hour. 0 is good.", "short",
              ("increase(tactus_metrics_series_dropped_total[1h])", "series"),
              ("increase(tactus_agent_reports_dropped_total[1h])", "reports of {{node}}"), min=0),
        graph("Reports", "Workers' reports that agents handed on in a second.", "ops",
              ("rate(tactus_agent_reports_relayed_total[$__rate_interval])", "{{node}}"), min=0),
        graph("Open files", "File descriptors of each process; a leak grows without end.", "short", ("process_open_fds", "{{job}} {{node}}"), min=0),
        row("GPUs"),
        graph("Temperature", "Of the chip; most slow down above 85 °C.", "celsius", ("tactus_gpu_temperature_celsius", "{{node}} {{gpu}}"),
              steps=GREEN_TO_RED(80, 90)),
        graph("Power", "That the board draws.", "watt", ("tactus_gpu_power_watts", "{{node}} {{gpu}}"), min=0),
        graph("Clock", "Of the multiprocessors; a drop under load is throttling.", "hertz", ("tactus_gpu_sm_clock_hertz", "{{node}} {{gpu}}"), min=0),
        graph("Utilisation", "Share of time in which a kernel ran.", "percentunit", ("tactus_gpu_utilization_ratio", "{{node}} {{gpu}}"), min=0, max=1),
        graph("Memory", "Used, by any process.", "bytes", ("tactus_gpu_memory_used_bytes", "{{node}} {{gpu}}"), min=0),
        graph("Memory errors", "Uncorrected, since the driver was loaded. Any growth puts the GPU out of use.", "short",
              ("tactus_gpu_uncorrected_ecc_errors", "{{node}} {{gpu}}"), min=0),
        graph("Throttled", "1 while slowed down, by reason.", "none", ("tactus_gpu_throttled", "{{node}} {{gpu}} {{reason}}"), min=0, max=1,
              interpolation="stepAfter"),
        table("GPUs", "Model and UUID of each; fault is 1 while it gets no work.",
              ("tactus_gpu_fault * on(instance, gpu) group_left(uuid, model) tactus_gpu_info", "")),
    ],
}

BOARDS = [FLEET, TRAINING, ADAPTIVITY, FAULTS]
