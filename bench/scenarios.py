"""Settings of bench/time-to-loss on the simulator: a cluster, a job, the policies to compare, the loss to reach."""

# A small network on real images, and one on invented ones that is a hundred times cheaper.
REAL = {"loss": {"perceptron": {"hidden": [32]}}}
INVENTED = {"loss": {"perceptron": {"hidden": [32], "synthetic": {"samples": 20000, "features": 32, "classes": 10,
                                                                  "separation": 2}}}}


def hosts(speeds, rate, samples_per_second=1000.0, sigma=0.05):
    """One device a host; `speeds` are relative."""
    return [{"name": f"h{i}", "link": {"rate": rate, "latency": "0.1ms"},
             "devices": [{"samples_per_second": samples_per_second * speed, "noise": {"sigma": sigma}}]}
            for i, speed in enumerate(speeds)]


def adapt(batch=None, synchronization=None, aggregation=None, learning_rate=None, encoding=None):
    axes = {"batch": batch, "synchronization": synchronization, "aggregation": aggregation,
            "learning_rate": learning_rate, "encoding": encoding}
    return {"adapt": {"policy": "none", **{name: axis for name, axis in axes.items() if axis}}}


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
    quadratic = {"noisy_quadratic": {"dimension": 64, "condition": 20, "gradient_noise": 30}}
    adacomm = scenario(
        "adacomm", "4 equal workers, transfer four times as long as a step of 32 samples",
        {"hosts": hosts([1, 1, 1, 1], "93.75mbit", 1000.0, 0.1),
         "model": {"parameters": 250000, "backward_share": 0}, "loss": quadratic},
        {**cifar, **sgd(0.05), "stop": {"rounds": 1000000, "time": "900s"}}, 0.02,
        [("every step", adapt(fixed(32))),
         ("periodic 4", adapt(fixed(32), {"policy": "periodic", "period": 4})),
         ("periodic 16", adapt(fixed(32), {"policy": "periodic", "period": 16})),
         ("adacomm, tau_0 16", adapt(fixed(32), {"policy": "adacomm", "initial_period": 16, "interval": "60s"})),
         ("adacomm, tau_0 found", adapt(fixed(32), {"policy": "adacomm", "interval": "60s"})),
         ("auto", adapt(fixed(32), {"policy": "auto"}))], seeds=5)

    # A step of 32 samples takes 0.16 s on the fastest and 0.64 s on the slowest, the transfer 0.4 s.
    unequal = scenario(
        "abs-sgd", "4 workers of speeds 1, 0.75, 0.5 and 0.25, transfer of 0.4 s",
        {"hosts": hosts([1, 0.75, 0.5, 0.25], "30mbit", 200.0),
         "model": {"parameters": 250000, "backward_share": 0.6}, **REAL},
        {**cifar, **sgd(0.05), "stop": {"train_loss": 1.72, "time": "900s"}}, 1.75,
        [("every step, equal batches", adapt(fixed(32))),
         ("every step, proportional", adapt(proportional(32))),
         ("periodic 8, equal", adapt(fixed(32), {"policy": "periodic", "period": 8})),
         ("periodic 32, equal", adapt(fixed(32), {"policy": "periodic", "period": 32})),
         ("periodic 8, proportional", adapt(proportional(32), {"policy": "periodic", "period": 8})),
         ("delayed (abs)", adapt({"policy": "abs", "per_worker": 32}, {"policy": "delayed"})),
         ("delayed (abs), sqrt", adapt({"policy": "abs", "per_worker": 32}, {"policy": "delayed"}, None,
                                       {"policy": "sqrt", "base_batch": 128})),
         ("auto", adapt({"policy": "proportional", "per_worker": 32}, {"policy": "auto"}))], seeds=2)

    def scaled(times, rule):
        return adapt(fixed(8 * times), None, None, {"policy": rule, "base_batch": 32})

    adascale = scenario(
        "adascale", "4 equal workers, batches of 8 and 32 times the base of 32 samples: loss after equal progress",
        {"hosts": hosts([1, 1, 1, 1], "10gbit"), "model": {"backward_share": 0}, **INVENTED},
        {**cifar, **sgd(0.5), "stop": {"steps": 5000}}, 1.65,
        [("batch 32", scaled(1, "constant")),
         ("batch 256, adascale", scaled(8, "adascale")), ("batch 256, linear", scaled(8, "linear")),
         ("batch 1024, adascale", scaled(32, "adascale")), ("batch 1024, linear", scaled(32, "linear"))],
        measure="rounds")

    def sixteen(how):
        return adapt(fixed(32), None, {"policy": how})

    adasum = scenario(
        "adasum", "16 workers, 16 times the batch of one at the rate of one: rounds to the loss",
        {"hosts": hosts([1] * 16, "10gbit"), "model": {"backward_share": 0}, **INVENTED},
        {**cifar, **sgd(0.05), "stop": {"rounds": 3000}}, 1.55,
        [("average", sixteen("average")), ("adasum", sixteen("adasum"))], measure="rounds", seeds=5)

    return [adacomm, unequal, adascale, adasum]
