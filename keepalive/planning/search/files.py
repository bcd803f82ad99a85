"""What is deployed of a plan: a kustomize component, and a schedule for the pre-scaler."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from keepalive.planning.search.choice import PlanChoice
    from keepalive.planning.simulation.service import BatchTimes
    from keepalive.prescaler.schedule import Schedule

_COMPONENT = """\
# Written by `ember plan`: name this folder under `components:` of an overlay, and give its
# schedule.toml to the pre-scaler. It changes the template, so applying it makes a new Revision.
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
patches:
  - target:
      group: serving.knative.dev
      kind: Service
      name: {name}
    patch: |-
      apiVersion: serving.knative.dev/v1
      kind: Service
      metadata:
        name: {name}
      spec:
        template:
          metadata:
            annotations:
{annotations}
          spec:
            containerConcurrency: {concurrency}
"""


def component(choice: PlanChoice, service: BatchTimes, name: str) -> str:
    """`kustomization.yaml` of a component that sets what was chosen."""
    annotations = "\n".join(
        f'              autoscaling.knative.dev/{key}: "{value}"'
        for key, value in annotated(choice, service).items()
    )
    return _COMPONENT.format(name=name, annotations=annotations, concurrency=2 * choice.batch)


def annotated(choice: PlanChoice, service: BatchTimes) -> dict[str, str]:
    """The autoscaling annotations, without their prefix; those at their defaults are there, too."""
    settings = choice.settings(service)
    found = {
        "metric": str(settings.metric),
        "target": f"{settings.target:g}",
        "target-utilization-percentage": "100",
        "window": f"{settings.stable_window_s}s",
        "min-scale": str(settings.min_scale),
        "max-scale": str(settings.max_scale),
        "initial-scale": str(settings.initial_scale),
        "scale-down-delay": f"{settings.scale_down_delay_s}s",
        "target-burst-capacity": "-1",
    }
    if settings.activation_scale:
        found["activation-scale"] = str(settings.activation_scale)
    return found


def toml(schedule: Schedule) -> str:
    """`schedule.toml`, as the pre-scaler reads it."""
    lines = [
        "# Written by `ember plan`.",
        f'timezone = "{schedule.timezone.key}"',
        f"lead_minutes = {schedule.lead.total_seconds() / 60:g}",
        f"floor = {schedule.floor}",
        f"max_floor = {schedule.max_floor}",
        f"gpu_hours_per_day = {schedule.gpu_hours_per_day:g}",
    ]
    for window in schedule.windows:
        lines += [
            "",
            "[[window]]",
            f'start = "{window.start}"',
            f"hours = {window.length.total_seconds() / 3600:g}",
            f"floor = {window.floor}",
        ]
    return "\n".join(lines) + "\n"
