"""The settings that Ember has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import function
import warmup
from function.settings import Settings, load
from warmup.settings.variables import SettingsError, replace, variables


def test_an_empty_environment_gives_the_defaults():
    assert load({}) == Settings()
    assert (load({}).address.host, load({}).address.port) == ("127.0.0.1", 8080)


@pytest.mark.parametrize(
    ("name", "given", "field", "value"),
    [
        ("EMBER_HOST", "0.0.0.0", "host", "0.0.0.0"),
        ("EMBER_HOST", "::", "host", "::"),
        ("EMBER_PORT", "9000", "port", 9000),
        ("PORT", "9000", "port", 9000),
        ("EMBER_MANIFEST", __file__, "manifest", Path(__file__)),
        ("EMBER_ALLOW_ANONYMOUS", "true", "allow_anonymous", True),
        ("EMBER_AUTH", "JWT", "auth", "jwt"),
        ("EMBER_KEYS", __file__, "keys", Path(__file__)),
        ("EMBER_JWT_JWKS_URL", "https://a.example/k", "jwt_jwks_url", "https://a.example/k"),
        ("EMBER_JWT_JWKS_URL", "http://[::1]:9/k", "jwt_jwks_url", "http://[::1]:9/k"),
        ("EMBER_JWT_LEEWAY_S", "0", "jwt_leeway_s", 0),
        ("EMBER_POLICY", __file__, "policy", Path(__file__)),
        ("EMBER_REDIS_URL", "rediss://u:p@h:1/0", "redis_url", "rediss://u:p@h:1/0"),
        ("EMBER_REDIS_TIMEOUT_S", "1", "redis_timeout_s", 1),
        ("EMBER_QUOTA_FAIL", "closed", "quota_fail", "closed"),
        ("EMBER_DEGRADE", "refuse-bulk, quick-search", "degrade", ("refuse-bulk", "quick-search")),
        ("EMBER_DEGRADE_WAIT_S", "0.5", "degrade_wait_s", 0.5),
        ("EMBER_REQUEST_TIMEOUT_S", "30", "request_timeout_s", 30),
        ("EMBER_ANSWER_TIMEOUT_S", "30", "answer_timeout_s", 30),
        ("EMBER_THREADS", "4", "threads", 4),
        ("EMBER_BACKENDS", "CUDA, cpu", "backends", ("cuda", "cpu")),
        ("EMBER_ALLOW_DEGRADED", "yes", "allow_degraded", True),
        ("EMBER_PRELOAD", "False", "preload", False),
        ("EMBER_WARMUP_REQUESTS", "3", "warmup_requests", 3),
        ("EMBER_WARMUP_RETRY_S", "0", "warmup_retry_s", 0),
        ("EMBER_HEARTBEAT_S", "0.5", "heartbeat_s", 0.5),
        ("EMBER_STUCK_S", "10", "stuck_s", 10),
        ("EMBER_MEMORY_SOFT_LIMIT", "0", "memory_soft_limit", 0),
        ("EMBER_MEMORY_SOFT_LIMIT", ".8", "memory_soft_limit", 0.8),
        ("EMBER_MEMORY_SOFT_LIMIT", "1.5GiB", "memory_soft_limit", 1.5 * 1024**3),
        ("EMBER_MAX_PIXELS", "12M", "max_pixels", 12_000_000),
        ("EMBER_MAX_BODY_BYTES", "8MiB", "max_body_bytes", 8 * 1024**2),
        ("EMBER_BODY_TIMEOUT_S", "2.5", "body_timeout_s", 2.5),
        ("EMBER_AUDIT", "STDOUT", "audit", "stdout"),
        ("EMBER_AUDIT", "gs://bucket/audit/", "audit", "gs://bucket/audit/"),
        ("EMBER_AUDIT_KEY", __file__, "audit_key", Path(__file__)),
        ("EMBER_AUDIT_FAIL", "open", "audit_fail", "open"),
        ("EMBER_AUDIT_FSYNC", "true", "audit_fsync", True),
        ("EMBER_AUDIT_SUBJECTS", "name", "audit_subjects", "name"),
        ("EMBER_AUDIT_SPOOL", "/spool", "audit_spool", Path("/spool")),
        ("EMBER_AUDIT_SPOOL_BYTES", "1MiB", "audit_spool_bytes", 1024**2),
        ("EMBER_AUDIT_WINDOW_S", "5", "audit_window_s", 5),
        ("EMBER_DRAIN_GRACE_S", "0", "drain_grace_s", 0),
        ("EMBER_DRAIN_TIMEOUT_S", "120", "drain_timeout_s", 120),
        ("EMBER_PRODUCER", "Ember Studio 12", "producer", "Ember Studio 12"),
        ("EMBER_C2PA_KEY", __file__, "c2pa_key", Path(__file__)),
        ("EMBER_C2PA_SIGNER", "sign --with 'my key'", "c2pa_signer", ("sign", "--with", "my key")),
        ("EMBER_C2PA_TSA", "http://t.example/a", "c2pa_tsa", "http://t.example/a"),
        ("EMBER_C2PA_FAIL", "unsigned", "c2pa_fail", "unsigned"),
        ("EMBER_LABEL", "on", "label", "on"),
        ("EMBER_LABEL_TEXT", "AI 生成", "label_text", "AI 生成"),
        ("EMBER_LABEL_LANGUAGE", "zh", "label_language", "zh"),
        ("EMBER_LABEL_CORNER", "top-left", "label_corner", "top-left"),
        ("EMBER_LABEL_SECONDS", "3", "label_seconds", 3),
        ("EMBER_WATERMARK", "always", "watermark", "always"),
        ("EMBER_LOG_FORMAT", "json", "log_format", "json"),
        ("EMBER_LOG_LEVEL", "DEBUG", "log_level", "debug"),
    ],
)
def test_each_variable_sets_its_value(name, given, field, value):
    loaded = load({name: given})
    assert replace(Settings(), **{field: value}) == loaded


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("EMBER_HOST", "two words"),
        ("EMBER_PORT", "65536"),
        ("EMBER_PORT", "http"),
        ("EMBER_MANIFEST", "/nowhere/models.toml"),
        ("EMBER_AUTH", "basic"),
        ("EMBER_KEYS", "/nowhere/keys"),
        ("EMBER_JWT_JWKS_URL", "http://issuer.example/k"),
        ("EMBER_JWT_JWKS_URL", "https://"),
        ("EMBER_JWT_JWKS_URL", "file:///etc/passwd"),
        ("EMBER_POLICY", "/nowhere/policy.toml"),
        ("EMBER_REDIS_TIMEOUT_S", "0"),
        ("EMBER_QUOTA_FAIL", "maybe"),
        ("EMBER_DEGRADE", "skip-enhancer"),
        ("EMBER_REQUEST_TIMEOUT_S", "0"),
        ("EMBER_THREADS", "0"),
        ("EMBER_BACKENDS", "tpu"),
        ("EMBER_BACKENDS", "cpu,cpu"),
        ("EMBER_BACKENDS", ","),
        ("EMBER_ALLOW_DEGRADED", "perhaps"),
        ("EMBER_PRELOAD", "2"),
        ("EMBER_WARMUP_REQUESTS", "0"),
        ("EMBER_STUCK_S", "-1"),
        ("EMBER_MEMORY_SOFT_LIMIT", "-0.5"),
        ("EMBER_MEMORY_SOFT_LIMIT", "half"),
        ("EMBER_MAX_PIXELS", "0"),
        ("EMBER_MAX_BODY_BYTES", "lots"),
        ("EMBER_BODY_TIMEOUT_S", "-1"),
        ("EMBER_AUDIT", "stderr"),
        ("EMBER_AUDIT", "s3://bucket/audit"),
        ("EMBER_AUDIT_FAIL", "maybe"),
        ("EMBER_AUDIT_SUBJECTS", "face"),
        ("EMBER_AUDIT_SPOOL_BYTES", "1k"),
        ("EMBER_AUDIT_WINDOW_S", "0"),
        ("EMBER_DRAIN_GRACE_S", "soon"),
        ("EMBER_DRAIN_TIMEOUT_S", "inf"),
        ("EMBER_LOG_FORMAT", "xml"),
        ("EMBER_LOG_LEVEL", "loud"),
    ],
)
def test_each_variable_refuses_what_makes_no_sense(name, given):
    with pytest.raises(SettingsError, match=f"{name} is '{re.escape(given)}'; allowed: "):
        load({name: given})


@pytest.mark.parametrize(
    "given", ["redis://", "http://h:1", "redis://h:0", "redis://h:port", "h:1"]
)
def test_an_address_of_redis_that_makes_no_sense_is_refused_without_showing_it(given):
    with pytest.raises(SettingsError, match=r"EMBER_REDIS_URL is \*\*\*; allowed: redis://"):
        load({"EMBER_REDIS_URL": given})


def test_the_port_of_a_kubernetes_service_named_ember_is_no_setting():
    assert load({"EMBER_PORT": "tcp://10.96.0.7:80"}).address.port == 8080
    assert load({"EMBER_PORT": "tcp://10.96.0.7:80", "PORT": "9000"}).address.port == 9000


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"EMBER_BACKENDS": "cpu"}, "add tensorrt or cuda"),
        ({"EMBER_BACKENDS": "cuda,cpu", "EMBER_ALLOW_DEGRADED": "1"}, "contradict each other"),
    ],
)
def test_what_contradicts_a_required_gpu_is_refused(more, problem):
    with pytest.raises(SettingsError, match=problem):
        load({"EMBER_REQUIRE_GPU": "true", **more})


def test_a_required_gpu_does_not_mind_a_cpu_that_will_not_be_used():
    assert load({"EMBER_REQUIRE_GPU": "1", "EMBER_BACKENDS": "cuda,cpu"}).engines.require_gpu


def test_the_environment_is_read_nowhere_else():
    folder = Path(function.__file__).parent
    readers = {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*.py")
        if re.search(r"(?<!`)os\.environ|getenv\(", path.read_text())
    }
    passed_to_load = {
        "cli/audit.py",
        "cli/config.py",
        "cli/demo.py",
        "cli/engines.py",
        "cli/faces.py",
        "cli/forget.py",
        "cli/jobs.py",
        "cli/models.py",
        "cli/prefetch.py",
        "cli/price.py",
        "cli/publishing.py",
        "cli/events.py",
        "cli/swap.py",
        "cli/verify.py",
        "cli/deny.py",
        "cli/consent.py",
        "library.py",
        "process/start.py",
    }
    passed_to_a_process = {"cli/coldstart.py"}
    of_others = {
        "telemetry/logs.py",
        "telemetry/otlp.py",
        "runtime/backends/onnx.py",
        "runtime/gpu/driver.py",
    }
    assert readers == passed_to_load | passed_to_a_process | of_others


def test_every_setting_is_used():
    folders = (Path(package.__file__).parent for package in (function, warmup))
    paths = (path for folder in folders for path in folder.rglob("*.py"))
    code = "".join(path.read_text() for path in paths if "settings" not in path.parts)
    used = set(re.findall(r"(?<=\w)\.(\w+)", code))
    assert [v.field for v in variables(Settings) if v.field not in used] == []


def test_each_variable_is_in_one_group():
    names = [variable.name for variable in variables(Settings)]
    assert len(names) == len(set(names))
