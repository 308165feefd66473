"""What the chart renders and refuses, without a cluster."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import charts
import pytest
import yaml
from charts import CHART, KUBERNETES, MATRIX, documents, of, template
from tools import Tool

from streams.config.load import load
from streams.config.settings import OPTIONS
from tests.streams.command_lines import parsed

REPOSITORY = CHART.parents[1]


@pytest.fixture(autouse=True)
def _helm(tool: Tool) -> None:
    tool("helm")


def test_lint(tmp_path: Path) -> None:
    for values in MATRIX.values():
        charts.helm("lint", "--strict", CHART, "--kube-version", "1.32.0", *charts.given(tmp_path, values))


def test_lint_names_required_values() -> None:
    result = subprocess.run([charts.need("helm"), "lint", CHART], capture_output=True, text=True)
    assert "kafka.bootstrap: required: the brokers as host:port" in result.stdout + result.stderr


def test_recipe_for_a_larger_disk_names_rendered_objects(tmp_path: Path) -> None:
    recipe = (CHART / "README.md").read_text().split("## Enlarge a disk")[1].split("\n## ")[0]
    size = re.findall(r"--set (matcher\.persistence\.size)=(\S+)", recipe)
    assert size == [("matcher.persistence.size", "200Gi")]
    values = {"matcher": {"persistence": {"size": "200Gi"}}}
    rendered = documents(template(tmp_path, values))
    matcher = of(rendered, "StatefulSet", "matcher")
    (claim,) = matcher["spec"]["volumeClaimTemplates"]
    name = matcher["metadata"]["name"].replace("r-neardup-", "NAME-", 1)
    assert claim["spec"]["resources"]["requests"]["storage"] == "200Gi"
    assert f"kubectl patch pvc {claim['metadata']['name']}-{name}-0 " in recipe
    assert f"kubectl delete statefulset {name} --cascade=orphan" in recipe


def test_schema_and_readme_are_those_of_the_values() -> None:
    result = subprocess.run(
        [sys.executable, REPOSITORY / "deploy" / "chart.py", "--check"], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr


def test_the_version_stands_in_one_place() -> None:
    version = re.search(r'^version = "(.*)"', (REPOSITORY / "pyproject.toml").read_text(), re.MULTILINE)
    chart = (CHART / "Chart.yaml").read_text()
    assert version is not None
    assert f"\nversion: {version[1]}\n" in chart
    assert f"\nappVersion: {version[1]}\n" in chart


@pytest.mark.whole
@pytest.mark.parametrize("kubernetes", KUBERNETES)
def test_rendered_objects_are_valid(tool: Tool, tmp_path: Path, kubernetes: str) -> None:
    """Strictly: a field that Kubernetes does not know is an error. Of others' resources it has no schema."""
    validate = tool("kubernetes-validate")
    for name, values in MATRIX.items():
        path = tmp_path / f"{name}.yaml"
        path.write_text(template(tmp_path, values, kubernetes))
    command = [validate, "--strict", "--kubernetes-version", kubernetes, *sorted(tmp_path.glob("*.yaml"))]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


#: The role of a component's pods; others take no part in the line.
ROLES = {"sketcher": "sketch", "matcher": "match", "views": "views"}


def environments(found: list[dict[str, Any]]) -> Iterator[tuple[str, Mapping[str, Any], dict[str, str]]]:
    """Role or kind, pod's specification, and the variables of its container whose value is given."""
    for document in found:
        spec = (
            document["spec"] if document["kind"] == "Pod" else document.get("spec", {}).get("template", {}).get("spec")
        )
        if spec:
            variables = spec["containers"][0].get("env", [])
            assert len({each["name"] for each in variables}) == len(variables), "a variable twice"
            component = document["metadata"]["labels"].get("app.kubernetes.io/component", "")
            yield (
                ROLES.get(component.partition("-")[0], document["kind"]),
                spec,
                {each["name"]: each.get("value", "1") for each in variables},
            )


@pytest.mark.parametrize("name", MATRIX)
def test_settings_of_pods_are_understood(tmp_path: Path, name: str) -> None:
    """By the roles themselves: each variable is a setting, and its value one that it may have."""
    for role, _, environment in environments(documents(template(tmp_path, MATRIX[name]))):
        for variable in [each for each in environment if each.endswith("_FILE")]:
            secret = tmp_path / "secret"
            secret.write_text("1234567890123456")
            environment[variable] = str(secret)
        settings = load(environment, role=role if role in ("sketch", "match") else "")
        values = charts.merged(charts.LEAST, MATRIX[name])
        assert settings.bootstrap == values["kafka"]["bootstrap"]
        for setting, wanted in values.get("settings", {}).items():
            if role in ROLES.values():
                assert getattr(settings, setting) == wanted
        if role in ROLES.values():
            assert settings.decider_values == values.get("decider", {})
            assert settings.metrics_port == 9464
        copies = values.get("matcher", {}).get("checkpoints", {})
        if role == "match" and copies:
            assert settings.checkpoints == copies.get("url", "/var/lib/checkpoints")
            assert settings.checkpoint_messages == copies.get("messages", 5000)
            assert settings.checkpoints_kept == copies.get("kept", 3)
        else:
            assert settings.checkpoints == ""
        assert (settings.seed is not None) is (role in ("sketch", "match")), "only roles that need the seed have it"


def test_security_values_are_those_tried_on_a_broker(tmp_path: Path) -> None:
    """test_secured.py runs the line with variables of these names."""
    tried = (REPOSITORY / "tests" / "deploy" / "test_secured.py").read_text()
    for name in ("secured", "certificates"):
        for role, _, environment in environments(documents(template(tmp_path, MATRIX[name]))):
            for variable in environment:
                if "__SASL_" in variable or "__SSL_" in variable or variable.endswith("_FILE"):
                    assert f'"{variable}"' in tried, f"{role}: {variable}"


def test_the_user_of_the_example_has_the_rights_of_the_guide() -> None:
    """Those of all users, and of the commands that a pod runs for an operator. A broker tests the guide's table."""
    _, _, user = (CHART / "examples" / "strimzi.yaml").read_text().partition("# The user, for kubectl apply:")
    acls = yaml.safe_load(re.sub(r"(?m)^# ? ?", "", user))["spec"]["authorization"]["acls"]
    guide = (REPOSITORY / "deploy" / "secure.md").read_text().partition("## Rights in Kafka")[2]
    table = re.findall(r"(?m)^\| \w+ \| (\w+) (`[^|]+) \| ([^|]+) \|$", guide)
    rows = [(kind, name, given) for kind, names, given in table for name in re.findall("`([^`]+)`", names)]
    commands = [("topic", "neardup.generations", "Read, Write")]
    assert len(rows) > 20
    for kind, name, operations in (*rows, *commands):
        found = {
            operation
            for acl in acls
            if acl["resource"]["type"] == kind
            and (
                name.startswith(acl["resource"]["name"])
                if acl["resource"]["patternType"] == "prefix"
                else name == acl["resource"]["name"]
            )
            for operation in acl["operations"]
        }
        assert set(operations.split(", ")) <= found, (kind, name)


def test_every_setting_can_be_given(tmp_path: Path) -> None:
    """Those that the chart makes of other values aside."""
    schema = json.loads((CHART / "values.schema.json").read_text())["properties"]
    given = {*schema["settings"]["properties"], *(f"decider.{name}" for name in schema["decider"]["properties"])}
    own = {
        "bootstrap",
        "generation",
        "group",
        "state",
        "metrics_host",
        "metrics_port",
        "audit",
        "seed",
        "views_token",
        "ask_token",
    }
    own |= {"checkpoints", "checkpoint_messages", "checkpoints_kept", "views_state", "topic_prefix"}
    own |= {"views_token", "ask_token"}
    topics = {name for name in OPTIONS if name.endswith("_topic")}
    assert given == set(OPTIONS) - own - topics


@pytest.mark.parametrize("name", MATRIX)
def test_pods_are_as_restricted_as_can_be(tmp_path: Path, name: str) -> None:
    seen = set()
    for kind, spec, _ in environments(documents(template(tmp_path, MATRIX[name]))):
        seen.add(kind)
        assert spec["automountServiceAccountToken"] is False
        assert spec["enableServiceLinks"] is False
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in spec["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert container["resources"]["requests"] or container["resources"]["limits"]
            written = {mount["mountPath"] for mount in container["volumeMounts"] if not mount.get("readOnly")}
            assert written <= {"/tmp", "/var/lib/neardup", "/var/lib/checkpoints"}
    assert seen >= {"sketch", "match", "Pod"}


def test_views_without_a_token_are_reached_by_forwarded_port_alone(tmp_path: Path) -> None:
    for name, host in (("kept and seen", "0.0.0.0"), ("kept on a claim", "127.0.0.1")):
        found = documents(template(tmp_path, MATRIX[name]))
        (container,) = of(found, "StatefulSet", "-views")["spec"]["template"]["spec"]["containers"]
        assert container["args"][:3] == ["views", "--host", host]
        services = [each for each in found if each["kind"] == "Service" and each["metadata"]["name"].endswith("-views")]
        ports = [port["port"] for rule in of(found, "NetworkPolicy")["spec"]["ingress"] for port in rule["ports"]]
        assert bool(services) is (8379 in ports) is (host == "0.0.0.0")


def test_ask_reads_the_volume_of_the_matcher_and_a_token_opens_it_to_others(tmp_path: Path) -> None:
    for name, host in (("asked", "0.0.0.0"), ("asked through a forwarded port", "127.0.0.1")):
        found = documents(template(tmp_path, MATRIX[name]))
        matcher, container = of(found, "StatefulSet")["spec"]["template"]["spec"]["containers"]
        (state,) = [each["value"] for each in matcher["env"] if each["name"] == "NEARDUP_STATE"]
        assert container["args"][:5] == ["ask", state, "--wait", "--host", host]
        names = container["args"][6::2]
        assert ("r-neardup-ask:8380" in names, "ask.example" in names) == (host == "0.0.0.0",) * 2
        assert {"name": "state", "mountPath": "/var/lib/neardup"} in container["volumeMounts"]
        mounts = {each["mountPath"] for each in container["volumeMounts"]}
        assert not mounts & {"/etc/neardup/seed", "/etc/neardup/sasl"}, "no secret of the stream"
        variables = {each["name"]: str(tmp_path / "token") for each in container.get("env", [])}
        (tmp_path / "token").write_text("1234567890123456")
        reached = host == "0.0.0.0"
        assert (load(variables).ask_token is not None) is reached
        rules = [
            rule
            for rule in of(found, "NetworkPolicy")["spec"]["ingress"]
            if {"port": 8380, "protocol": "TCP"} in rule["ports"]
        ]
        services = [each["metadata"]["name"] for each in found if each["kind"] == "Service"]
        assert (bool(rules), "r-neardup-ask" in services) == (reached, reached)
        if reached:
            assert rules[0]["from"] == [{"ipBlock": {"cidr": "10.0.0.0/8"}}, {"podSelector": {}}]
            assert of(found, "Service", "-ask")["spec"]["ports"][0]["targetPort"] == "ask"
            scraped = [each["port"] for each in of(found, "ServiceMonitor")["spec"]["endpoints"]]
            assert scraped == ["metrics", "ask"]
            assert {each["name"] for each in of(found, "Service", "-metrics")["spec"]["ports"]} == set(scraped)
    assert len(of(documents(template(tmp_path, {})), "StatefulSet")["spec"]["template"]["spec"]["containers"]) == 1


def test_several_views_reach_each_other_by_their_own_names(tmp_path: Path) -> None:
    found = documents(template(tmp_path, MATRIX["several views"]))
    views = of(found, "StatefulSet", "-views")
    (container,) = views["spec"]["template"]["spec"]["containers"]
    address = container["args"][container["args"].index("--address") + 1]
    headless = of(found, "Service", "-metrics")
    assert (views["spec"]["replicas"], headless["spec"]["clusterIP"]) == (3, "None")
    assert address == f"http://$(POD_NAME).{headless['metadata']['name']}:8379"
    assert views["spec"]["serviceName"] == headless["metadata"]["name"]
    assert {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}} in container["env"]
    assert of(found, "Service", "-views")["spec"]["sessionAffinity"] == "ClientIP"
    labels, policy = views["spec"]["template"]["metadata"]["labels"], of(found, "NetworkPolicy")["spec"]
    for rule, peers in ((policy["ingress"][1], "from"), (policy["egress"][2], "to")):
        assert 8379 in [port["port"] for port in rule["ports"]]
        selectors = [peer["podSelector"]["matchLabels"] for peer in rule[peers] if "podSelector" in peer]
        assert any(selector.items() <= labels.items() for selector in selectors)


def test_labels_of_the_views_outlive_their_pods(tmp_path: Path) -> None:
    (container,) = of(documents(template(tmp_path, MATRIX["several views"])), "StatefulSet", "-views")["spec"][
        "template"
    ]["spec"]["containers"]
    labels = Path(container["args"][container["args"].index("--labels") + 1])
    (claimed,) = [mount["mountPath"] for mount in container["volumeMounts"] if mount["name"] == "state"]
    assert labels.parent == Path(claimed)
    assert {"name": "NEARDUP_AUDIT_TOPIC", "value": "audit"} in container["env"]
    (unlabelled,) = of(documents(template(tmp_path, MATRIX["kept and seen"])), "StatefulSet", "-views")["spec"][
        "template"
    ]["spec"]["containers"]
    assert "--labels" not in unlabelled["args"]


def test_threads_follow_the_processors(tmp_path: Path) -> None:
    """A container's process sees the processors of its node, not its own share of them."""

    def threads(values: Mapping[str, Any]) -> Any:
        deployment = of(documents(template(tmp_path, values)), "Deployment")
        variables = deployment["spec"]["template"]["spec"]["containers"][0]["env"]
        return next((each for each in variables if each["name"] == "NEARDUP_THREADS"), None)

    assert threads({})["valueFrom"]["resourceFieldRef"]["resource"] == "requests.cpu"
    assert threads(MATRIX["placed"])["valueFrom"]["resourceFieldRef"]["resource"] == "limits.cpu"
    assert threads(MATRIX["set"])["value"] == "3"


def test_a_standby_pod_equals_the_matcher_and_runs_on_another_node(tmp_path: Path) -> None:
    """Both have the flag for two matchers: one without it would take over at its start."""
    found = documents(template(tmp_path, MATRIX["with a standby"]))
    matcher = of(found, "StatefulSet", "-matcher")["spec"]
    alone = of(documents(template(tmp_path, MATRIX["least"])), "StatefulSet", "-matcher")["spec"]
    assert (matcher["replicas"], alone["replicas"]) == (2, 1)
    pod, (container,) = matcher["template"]["spec"], matcher["template"]["spec"]["containers"]
    assert container["args"] == ["match", "--new-decider", "--standby"]
    assert alone["template"]["spec"]["containers"][0]["args"] == ["match"]
    apart = {each["topologyKey"]: each for each in pod["topologySpreadConstraints"]}
    labels = apart["kubernetes.io/hostname"]["labelSelector"]["matchLabels"]
    assert labels == matcher["selector"]["matchLabels"]
    assert [claim["metadata"]["name"] for claim in matcher["volumeClaimTemplates"]] == ["state"]
    # A standby is ready, too: otherwise an update would not go on to the active one, and a drain could take both.
    assert container["readinessProbe"]["httpGet"]["path"] == "/ready"
    assert of(found, "PodDisruptionBudget", "-matcher")["spec"]["maxUnavailable"] == 1
    # What may not change in a StatefulSet that is there is the same with and without.
    assert all(matcher[name] == alone[name] for name in ("podManagementPolicy", "serviceName", "volumeClaimTemplates"))


def test_a_backfill_fills_a_generation_and_arguments_of_one_start_are_given(tmp_path: Path) -> None:
    found = documents(template(tmp_path, MATRIX["filled from history"]))
    (container,) = of(found, "StatefulSet", "-matcher")["spec"]["template"]["spec"]["containers"]
    state, store = "--state=/var/lib/neardup/state", "--checkpoints=s3://crawl/g2"
    assert container["args"] == ["backfill", state, store, "--sketches-of="]
    understood = parsed(container["args"])["settings"]
    assert (understood.sketches_of, understood.checkpoints) == ("", "s3://crawl/g2")


def test_an_upgrade_removes_arguments_of_one_start(tmp_path: Path) -> None:
    """Helm makes a list with an empty string of `--set "matcher.extraArgs={}"`, as the chart's page advises."""
    found = documents(template(tmp_path, {"matcher": {"extraArgs": [""]}}))
    matcher = of(found, "StatefulSet", "-matcher")["spec"]
    assert matcher["template"]["spec"]["containers"][0]["args"] == ["match"]
    assert matcher["podManagementPolicy"] == "Parallel"  # else a pod that is not ready keeps its own


REFUSED = {
    "a backfill without a generation": ({"matcher": {"backfill": True}}, r"matcher\.backfill.*kafka\.generation"),
    "a backfill beside sketchers": (
        {"matcher": {"backfill": True}, "kafka": {"generation": "g2"}},
        r"matcher\.backfill.*sketcher\.replicas",
    ),
    "kafka.bootstrap": ({"kafka": {"bootstrap": ""}}, r"kafka.*bootstrap"),
    "no port": (
        {"kafka": {"bootstrap": "a:9092,kafka"}},
        r"kafka\.bootstrap: 'kafka' must be host:port, or several with commas",
    ),
    "misspelt at the top": ({"sketchers": {}}, r"sketchers"),
    "misspelt below": ({"kafka": {"bootstraps": "a:1"}}, r"bootstraps"),
    "misspelt deep": ({"matcher": {"persistence": {"storageclass": "x"}}}, r"storageclass"),
    "misspelt setting": ({"settings": {"flush": 1}}, r"flush"),
    "number over its bound": ({"decider": {"tape_min": "1.2"}}, r"tape_min"),
    "misspelt number": ({"decider": {"tape_minimum": 1}}, r"tape_minimum"),
    "out of range": ({"settings": {"batch_pages": 513}}, r"batch_pages.*(512|maximum)"),
    "no such rule": ({"decider": {"rule": "shingles"}}, r"decider.*rule.*(verified|one of)"),
    "wrong type": ({"sketcher": {"replicas": "two"}}, r"sketcher.*replicas"),
    "own setting": ({"settings": {"bootstrap": "a:1"}}, r"bootstrap"),
    "a secret as a setting": ({"settings": {"seed": "5"}}, r"seed"),
    "a secret in plain": ({"kafka": {"config": {"sasl.password": "x"}}}, r"kafka.*config"),
    "a setting of ours": ({"kafka": {"config": {"match.group.id": "x"}}}, r"kafka\.config: match\.group\.id set group"),
    "SASL without a secret": ({"kafka": {"security": {"protocol": "SASL_SSL"}}}, r"kafka\.sasl\.secret"),
    "a secret without SASL": ({"kafka": {"sasl": {"secret": "x"}}}, r"kafka\.security\.protocol"),
    "a certificate without TLS": ({"kafka": {"ca": {"secret": "x"}}}, r"kafka\.ca\.secret"),
    "two scalers": ({"sketcher": {"autoscaling": {"enabled": True}, "keda": {"enabled": True}}}, r"sketcher\.keda"),
    "least over greatest": ({"sketcher": {"keda": {"enabled": True, "minReplicas": 9}}}, r"keda\.minReplicas"),
    "a port kept out": ({"kafka": {"bootstrap": "a:19092"}}, r"networkPolicy\.kafkaPorts: lacks port 19092"),
    "no time for a batch": ({"matcher": {"terminationGracePeriodSeconds": 40}}, r"terminationGracePeriodSeconds"),
    "checkpoints twice": (
        {"matcher": {"checkpoints": {"url": "s3://a/b", "existingClaim": "c"}}},
        r"matcher\.checkpoints\.url, matcher\.checkpoints\.existingClaim",
    ),
    "checkpoints beside the index": (
        {"matcher": {"persistence": {"existingClaim": "c"}, "checkpoints": {"existingClaim": "c"}}},
        r"checkpoints\.existingClaim: is the index's own claim",
    ),
    "one claim for two": (
        {"matcher": {"standby": True, "persistence": {"existingClaim": "c"}}},
        r"matcher\.standby, matcher\.persistence\.existingClaim",
    ),
    "credentials for no store": ({"matcher": {"checkpoints": {"secret": "s"}}}, r"matcher\.checkpoints\.secret"),
    "a folder of the pod": ({"matcher": {"checkpoints": {"url": "/tmp/x"}}}, r"checkpoints.*url"),
    "a token without a role": ({"ask": {"token": {"secret": "ask"}}}, r"ask\.token\.secret is set, but ask\.enabled"),
    "views that cannot ask each other": ({"views": {"enabled": True, "replicas": 2}}, r"views\.replicas"),
    "no views": ({"views": {"enabled": True, "replicas": 0}}, r"views.*replicas"),
    "names without an ingress": ({"views": {"enabled": True, "names": ["a.example"]}}, r"views\.names"),
    "labels without a token": (
        {"views": {"enabled": True, "labelling": True}, "kafka": {"topics": {"audit": "audit"}}},
        r"views\.labelling",
    ),
    "nothing to label": (
        {"views": {"enabled": True, "labelling": True, "token": {"secret": "views"}}},
        r"views\.labelling.*kafka\.topics\.audit",
    ),
    "topics alike": ({"kafka": {"topics": {"verdicts": "pages"}}}, r"kafka\.topics"),
    "no size": ({"matcher": {"persistence": {"size": "big"}}}, r"persistence.*size"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_wrong_value_is_refused_by_its_name(tmp_path: Path, case: str) -> None:
    values, found = REFUSED[case]
    with pytest.raises(charts.Refused) as refused:
        template(tmp_path, values)
    assert re.search(found, str(refused.value).replace("\n", " ").replace("/", ".")), refused.value


def test_helm_set_takes_decider_numbers_and_lint_names_required_values(tool: Tool, tmp_path: Path) -> None:
    found = charts.helm(
        "template",
        "crawl",
        CHART,
        "--kube-version",
        "1.32.0",
        *charts.given(tmp_path, {}),
        "--set",
        "decider.tape_min=0.8",
    )
    (pod,) = [of(documents(found), "StatefulSet")["spec"]["template"]["spec"]]
    variables = {one["name"]: one.get("value") for one in pod["containers"][0]["env"]}
    assert variables["NEARDUP_DECIDER__TAPE_MIN"] == "0.8"
    linted = subprocess.run([tool("helm"), "lint", CHART], capture_output=True, text=True)
    assert (linted.returncode, "kafka.bootstrap: required" in linted.stdout + linted.stderr) == (0, True)


def test_each_rendering_without_a_cluster_draws_a_seed_that_cannot_get_in_twice(tmp_path: Path) -> None:
    """`helm template` cannot ask for the one that is there; the API server refuses to change what is immutable."""
    seeds = [of(documents(template(tmp_path, {})), "Secret") for _ in range(2)]
    assert seeds[0]["data"] != seeds[1]["data"]
    for seed in seeds:
        assert seed["immutable"] is True
        assert seed["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"


@pytest.mark.whole
def test_unit_tests(tool: Tool) -> None:
    result = subprocess.run([tool("helm-unittest"), CHART], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
