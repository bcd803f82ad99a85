"""What the component qps-hpa scales by, asked of Prometheus' own engine."""

from __future__ import annotations

import re
import subprocess

import pytest
import yaml

from keepalive.planning import hpa
from tests.knative.manifests import KNATIVE

FOLDER = KNATIVE / "components/qps-hpa"
LABELS = 'namespace="ember"'


def rules():
    """The adapter's queries by the names of their metrics."""
    (document,) = yaml.safe_load_all((FOLDER / "adapter-rule.yaml").read_text())
    found = yaml.safe_load(document["data"]["config.yaml"])["externalRules"]
    return {
        one["name"]["as"]: one["metricsQuery"].replace("<<.LabelMatchers>>", LABELS)
        for one in found
    }


def autoscaler():
    return yaml.safe_load((FOLDER / "hpa.yaml").read_text())["spec"]


def measured(needs, folder, came):
    """The value of each metric after half an hour.

    Args:
        came: requests a second by status; a list is a value for each minute.
    """
    series = []
    for status, rates in came.items():
        total, values = 0.0, []
        for minute in range(31):
            total += 60 * (rates[minute] if isinstance(rates, list) else rates)
            values.append(str(total))
        name = f'ember_requests_total{{{LABELS},route="/v1/swap",method="POST",status="{status}"}}'
        series.append({"series": name, "values": " ".join(values)})
    group = {"name": "x", "rules": [{"record": k, "expr": v} for k, v in rules().items()]}
    (folder / "rules.yaml").write_text(yaml.safe_dump({"groups": [group]}))
    asked = [
        {"expr": name, "eval_time": "30m", "exp_samples": [{"labels": "{a='b'}", "value": -1}]}
        for name in rules()
    ]
    case = {"interval": "1m", "input_series": series, "promql_expr_test": asked}
    test = {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": [case]}
    (folder / "test.yaml").write_text(yaml.safe_dump(test))
    words = [needs("promtool"), "test", "rules", str(folder / "test.yaml")]
    told = subprocess.run(words, capture_output=True, text=True, check=False)
    text = told.stdout + told.stderr
    found = re.findall(r'got: \{__name__="(\w+)"\} (\S+)', text)
    assert len(found) == len(rules()), text
    return {name: float(value) for name, value in found}


def wanted(values, replicas):
    """The replicas that the HPA recommends: the most of any metric."""
    targets = {
        one["external"]["metric"]["name"]: float(one["external"]["target"]["averageValue"])
        for one in autoscaler()["metrics"]
    }
    assert values.keys() == targets.keys()
    return max(
        hpa.recommend(
            hpa.HpaSpec(targets[name], autoscaler()["maxReplicas"]),
            hpa.HpaObservation(0, replicas, [value / replicas] * replicas),
        )
        for name, value in values.items()
    )


def test_while_all_is_well_the_requests_count(needs, tmp_path):
    values = measured(needs, tmp_path, {"200": 80})
    assert values == {
        "requests_per_second": pytest.approx(80, rel=0.02),
        "requests_per_second_before_failures": 0,
    }
    assert wanted(values, 10) == 10


def test_less_load_scales_down(needs, tmp_path):
    values = measured(needs, tmp_path, {"200": [80] * 15 + [40] * 16})
    assert wanted(values, 10) == 5


@pytest.mark.parametrize("status", ["500", "502", "504"])
def test_a_broken_replica_whose_load_falls_is_not_less_load(needs, tmp_path, status):
    """Callers give up: half as much comes, and a tenth of that fails."""
    came = {"200": [80] * 24 + [36] * 7, status: [0] * 24 + [4] * 7}
    values = measured(needs, tmp_path, came)
    assert values["requests_per_second"] == pytest.approx(40, rel=0.05)
    assert wanted(values, 10) >= 10


def test_who_is_refused_for_the_queue_is_load_and_no_failure(needs, tmp_path):
    values = measured(needs, tmp_path, {"200": 80, "503": 80})
    assert values["requests_per_second_before_failures"] == 0
    assert wanted(values, 10) == 20


@pytest.mark.parametrize("status", ["401", "403", "429"])
def test_who_may_not_call_starts_no_replicas(status, needs, tmp_path):
    values = measured(needs, tmp_path, {"200": 80, status: 800})
    assert wanted(values, 10) == 10
