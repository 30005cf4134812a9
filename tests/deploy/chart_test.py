"""The chart deploy/helm/tactus: rendered by Helm's own engine, checked by Kubernetes' schemas and by the programs that it
starts. scripts/deploy-check gets what this needs."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

try:
    import helm_python
    import kubernetes_validate
    import yaml
except ImportError as failure:
    print(f"skipped: {failure.name} is not here; scripts/deploy-check gets it")
    sys.exit(77)

SOURCE = pathlib.Path(os.environ["TACTUS_SOURCE"])
BIN = pathlib.Path(os.environ["TACTUS_BIN"])
CHART = SOURCE / "deploy/helm/tactus"
VERSIONS = ("1.28", "1.31", "1.35")
# Kinds that Kubernetes itself does not know.
OPERATORS = {"ServiceMonitor", "PrometheusRule"}

GPUS = {
    "tls": {"mode": "csi", "issuer": {"name": "tactus-ca"}},
    "agents": [
        {"name": "a100", "kind": "DaemonSet", "gpus": 4, "nodeSelector": {"gpu": "a100"}, "image": {"repository": "tactus-cuda"},
         "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}], "drainDeadline": 300,
         "dataVolumes": [{"name": "data", "mountPath": "/data", "volume": {"nfs": {"server": "nas", "path": "/data"}}}]},
        {"name": "guests", "kind": "StatefulSet", "replicas": 3, "gpus": 1, "podLabels": {"kueue.x-k8s.io/queue-name": "spare"},
         "labels": ["tier=spare"], "taints": ["spare"], "runtimeClassName": "nvidia", "priorityClassName": "low"},
        {"name": "cpu", "kind": "StatefulSet", "replicas": 1, "gpus": 0, "workers": 3}],
    "coordinator": {"podDisruptionBudget": {"enabled": True}, "extraArgs": ["--retain-jobs=30d"], "nodeSelector": {"disk": "ssd"},
                    "persistence": {"storageClassName": "fast"}, "podAnnotations": {"a": "b"}},
    "monitoring": {"serviceMonitor": {"enabled": True}, "rules": {"enabled": True}, "dashboards": {"enabled": True}},
    "networkPolicy": {"agentEgress": [{"to": [{"ipBlock": {"cidr": "192.0.2.0/24"}}]}]},
}
SECRETS = {
    "tls": {"mode": "secrets", "coordinatorSecret": "coordinator-tls"},
    "agents": [{"name": "one", "kind": "StatefulSet", "replicas": 1, "gpus": 0, "workers": 1, "tlsSecret": "one-tls"}],
}
BUCKET = {"coordinator": {"blobs": {"place": "s3://models/fleet", "endpoint": "https://minio.example:9000", "secret": "bucket",
                                    "ca": True}}}
CASES = {"defaults": {}, "gpus": GPUS, "secrets": SECRETS, "bucket": BUCKET}


class ChartTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.chart = helm_python.Chart.load(CHART)
        cls.rendered = {name: cls.render(values) for name, values in CASES.items()}

    @classmethod
    def render(cls, values):
        cls.chart.validate_schema(values)
        files = cls.chart.render(values=values, name="lab", namespace="ml")
        return [document for path, text in files.items() if not path.endswith(".txt") for document in yaml.safe_load_all(text) if document]

    def each(self, *kinds):
        found = [(case, document) for case, documents in self.rendered.items() for document in documents
                 if not kinds or document["kind"] in kinds]
        self.assertNotEqual(found, [])
        return found

    def pods(self):
        return [(case, document, document["spec"]["template"]) for case, document in self.each("StatefulSet", "DaemonSet")]

    def test_helm_finds_nothing_to_complain_of(self):
        for name, values in CASES.items():
            report = helm_python.lint(CHART, values, strict=True)
            self.assertEqual([one for one in report["messages"] if one["severity"] > 1] + report["errors"], [], name)

    def test_every_document_is_one_of_kubernetes(self):
        for _, document in self.each():
            if document["kind"] in OPERATORS:
                self.assertEqual(document["apiVersion"], "monitoring.coreos.com/v1")
                continue
            for version in VERSIONS:
                kubernetes_validate.validate(document, version, strict=True)

    def test_each_is_there_once(self):
        for case, documents in self.rendered.items():
            names = [(document["kind"], document["metadata"]["name"]) for document in documents]
            self.assertEqual(len(names), len(set(names)), case)

    def test_pods_may_do_as_little_as_they_can(self):
        for _, _, pod in self.pods():
            spec = pod["spec"]
            self.assertIs(spec["securityContext"]["runAsNonRoot"], True)
            self.assertEqual(spec["securityContext"]["seccompProfile"], {"type": "RuntimeDefault"})
            self.assertIs(spec["automountServiceAccountToken"], False)
            for container in spec["containers"]:
                self.assertEqual(container["securityContext"], {
                    "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}})
                self.assertIn("memory", container["resources"]["limits"])
                self.assertIn("livenessProbe", container)
                self.assertIn("startupProbe", container)

    def test_the_programs_take_their_command_lines(self):
        values = {"POD_IP": "10.0.0.1", "TACTUS_NODE_NAME": "node-1"}
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        tactus = [BIN / "tactus", "admin"]
        subprocess.run([*tactus, "init-ca", "--out", folder / "ca"], check=True, capture_output=True)
        for who in (["--coordinator"], ["--node", "node-1"]):
            name = f"tactus-{who[0].strip('-').replace('node', 'agent')}"
            subprocess.run([*tactus, "issue", *who, "--ca", folder / "ca", "--out", folder / name], check=True, capture_output=True)
        for _, _, pod in self.pods():
            container = pod["spec"]["containers"][0]
            words = [re.sub(r"\$\((\w+)\)", lambda found: values[found[1]], word) for word in container["args"]]
            words = [word.replace("/etc/tactus/tls", str(folder / words[0])) for word in words]
            words = [word.replace("--devices=gpus", "--devices=cpu:0") for word in words]  # that would ask the driver
            self.assertNotIn("$", " ".join(words))
            self.assertLessEqual({name for name in values if f"$({name})" in " ".join(container["args"])},
                                 {one["name"] for one in container.get("env", [])})
            done = subprocess.run([BIN / words[0], *words[1:], "config", "show"], capture_output=True, text=True, timeout=30)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("listen", done.stdout)

    def test_folders_that_are_written_are_volumes(self):
        for _, document, pod in self.pods():
            mounts = {mount["mountPath"]: mount["name"] for mount in pod["spec"]["containers"][0]["volumeMounts"]}
            claims = [claim["metadata"]["name"] for claim in document["spec"].get("volumeClaimTemplates", [])]
            self.assertLessEqual(set(mounts.values()), {volume["name"] for volume in pod["spec"]["volumes"]} | set(claims))
            for word in pod["spec"]["containers"][0]["args"]:
                if word.startswith(("--state-dir=", "--tls-dir=")):
                    self.assertIn(word.split("=")[1], mounts)
            self.assertIn("/tmp", mounts)

    def test_a_bucket_has_its_keys_from_a_secret_and_a_way_there(self):
        spec = next(document for document in self.rendered["bucket"] if document["kind"] == "StatefulSet" and
                    document["metadata"]["name"].endswith("coordinator"))["spec"]["template"]["spec"]
        words = spec["containers"][0]["args"]
        self.assertIn("--blobs=s3://models/fleet", words)
        self.assertIn("--blobs-credentials=/etc/tactus/blobs/credentials", words)
        self.assertIn("--blobs-ca=/etc/tactus/blobs/ca.pem", words)
        volume = next(volume for volume in spec["volumes"] if volume["name"] == "blobs")
        self.assertEqual(volume["secret"], {"secretName": "bucket", "defaultMode": 0o440})
        egress = {case: document["spec"]["egress"] for case, document in self.each("NetworkPolicy")
                  if document["metadata"]["name"].endswith("coordinator")}
        self.assertEqual(egress["defaults"], [])
        self.assertIn({"ports": [{"port": 9000}]}, egress["bucket"])
        for values in ({"blobs": {"place": "s3://models"}}, {"blobs": {"place": "models", "secret": "bucket"}}):
            with self.assertRaises(Exception):
                self.render({"coordinator": values})

    def test_agents_have_the_time_to_leave(self):
        for _, document, pod in self.pods():
            for word in pod["spec"]["containers"][0]["args"]:
                if word.startswith("--drain-deadline="):
                    self.assertGreater(pod["spec"]["terminationGracePeriodSeconds"], int(word.split("=")[1].rstrip("s")))
            # A second signal would end workers at once.
            self.assertNotIn("lifecycle", pod["spec"]["containers"][0])

    def test_gpus_are_asked_for(self):
        limits = {document["metadata"]["name"]: document["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
                  for document in self.rendered["gpus"] if document["kind"] in ("StatefulSet", "DaemonSet")}
        self.assertEqual([limits[f"lab-tactus-agent-{name}"].get("nvidia.com/gpu") for name in ("a100", "guests", "cpu")], [4, 1, None])

    def test_selectors_find_pods_and_their_ports(self):
        for case, document in self.each("Service", "PodDisruptionBudget", "NetworkPolicy"):
            pods = [pod for other, _, pod in self.pods() if other == case]
            spec = document["spec"]
            wanted = spec["selector"] if document["kind"] == "Service" else spec.get("selector", spec.get("podSelector"))["matchLabels"]
            found = [pod for pod in pods if wanted.items() <= pod["metadata"]["labels"].items()]
            self.assertNotEqual(found, [])
            for pod in found:
                named = {port["name"] for port in pod["spec"]["containers"][0]["ports"]}
                asked = {port["targetPort"] for port in spec["ports"]} if document["kind"] == "Service" else {
                    port["port"] for rule in spec.get("ingress", []) for port in rule.get("ports", [])}
                self.assertLessEqual(asked, named)

    def test_certificates_name_who_has_them(self):
        holders = {document["metadata"]["name"]: volume["csi"]["volumeAttributes"]["csi.cert-manager.io/uri-sans"]
                   for document in self.rendered["gpus"] if document["kind"] in ("StatefulSet", "DaemonSet")
                   for volume in document["spec"]["template"]["spec"]["volumes"] if "csi" in volume}
        self.assertEqual(holders, {
            "lab-tactus-coordinator": "spiffe://tactus/coordinator",
            "lab-tactus-agent-a100": "spiffe://tactus/node/${POD_NAME}",
            "lab-tactus-agent-guests": "spiffe://tactus/node/${POD_NAME}",
            "lab-tactus-agent-cpu": "spiffe://tactus/node/${POD_NAME}"})
        for _, document, pod in self.pods():  # and an agent is who its certificate says
            names = {one["name"]: one["valueFrom"]["fieldRef"]["fieldPath"] for one in pod["spec"]["containers"][0].get("env", [])}
            if document["metadata"]["name"] in holders and names:
                self.assertEqual(names["TACTUS_NODE_NAME"], "metadata.name")
        for case, document, pod in self.pods():
            self.assertIn("--insecure" if case in ("defaults", "bucket") else "--tls-dir=/etc/tactus/tls", pod["spec"]["containers"][0]["args"])
            # Kubernetes' own gRPC probe has no certificate.
            self.assertIn("grpc" if case in ("defaults", "bucket") and "coordinator" in document["metadata"]["name"] else "httpGet",
                          pod["spec"]["containers"][0]["livenessProbe"])

    def test_dashboards_and_rules_are_those_of_the_tree(self):
        boards = {key: json.loads(text) for document in self.rendered["gpus"] if document["kind"] == "ConfigMap"
                  for key, text in document["data"].items()}
        self.assertEqual(boards, {path.name: json.loads(path.read_text()) for path in (SOURCE / "dashboards").glob("*.json")})
        rules = [document for document in self.rendered["gpus"] if document["kind"] == "PrometheusRule"]
        files = [yaml.safe_load((SOURCE / "dashboards" / name).read_text()) for name in ("recording.yml", "alerts.yml")]
        self.assertEqual(rules[0]["spec"]["groups"], [group for one in files for group in one["groups"]])

    def test_values_that_are_wrong_are_refused(self):
        pool = {"name": "p", "kind": "StatefulSet", "replicas": 1, "gpus": 0, "workers": 1}
        for values, said in (
                ({"coordinator": {"persistance": {}}}, "persistance"),
                ({"tls": {"mode": "yes"}}, "mode"),
                ({"agents": [{**pool, "name": "Bad_Name"}]}, "name"),
                ({"agents": [{**pool, "kind": "Deployment"}]}, "kind"),
                ({"agents": [{key: value for key, value in pool.items() if key != "replicas"}]}, "replicas"),
                ({"tls": {"mode": "csi"}}, "issuer"),
                ({"tls": {"mode": "secrets", "coordinatorSecret": "c"}, "agents": [pool]}, "tlsSecret"),
                ({"tls": {"mode": "secrets", "coordinatorSecret": "c"}, "agents": [{**pool, "replicas": 2, "tlsSecret": "s"}]}, "1 replica")):
            with self.assertRaises(helm_python.HelmError) as refused:
                self.render(values)
            self.assertIn(said, str(refused.exception))


if __name__ == "__main__":
    unittest.main(verbosity=2)
