"""Which fields a Knative Service has, and what each may be.

A field is known where the schema of Knative's CustomResourceDefinition or a mask of its
fieldmask.go has it. Ranges and forms are those of its k8s_validation.go and route_validation.go
and, where Knative leaves them to the pod, those of Kubernetes' pkg/apis/core/validation; the
latter's function is then named behind them. What depends on more than one field is in `pod.py`.
"""

from keepalive.doctor.fields.service import METADATA, SERVICE

__all__ = ["METADATA", "SERVICE"]
