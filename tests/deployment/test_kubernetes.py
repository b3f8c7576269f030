"""The Kubernetes manifests."""

from pathlib import Path

import pytest

from ingestion.platform_config import read_platform
from schemas.settings import PREFIX, read_settings
from tests.deployment.deployment_files import (
    CONTAINERS,
    KUBERNETES,
    KUSTOMIZATION,
    MANIFESTS,
    PODS,
    dockerfile,
    image_environment,
    load,
)


def test_every_manifest_exists_and_is_applied() -> None:
    assert sorted(KUSTOMIZATION["resources"]) == sorted(MANIFESTS)
    for generated in KUSTOMIZATION["configMapGenerator"]:
        for file in generated.get("files", []) + generated.get("envs", []):
            assert (KUBERNETES / file).is_file()
    assert not any("namespace" in manifest["metadata"] for manifest in MANIFESTS.values())


@pytest.mark.parametrize("name", PODS)
def test_pod_runs_without_privileges(name: str) -> None:
    spec = PODS[name]["spec"]
    user = int(dockerfile("USER")[-1].partition(":")[0])
    context = spec["securityContext"]
    assert context["runAsNonRoot"] is True
    assert context["runAsUser"] == user
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    assert spec["automountServiceAccountToken"] is False
    assert spec["enableServiceLinks"] is False


@pytest.mark.parametrize("name", CONTAINERS)
def test_container_has_resource_limits(name: str) -> None:
    container = CONTAINERS[name]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["resources"]["limits"]["memory"]
    assert container["resources"]["requests"]["cpu"]
    assert container["image"] in {image["name"] for image in KUSTOMIZATION["images"]}


@pytest.mark.parametrize("name", CONTAINERS)
def test_container_references_exist(name: str) -> None:
    spec = PODS[name.partition(":")[0]]["spec"]
    generated = {g["name"] for g in KUSTOMIZATION["configMapGenerator"]}
    secret = load(KUBERNETES / "secret.example.yaml")
    claims = {
        m["metadata"]["name"] for m in MANIFESTS.values() if m["kind"] == "PersistentVolumeClaim"
    }
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    mounted = {mount["mountPath"]: mount for mount in CONTAINERS[name]["volumeMounts"]}
    for mount in mounted.values():
        volume = volumes[mount["name"]]
        assert volume.get("configMap", {}).get("name", next(iter(generated))) in generated
        assert (
            volume.get("persistentVolumeClaim", {}).get("claimName", next(iter(claims))) in claims
        )
        assert ("emptyDir" in volume) != mount.get("readOnly", False)
    assert image_environment()["TMPDIR"] in mounted
    references = {next(iter(r.values()))["name"] for r in CONTAINERS[name]["envFrom"]}
    assert references <= generated | {secret["metadata"]["name"]}
    if "command" not in CONTAINERS[name]:
        settings = dict(line.split("=", 1) for line in lines_of(KUBERNETES / "settings.env"))
        assert str(Path(settings["APIDESK_PLATFORM"]).parent) in mounted
        assert str(Path(settings["APIDESK_SPOOL"]).parent) in mounted


def lines_of(path: Path) -> list[str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def test_api_has_probes(paths: set[str]) -> None:
    (api,) = PODS["deployment.yaml"]["spec"]["containers"]
    probed = {p: api[p]["httpGet"] for p in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert {probe: get["path"] for probe, get in probed.items()} == {
        "startupProbe": "/health/live",
        "livenessProbe": "/health/live",
        "readinessProbe": "/health/ready",
    }
    assert {get["path"] for get in probed.values()} <= paths
    ports = {port["name"]: port["containerPort"] for port in api["ports"]}
    assert {get["port"] for get in probed.values()} <= set(ports)
    assert [str(port) for port in ports.values()] == dockerfile("EXPOSE")
    targets = [port["targetPort"] for port in MANIFESTS["service.yaml"]["spec"]["ports"]]
    targets += [p["port"] for p in MANIFESTS["network-policy.yaml"]["spec"]["ingress"][0]["ports"]]
    assert set(targets) <= set(ports)


def test_selectors_match_the_api() -> None:
    labels = PODS["deployment.yaml"]["metadata"]["labels"]
    api = MANIFESTS["deployment.yaml"]
    selectors = [
        api["spec"]["selector"]["matchLabels"],
        PODS["deployment.yaml"]["spec"]["topologySpreadConstraints"][0]["labelSelector"][
            "matchLabels"
        ],
        MANIFESTS["service.yaml"]["spec"]["selector"],
        MANIFESTS["pod-disruption-budget.yaml"]["spec"]["selector"]["matchLabels"],
        MANIFESTS["network-policy.yaml"]["spec"]["podSelector"]["matchLabels"],
    ]
    assert all(selector == labels for selector in selectors)
    assert PODS["ingest.yaml"]["metadata"]["labels"] != labels
    scaler = MANIFESTS["horizontal-pod-autoscaler.yaml"]["spec"]
    assert scaler["scaleTargetRef"]["name"] == api["metadata"]["name"]
    assert "replicas" not in api["spec"], "two would say how many there are"
    budget = MANIFESTS["pod-disruption-budget.yaml"]["spec"]["minAvailable"]
    assert budget < scaler["minReplicas"] <= scaler["maxReplicas"]


def test_ingestion_runs_do_not_overlap() -> None:
    spec = MANIFESTS["ingest.yaml"]["spec"]
    assert spec["concurrencyPolicy"] == "Forbid"
    assert spec["jobTemplate"]["spec"]["activeDeadlineSeconds"]
    rule = spec["jobTemplate"]["spec"]["podFailurePolicy"]["rules"][0]["onExitCodes"]
    assert rule["containerName"] in {c["name"] for c in PODS["ingest.yaml"]["spec"]["containers"]}
    assert PODS["deployment.yaml"]["spec"]["initContainers"], "pods that would index wait"


def test_example_secret_has_no_values() -> None:
    secret = load(KUBERNETES / "secret.example.yaml")
    assert set(secret["stringData"].values()) == {""}
    assert "secret.example.yaml" not in KUSTOMIZATION["resources"]
    assert not (KUBERNETES / "secret.yaml").exists()


def test_config_maps_are_valid() -> None:
    given = dict(line.split("=", 1) for line in lines_of(KUBERNETES / "settings.env"))
    settings = read_settings(**{n.removeprefix(PREFIX).lower(): v for n, v in given.items()})
    assert not settings.embedded
    (file,) = KUSTOMIZATION["configMapGenerator"][1]["files"]
    assert settings.platform.name == file
    platform = read_platform(KUBERNETES / file)
    folders = [source.path for source in platform.sources if source.path]
    mounted = [m["mountPath"] for m in CONTAINERS["ingest.yaml:ingest"]["volumeMounts"]]
    assert all(any(str(folder).startswith(path) for path in mounted) for folder in folders)
