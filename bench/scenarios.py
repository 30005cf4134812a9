"""Settings of bench/time-to-loss on the simulator: a cluster, a job, the policies to compare, the loss to reach."""

CIFAR = {"loss": {"perceptron": {"hidden": [64]}}}


def hosts(speeds, rate, samples_per_second=1000.0, sigma=0.05):
    """One device a host; `speeds` are relative."""
    return [{"name": f"h{i}", "link": {"rate": rate, "latency": "0.1ms"},
             "devices": [{"samples_per_second": samples_per_second * speed, "noise": {"sigma": sigma}}]}
            for i, speed in enumerate(speeds)]


def adapt(batch=None, synchronization=None, aggregation=None, learning_rate=None):
    axes = {"batch": batch, "synchronization": synchronization, "aggregation": aggregation,
            "learning_rate": learning_rate}
    return {"adapt": {name: axis for name, axis in axes.items() if axis}}


def fixed(per_worker):
    return {"policy": "fixed", "per_worker": per_worker}


def proportional(per_worker):
    return {"policy": "proportional", "per_worker": per_worker}


def sgd(learning_rate, momentum=0.0):
    return {"optimizer": {"sgd": {"learning_rate": learning_rate, "momentum": momentum}}}


def scenario(name, title, cluster, job, loss, rows, **more):
    """rows: [(label, what replaces the job's fields)]; the first is the one that the others are compared with.
    `seeds`: runs a row, with different orders of samples and first parameters; `measure`: seconds or rounds."""
    return {"name": name, "title": title, "cluster": cluster, "job": job, "loss": loss, "rows": rows,
            "seeds": 3, "measure": "seconds", **more}


def scenarios(data):
    cifar = {"data": {"cifar": str(data)}, "model": {"builtin": "cifar-cnn"}}

    # A step of 32 samples takes 32 ms; the mesh of 4 moves 1.5 times the model each way: D = 4 x 32 ms.
    adacomm = scenario(
        "adacomm", "4 equal workers, transfer four times as long as a step of 32 samples",
        {"hosts": hosts([1, 1, 1, 1], "93.75mbit", 1000.0, 0.1),
         "model": {"parameters": 250000, "backward_share": 0}, **CIFAR},
        {**cifar, **sgd(0.02), "stop": {"rounds": 1000000, "time": "900s"}}, 1.5,
        [("every step", adapt(fixed(32))),
         ("periodic 4", adapt(fixed(32), {"policy": "periodic", "period": 4})),
         ("periodic 16", adapt(fixed(32), {"policy": "periodic", "period": 16})),
         ("adacomm, tau_0 16", adapt(fixed(32), {"policy": "adacomm", "initial_period": 16, "interval": "60s"})),
         ("adacomm, tau_0 found", adapt(fixed(32), {"policy": "adacomm", "interval": "60s"})),
         ("auto", adapt(fixed(32), {"policy": "auto"}))])

    unequal = scenario(
        "abs-sgd", "4 workers of speeds 1, 0.75, 0.5 and 0.25, transfer of 80 ms",
        {"hosts": hosts([1, 0.75, 0.5, 0.25], "150mbit"),
         "model": {"parameters": 250000, "backward_share": 0.6}, **CIFAR},
        {**cifar, **sgd(0.05), "stop": {"rounds": 1000000, "time": "600s"}}, 1.5,
        [("every step, equal batches", adapt(fixed(32))),
         ("every step, proportional", adapt(proportional(32))),
         ("periodic 8, equal", adapt(fixed(32), {"policy": "periodic", "period": 8})),
         ("periodic 32, equal", adapt(fixed(32), {"policy": "periodic", "period": 32})),
         ("delayed (abs)", adapt({"policy": "abs", "per_worker": 32}, {"policy": "delayed"})),
         ("delayed (abs), sqrt", adapt({"policy": "abs", "per_worker": 32}, {"policy": "delayed"}, None,
                                       {"policy": "sqrt", "base_batch": 128})),
         ("auto", adapt({"policy": "auto", "per_worker": 32}, {"policy": "auto"}))])

    def scaled(times, rule):
        axis = {"policy": rule, "base_batch": 32}
        return adapt(fixed(8 * times), None, None, axis)

    adascale = scenario(
        "adascale", "4 equal workers, batches of 8 and 32 times the base of 32 samples: loss after equal progress",
        {"hosts": hosts([1, 1, 1, 1], "10gbit"), "model": {"backward_share": 0}, **CIFAR},
        {**cifar, **sgd(0.1), "stop": {"steps": 4000, "rounds": 1000000}}, 1.5,
        [("batch 32", scaled(1, "constant")),
         ("batch 256, adascale", scaled(8, "adascale")), ("batch 256, linear", scaled(8, "linear")),
         ("batch 1024, adascale", scaled(32, "adascale")), ("batch 1024, linear", scaled(32, "linear"))],
        measure="rounds")

    def sixteen(times, how):
        return adapt(fixed(8 * times), None, {"policy": how})

    adasum = scenario(
        "adasum", "16 workers, 16 times the batch of one at the rate of one: rounds to the loss",
        {"hosts": hosts([1] * 16, "10gbit"), "model": {"backward_share": 0}, **CIFAR},
        {**cifar, **sgd(0.05), "stop": {"rounds": 6000}}, 1.5,
        [("average", sixteen(4, "average")), ("adasum", sixteen(4, "adasum"))], measure="rounds", seeds=5)

    return [adacomm, unequal, adascale, adasum]
