"""The chart: what it renders, what it refuses, and that the API server takes it."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from ringleaf.cli.conf_file import read_file
from ringleaf.cli.main import COMMANDS
from ringleaf.config.reader import DEFAULT
from ringleaf_testbed.cluster import CRDS, Testbed
from tests.deploy import manifests
from tests.deploy.helm import (
    ACCOUNT,
    CHART,
    MANIFESTS,
    NAMESPACE,
    Object,
    Refused,
    container,
    flags,
    helm,
    install_rights,
    objects,
    of_kind,
    rendered,
    rules,
)

pytestmark = pytest.mark.usefixtures("binaries")

CASES: Final = {
    "the defaults": (),
    "in place of Volcano": ("schedulerNames={volcano,ringleaf}",),
    "a shadow": ("shadow.enabled=true",),
    "canary by queue": ("canary.queues={research,dev}",),
    "shadow and canary": ("shadow.enabled=true", "canary.queues={research}"),
    "canary by namespace": ("canary.namespaces={team-a}",),
    "no fence": ("fence.enabled=false",),
    "no chip guard": ("chipGuard.enabled=false",),
    "one replica": ("replicas=1", "leaderElection.enabled=false"),
    "definitions": ("crds.install=true", "crds.withoutLookup=true"),
    "summaries": ("summary.enabled=true",),
    "summaries by the scheduler": ("summary.withScheduler=true",),
    "monitoring": (
        "networkPolicy.metricsNamespaces={monitoring}",
        "serviceMonitor.enabled=true",
        "prometheusRule.enabled=true",
        "dashboard.enabled=true",
    ),
    "an account of somebody else": (
        "serviceAccount.create=false",
        "serviceAccount.name=other",
    ),
    "everything else": (
        "image.digest=sha256:" + "0" * 64,
        "imagePullSecrets[0].name=pull",
        "nodeSelector.a=b",
        "podLabels.a=b",
        "podAnnotations.a=b",
        "serviceAccount.annotations.a=b",
        "networkPolicy.apiServerCIDRs={10.0.0.1/32}",
        "networkPolicy.from[0].namespaceSelector.matchLabels.a=b",
        "extraArgs={--connections=16}",
        "existingConfigMap=volcano-scheduler-configmap",
    ),
}


@pytest.fixture(scope="module")
def bed(testbed: Testbed) -> Testbed:
    """The shared API server, with the namespace and the kinds of Prometheus."""
    install_rights(testbed)
    for kind in ("ServiceMonitor", "PrometheusRule"):
        testbed.request("POST", CRDS, _prometheus_kind(kind))
    testbed.wait_for(
        lambda: testbed.request("GET", "/apis/monitoring.coreos.com/v1")[0] == 200,
        "the kinds of Prometheus",
    )
    return testbed


def _prometheus_kind(kind: str) -> Object:
    plural = f"{kind.lower()}s"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.monitoring.coreos.com"},
        "spec": {
            "group": "monitoring.coreos.com",
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": [version],
        },
    }


@pytest.mark.parametrize("values", CASES.values(), ids=CASES)
def test_the_api_server_takes_what_the_chart_renders(
    bed: Testbed, values: tuple[str, ...]
) -> None:
    told = bed.kubectl(
        "apply", "--dry-run=server", "-f", "-", input=rendered(*values)
    ).splitlines()

    assert len(told) == len(objects(*values))


def test_helm_has_nothing_to_complain_about() -> None:
    assert "[WARNING]" not in (told := helm("lint", "--strict", str(CHART)))
    assert "0 chart(s) failed" in told


def test_the_manifests_are_the_chart_with_its_defaults() -> None:
    found = {
        str(path.relative_to(MANIFESTS)): path.read_text(encoding="utf-8")
        for path in MANIFESTS.rglob("*.yaml")
    }

    assert found == manifests.manifests(), "hint: make manifests"


def test_the_manifests_are_taken_as_they_are(bed: Testbed) -> None:
    told = bed.kubectl("apply", "--dry-run=server", "-f", str(MANIFESTS)).splitlines()

    assert len(told) == len(objects()) + 1


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (["replcas=3"], "additional properties 'replcas' not allowed"),
        (["shadow.enable=true"], "at '/shadow': additional properties 'enable'"),
        (["replicas=0"], "at '/replicas': minimum: got 0, want 1"),
        (["replicas=two"], "at '/replicas': got string, want integer"),
        (["schedulerNames=volcano"], "at '/schedulerNames': got string, want array"),
        (["extraArgs={connections}"], "at '/extraArgs/0'"),
        (["leaderElection.enabled=false"], "hint: replicas=1"),
        (
            ["canary.queues={q}", "schedulerNames={ringleaf,volcano}"],
            "hint: schedulerNames={ringleaf}",
        ),
        (
            ["canary.queues={q}", "schedulerNames={volcano}"],
            "hint: schedulerNames={ringleaf}",
        ),
        (
            ["canary.queues={q}", "shadow.schedulerName=ringleaf"],
            "hint: shadow.schedulerName=volcano",
        ),
        (
            ["shadow.enabled=true", "shadow.schedulerName=ringleaf"],
            "it would be a shadow of itself; hint: shadow.schedulerName=volcano",
        ),
        (["fullnameOverride=Bad_Name"], "at '/fullnameOverride': 'Bad_Name' does not"),
        (["fullnameOverride=9lives"], "at '/fullnameOverride': '9lives' does not"),
        (["nameOverride=Bad_Name"], "at '/nameOverride': 'Bad_Name' does not"),
        (["healthPort=80"], "at '/healthPort': minimum: got 80, want 1,024"),
        (["extraArgs={--scheduler-name=volcano}"], "extraArgs has --scheduler-name,"),
        (["extraArgs={--no-leader-elect}"], "extraArgs has --no-leader-elect,"),
        (["configuration=garbage"], "hint: ringleaf check-conf FILE"),
        (["configuration=a: [b"], "hint: ringleaf check-conf FILE"),
        (["serviceAccount.create=false"], "hint: or serviceAccount.create=true"),
        (
            ["summary.enabled=true", "summary.withScheduler=true"],
            "two would write the same summaries; hint: one of them",
        ),
        (
            ["summary.withScheduler=true", "shadow.enabled=true"],
            "a shadow writes nothing; hint: summary.enabled=true",
        ),
        (["extraArgs={--with-summary}"], "extraArgs has --with-summary,"),
        (["crds.install=true"], "is Volcano's; hint: helm install, or"),
        (["serviceMonitor.enabled=true"], "hint: networkPolicy.metricsNamespaces="),
        (
            ["networkPolicy.metricsNamespaces={Bad_Name}"],
            "at '/networkPolicy/metricsNamespaces/0'",
        ),
    ],
    ids=lambda each: ",".join(each) if isinstance(each, list) else "",
)
def test_values_that_make_no_sense_are_refused_in_one_line(
    values: list[str], words: str
) -> None:
    with pytest.raises(Refused) as refused:
        rendered(*values)

    (line,) = [line for line in str(refused.value).splitlines() if words in line]
    assert len(line) < 250


def test_d34_the_configuration_is_the_one_that_is_built_in(tmp_path: Path) -> None:
    (found,) = of_kind("ConfigMap")
    file = tmp_path / "volcano-scheduler.conf"
    file.write_text(found["data"]["volcano-scheduler.conf"], encoding="utf-8")

    assert read_file(str(file)) == (DEFAULT, [])


def test_every_value_has_a_row_in_the_readme_and_a_line_in_the_schema() -> None:
    readme = (CHART / "README.md").read_text(encoding="utf-8")
    rows = dict(
        re.findall(r"^\| `([\w.]+)` \| (?:`(.*?)`|below) \| ", readme, re.MULTILINE)
    )
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    known = dict(_leaves(schema, values))

    configuration = known.pop("configuration")
    assert rows.pop("configuration") == ""
    assert str(configuration) in readme
    assert {name: json.loads(text) for name, text in rows.items()} == known


def _leaves(
    schema: Object, values: Object, path: str = ""
) -> Iterator[tuple[str, Any]]:
    """Every value by its name; each is in the schema, and nothing else is."""
    assert schema["additionalProperties"] is False, path
    assert {*schema["properties"]} - {"global"} == {*values}, path
    for key, value in values.items():
        part = schema["properties"][key]
        assert part["description"]
        if "properties" in part:
            yield from _leaves(part, value, f"{path}{key}.")
        else:
            yield f"{path}{key}", value


# What the scheduler is called with.


def test_it_is_called_for_the_names_in_the_values() -> None:
    named = [f for f in flags(*CASES["in place of Volcano"]) if "scheduler-name" in f]

    assert named == ["--scheduler-name=volcano", "--scheduler-name=ringleaf"]


def test_the_leader_is_elected_by_a_lease_in_the_namespace_of_the_release() -> None:
    assert [flag for flag in flags() if flag.startswith("--leader-elect")] == [
        "--leader-elect",
        "--leader-elect-lease-duration=5",
        "--leader-elect-resource-name=ringleaf",
        f"--leader-elect-resource-namespace={NAMESPACE}",
    ]
    one = flags(*CASES["one replica"])
    assert "--no-leader-elect" in one
    assert f"--leader-elect-resource-namespace={NAMESPACE}" in one


def test_modes_are_flags() -> None:
    shadow = {"--shadow", "--shadow-name=volcano"}
    assert shadow <= {*flags("shadow.enabled=true")}
    assert shadow <= {*flags(*CASES["canary by queue"])}
    assert not shadow & {*flags()}
    assert [f for f in flags(*CASES["canary by queue"]) if "canary" in f] == [
        "--canary-queue=research",
        "--canary-queue=dev",
    ]
    assert "--canary-namespace=team-a" in flags(*CASES["canary by namespace"])


def test_every_flag_is_one_of_the_scheduler() -> None:
    known = _options_of("scheduler")

    for values in CASES.values():
        named = {flag.partition("=")[0] for flag in flags(*values)[1:]}
        assert named <= known


def _options_of(name: str) -> set[str]:
    return {*COMMANDS[name].by_name}


# Job summaries.


def subjects(*values: str) -> set[tuple[str, str]]:
    """Role and account of every binding for all namespaces."""
    found = of_kind("ClusterRoleBinding", *values)
    return {
        (each["roleRef"]["name"], subject["name"])
        for each in found
        for subject in each["subjects"]
    }


def test_summaries_have_pods_an_account_and_a_role_of_their_own() -> None:
    values = CASES["summaries"]
    (words,) = [container("summary", *values)["args"]]
    named = {word.partition("=")[0] for word in words[1:]}

    assert words[0] == "summary-controller"
    assert named <= _options_of("summary-controller")
    assert "--leader-elect-resource-name=ringleaf-summary" in words
    assert subjects(*values) == {
        ("ringleaf-system-ringleaf", "ringleaf"),
        ("ringleaf-system-ringleaf-summary", "ringleaf-summary"),
    }
    assert "--with-summary" not in flags(*values)


def test_a_scheduler_that_writes_summaries_has_both_roles() -> None:
    values = CASES["summaries by the scheduler"]

    assert "--with-summary" in flags(*values)
    assert subjects(*values) == {
        ("ringleaf-system-ringleaf", "ringleaf"),
        ("ringleaf-system-ringleaf-summary", "ringleaf"),
    }
    assert len(of_kind("Deployment", *values)) == 1


def test_without_summaries_nobody_may_write_configmaps() -> None:
    writing = {"create", "update", "patch", "delete"}
    for namespace, rule in rules():
        if not namespace and "configmaps" in rule["resources"]:
            assert not writing & {*rule["verbs"]}


# The rest of the chart, by what must be so.


def test_pods_of_the_scheduler_are_as_restricted_as_pods_can_be(bed: Testbed) -> None:
    """The API server's own standard refuses them otherwise."""
    folder = yaml.safe_load((MANIFESTS / "00-namespace.yaml").read_text("utf-8"))
    name = "ringleaf-restricted"
    folder["metadata"]["name"] = name
    bed.client.ask("POST", "/api/v1/namespaces", folder)
    (deployment,) = of_kind("Deployment")
    pod = deployment["spec"]["template"]
    pod["metadata"]["name"] = "one"
    where = f"/api/v1/namespaces/{name}/pods?dryRun=All"

    taken, _made = bed.request("POST", where, pod)
    container = pod["spec"]["containers"][0]
    read_only = container["securityContext"].pop("readOnlyRootFilesystem")
    del container["securityContext"]["capabilities"]
    refused, told = bed.request("POST", where, pod)

    assert (taken, refused, read_only) == (201, 403, True)
    assert "capabilities" in told["message"]


@pytest.mark.parametrize("name", ["scheduler", "summary"])
def test_a_pod_that_starts_slowly_is_not_started_anew(name: str) -> None:
    found = container(name, "summary.enabled=true")
    startup = found["startupProbe"]

    assert startup["httpGet"]["path"] == "/livez"
    assert startup["periodSeconds"] * startup["failureThreshold"] >= 120


@pytest.mark.parametrize("name", ["ringleaf", "ringleaf-summary"])
def test_metrics_are_for_the_namespaces_that_are_named(name: str) -> None:
    def ingress(*values: str) -> Any:  # noqa: ANN401 - JSON
        policies = of_kind("NetworkPolicy", "summary.enabled=true", *values)
        (own,) = [each for each in policies if each["metadata"]["name"] == name]
        return own["spec"]["ingress"]

    named = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "m"}}}
    other = {"namespaceSelector": {"matchLabels": {"a": "b"}}}
    more = "networkPolicy.from[0].namespaceSelector.matchLabels.a=b"

    assert ingress() == []
    (rule,) = ingress("networkPolicy.metricsNamespaces={m}")
    assert rule["from"] == [named]
    assert len(rule["ports"]) == 1
    (rule,) = ingress("networkPolicy.metricsNamespaces={m}", more)
    assert rule["from"] == [named, other]


def test_there_is_no_wildcard_and_no_secret_in_the_roles() -> None:
    for _namespace, rule in rules():
        words = {*rule["apiGroups"], *rule["resources"], *rule["verbs"]}
        assert not words & {"*", "secrets", "impersonate", "escalate", "bind"}


def test_a_shadow_may_write_nothing() -> None:
    verbs = {v for _ns, rule in rules("shadow.enabled=true") for v in rule["verbs"]}
    (deployment,) = of_kind("Deployment", "shadow.enabled=true")

    assert verbs == {"list", "watch"}
    assert of_kind("ValidatingAdmissionPolicy", "shadow.enabled=true") == []
    assert deployment["spec"]["replicas"] == 1


def test_a_canary_may_do_what_a_scheduler_may_but_for_queues_and_faults() -> None:
    canary = [*rules(*CASES["shadow and canary"])]
    left_out = [rule for rule in rules() if rule not in canary]

    assert [(space, *rule["resources"]) for space, rule in left_out] == [
        ("", "queues"),
        ("", "queues/status"),
        *[("mindx-dl", "configmaps")] * 2,
        *[("volcano-system", "configmaps")] * 2,
    ]
    assert [rule for rule in canary if rule not in [*rules()]] == []
    assert len(of_kind("ValidatingAdmissionPolicy", *CASES["shadow and canary"])) == 2


def test_without_volcano_nothing_is_asked_of_its_namespace() -> None:
    spaces = {namespace for namespace, _rule in rules(*CASES["definitions"])}

    assert "volcano-system" in {namespace for namespace, _rule in rules()}
    assert "volcano-system" not in spaces


def test_config_maps_of_jobs_are_patched_in_the_namespaces_named() -> None:
    more = rules("rbac.resetConfigNamespaces={a,b}")
    own = [(space, rule["verbs"]) for space, rule in more if space in ("a", "b")]

    assert own == [("a", ["get", "patch"]), ("b", ["get", "patch"])]
    assert not any(
        "patch" in r["verbs"]
        for s, r in rules()
        if s == "" and "configmaps" in r["resources"]
    )


def test_an_older_api_server_is_spared_what_it_does_not_know() -> None:
    canary = CASES["canary by queue"]
    old = (*canary, "--kube-version=1.28.0")
    between = (
        *canary,
        "--kube-version=1.34.0",
        "--api-versions=admissionregistration.k8s.io/v1beta1/MutatingAdmissionPolicy",
    )

    assert of_kind("ValidatingAdmissionPolicy", *old) == []
    assert of_kind("MutatingAdmissionPolicy", *old) == []
    (policy,) = of_kind("MutatingAdmissionPolicy", *between)
    assert policy["apiVersion"] == "admissionregistration.k8s.io/v1beta1"
    (policy,) = of_kind("MutatingAdmissionPolicy", *canary)
    assert policy["apiVersion"] == "admissionregistration.k8s.io/v1"


def test_alerts_and_the_dashboard_are_rendered_as_they_are() -> None:
    dashboard, alerts = CHART / "dashboards/ringleaf.json", CHART / "rules/alerts.yaml"
    values = CASES["monitoring"]
    maps = [m for m in of_kind("ConfigMap", *values) if "ringleaf.json" in m["data"]]

    assert len(of_kind("ServiceMonitor", *values)) == 1
    assert [json.loads(each["data"]["ringleaf.json"]) for each in maps] == [
        json.loads(file.read_text("utf-8")) for file in [dashboard] if file.exists()
    ]
    assert [rule["spec"] for rule in of_kind("PrometheusRule", *values)] == [
        yaml.safe_load(file.read_text("utf-8")) for file in [alerts] if file.exists()
    ]


def test_runbooks_are_where_the_chart_is_told_that_they_are() -> None:
    page = "https://docs.example.com/metrics.html"
    (rule,) = of_kind(
        "PrometheusRule", *CASES["monitoring"], f"prometheusRule.runbookUrl={page}"
    )

    (group,) = rule["spec"]["groups"]
    assert {
        alert["annotations"]["runbook_url"].partition("#")[0]
        for alert in group["rules"]
    } == {page}


def test_the_notes_say_what_to_do_next(bed: Testbed) -> None:
    def notes(*values: str) -> str:
        sets = [f"--set={value}" for value in values]
        where = (str(CHART), f"--namespace={NAMESPACE}-notes", "--dry-run=server")
        return bed.helm("install", "ringleaf", *where, *sets).partition("NOTES:")[2]

    assert "is a shadow of the scheduler volcano" in notes("shadow.enabled=true")
    assert "queues a, b; namespaces c." in notes(
        "canary.queues={a,b}", "canary.namespaces={c}"
    )
    assert "Volcano's scheduler must not run" in notes("schedulerNames={volcano}")
    assert "get lease ringleaf\n" in notes()
    lease = f"ringleaf status --leader-elect-resource-namespace {NAMESPACE}-notes"
    assert f"{lease}\n" in notes()
    assert f"{lease} --leader-elect-resource-name x\n" in notes("fullnameOverride=x")
    assert "shadow-report" in notes("shadow.enabled=true")
    assert ACCOUNT.replace(NAMESPACE, f"{NAMESPACE}-notes") in notes()
