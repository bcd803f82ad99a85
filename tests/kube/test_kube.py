"""The cluster in this process behaves as real ones do, where that matters to us."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from lightkube import ApiError, Client, KubeConfig
from lightkube.generic_resource import create_namespaced_resource
from lightkube.types import PatchType

from tests.kube.knative import MIN_SCALE
from tests.kube.objects import LEASES, REVISIONS, SCALERS, SERVICES, Refused
from tests.kube.server import running
from tests.kube.service import service

AUTOSCALERS = "podautoscalers.autoscaling.internal.knative.dev"
Service = create_namespaced_resource("serving.knative.dev", "v1", "Service", "services")
Revision = create_namespaced_resource("serving.knative.dev", "v1", "Revision", "revisions")


def annotated(**values):
    return {
        "metadata": {"annotations": {f"autoscaling.knative.dev/{k}": v for k, v in values.items()}}
    }


def floor(kube, resource, name="ember-00001"):
    return kube.get(resource, name)["metadata"]["annotations"].get(MIN_SCALE)


def minimum(value):
    return {"metadata": {"annotations": {MIN_SCALE: value}}}


@pytest.fixture
def ember(kube):
    kube.create(SERVICES, "ember", service(min_scale=1, max_scale=8))
    return kube


class TestKnative:
    def test_a_changed_template_makes_a_new_revision(self, ember):
        ember.patch(SERVICES, "ember", {"spec": service(min_scale=5)["spec"]})
        status = ember.get(SERVICES, "ember")["status"]
        assert status["latestReadyRevisionName"] == "ember-00002"
        assert status["traffic"][0]["revisionName"] == "ember-00002"
        assert floor(ember, REVISIONS, "ember-00002") == "5"
        assert floor(ember, REVISIONS, "ember-00001") == "1"

    def test_an_unchanged_template_makes_none(self, ember):
        ember.patch(SERVICES, "ember", {"metadata": {"labels": {"a": "b"}}})
        assert len(ember.list(REVISIONS)) == 1

    def test_a_revision_that_is_not_ready_gets_no_traffic(self, ember):
        ember.knative.starting = True
        ember.patch(SERVICES, "ember", {"spec": service(image="ember:2")["spec"]})
        status = ember.get(SERVICES, "ember")["status"]
        assert status["latestCreatedRevisionName"] == "ember-00002"
        assert status["latestReadyRevisionName"] == "ember-00001"
        assert status["conditions"][0]["status"] == "Unknown"
        ember.knative.become_ready("ember", "ember-00002")
        status = ember.get(SERVICES, "ember")["status"]
        assert status["traffic"][0]["revisionName"] == "ember-00002"
        assert status["conditions"][0]["status"] == "True"

    def test_a_revisions_floor_goes_to_its_autoscaler_and_rolls_nothing(self, ember):
        ember.patch(REVISIONS, "ember-00001", minimum("3"))
        assert floor(ember, AUTOSCALERS) == "3"
        assert ember.knative.rolled == []
        assert len(ember.list(REVISIONS)) == 1

    def test_an_autoscalers_own_floor_does_not_last(self, ember):
        ember.patch(AUTOSCALERS, "ember-00001", minimum("7"))
        assert floor(ember, AUTOSCALERS) == "1"

    def test_before_1_21_it_is_the_other_way_round(self):
        with running("1.20.3") as kube:
            kube.create(SERVICES, "ember", service(min_scale=1))
            kube.patch(AUTOSCALERS, "ember-00001", minimum("7"))
            assert floor(kube, AUTOSCALERS) == "7"
            kube.patch(REVISIONS, "ember-00001", minimum("3"))
            assert kube.knative.rolled == ["ember-00001"]

    def test_a_revision_that_is_named_keeps_the_traffic_whatever_becomes_of_the_template(
        self, ember
    ):
        named = [{"revisionName": "ember-00001", "percent": 100}]
        ember.patch(SERVICES, "ember", {"spec": {"traffic": named}})
        ember.patch(SERVICES, "ember", {"spec": service(image="ember:2", traffic=named)["spec"]})
        status = ember.get(SERVICES, "ember")["status"]
        assert status["latestReadyRevisionName"] == "ember-00002"
        assert [one["revisionName"] for one in status["traffic"]] == ["ember-00001"]

    def test_a_revision_that_the_template_names_needs_another_name_to_change(self, ember):
        given = service(image="ember:2")
        given["spec"]["template"]["metadata"]["name"] = "ember-abcde-2"
        ember.patch(SERVICES, "ember", {"spec": given["spec"]})
        status = ember.get(SERVICES, "ember")["status"]
        assert status["latestReadyRevisionName"] == "ember-abcde-2"
        with pytest.raises(Refused, match="without a name change"):
            ember.patch(SERVICES, "ember", {"spec": service(image="ember:3")["spec"]})

    @pytest.mark.parametrize(("least", "takes_over"), [(0, True), (1, False)])
    def test_with_room_for_one_pod_the_next_takes_over_only_if_it_waits_for_none(
        self, ember, least, takes_over
    ):
        knative = ember.knative
        knative.zero_initial_scale, knative.room, knative.demand = True, 1, 1
        given = service(image="ember:2", initial_scale=0, min_scale=least)
        ember.patch(SERVICES, "ember", {"spec": given["spec"]})
        (served,) = ember.get(SERVICES, "ember")["status"]["traffic"]
        assert served["revisionName"] == ("ember-00002" if takes_over else "ember-00001")
        for _ in range(3):
            knative.pass_a_window()
        found = ember.get(REVISIONS, "ember-00002")["status"]
        assert found["actualReplicas"] == int(takes_over)
        reasons = [one.get("reason") for one in found["conditions"]]
        assert reasons == [None if takes_over else "Unschedulable"]

    @pytest.mark.parametrize("name", ["ember-00002", "ember-00009"])
    def test_traffic_for_a_revision_that_is_not_ready_or_not_there_does_not_move(self, ember, name):
        ember.knative.starting = True
        named = [{"revisionName": name, "percent": 100}]
        ember.patch(SERVICES, "ember", {"spec": service(image="ember:2", traffic=named)["spec"]})
        status = ember.get(SERVICES, "ember")["status"]
        assert [one["revisionName"] for one in status["traffic"]] == ["ember-00001"]
        assert status["conditions"][2]["reason"] == "RevisionMissing"

    @pytest.mark.parametrize(
        ("scaling", "replicas"),
        [
            ({}, 1),
            ({"initial_scale": 3}, 3),
            ({"min_scale": 2}, 2),
            ({"min_scale": 4, "initial_scale": 3, "max_scale": 8}, 4),
        ],
    )
    def test_a_revision_starts_with_its_initial_scale_or_its_floor(self, kube, scaling, replicas):
        kube.create(SERVICES, "ember", service(**scaling))
        assert kube.get(REVISIONS, "ember-00001")["status"]["actualReplicas"] == replicas

    def test_one_that_has_to_start_with_more_than_it_may_have_is_never_ready(self, kube):
        kube.create(SERVICES, "ember", service(initial_scale=3, max_scale=2))
        assert "latestReadyRevisionName" not in kube.get(SERVICES, "ember")["status"]

    def test_no_replica_at_the_start_is_for_clusters_that_allow_it(self, kube):
        with pytest.raises(Refused, match="initial-scale=0 not allowed by cluster"):
            kube.create(SERVICES, "ember", service(initial_scale=0))
        kube.knative.zero_initial_scale = True
        kube.create(SERVICES, "ember", service(initial_scale=0))
        assert kube.get(REVISIONS, "ember-00001")["status"]["actualReplicas"] == 0

    def test_after_the_start_only_floor_and_traffic_keep_replicas(self, kube):
        kube.create(SERVICES, "ember", service(initial_scale=5, min_scale=1))
        replicas = lambda: kube.get(REVISIONS, "ember-00001")["status"]["actualReplicas"]  # noqa: E731
        kube.patch(REVISIONS, "ember-00001", minimum("2"))
        kube.knative.demand = 3
        kube.knative.pass_a_window()
        assert replicas() == 3
        kube.knative.demand = 0
        kube.knative.pass_a_window()
        assert replicas() == 2
        kube.patch(REVISIONS, "ember-00001", minimum("4"))
        assert replicas() == 4

    @pytest.mark.parametrize(
        "given",
        [
            {"annotations": {"ember.dev/floor-reason": "window"}},
            {"annotations": {"ember.dev/hold": "true"}},
            {"annotations": {"serving.knative.dev/creator": "somebody"}},
            {"labels": {"team": "faces"}},
        ],
    )
    def test_what_else_a_revision_is_annotated_with_replaces_its_pods(self, ember, given):
        ember.patch(REVISIONS, "ember-00001", {"metadata": given})
        assert ember.knative.rolled == ["ember-00001"]
        ember.patch(REVISIONS, "ember-00001", {"metadata": given})
        assert ember.knative.rolled == ["ember-00001"], "nothing has changed"

    @pytest.mark.parametrize(
        "given",
        [
            {"annotations": {"autoscaling.knative.dev/max-scale": "9"}},
            {"annotations": {"serving.knative.dev/routes": "ember"}},
            {"annotations": {"serving.knative.dev/no-gc": "true"}},
            {"labels": {"serving.knative.dev/routingState": "reserve"}},
        ],
    )
    def test_what_knative_keeps_for_itself_replaces_none(self, ember, given):
        ember.patch(REVISIONS, "ember-00001", {"metadata": given})
        assert ember.knative.rolled == []

    def test_traffic_moves_to_as_many_pods_as_a_revision_starts_with(self, ember):
        ember.patch(REVISIONS, "ember-00001", minimum("4"))
        assert ember.get(REVISIONS, "ember-00001")["status"]["actualReplicas"] == 4
        ember.patch(SERVICES, "ember", {"spec": service(image="ember:2", min_scale=1)["spec"]})
        more = service(image="ember:3", min_scale=1, initial_scale=3)
        ember.patch(SERVICES, "ember", {"spec": more["spec"]})
        moved = [("ember-00001", 1), ("ember-00002", 1), ("ember-00003", 3)]
        assert ember.knative.moved == moved

    def test_a_floor_that_comes_while_a_revision_starts_is_waited_for(self, ember):
        ember.knative.starting = True
        ember.patch(SERVICES, "ember", {"spec": service(image="ember:2", min_scale=1)["spec"]})
        ember.patch(REVISIONS, "ember-00002", minimum("4"))
        ember.knative.start("ember", "ember-00002", 3)
        assert ember.knative.moved == [("ember-00001", 1)]
        ember.knative.start("ember", "ember-00002", 4)
        assert ember.knative.moved == [("ember-00001", 1), ("ember-00002", 4)]

    @pytest.mark.parametrize(
        ("resource", "name", "patch", "told"),
        [
            (REVISIONS, "ember-00001", minimum("abc"), "invalid value: abc"),
            (REVISIONS, "ember-00001", minimum("-1"), "invalid value: -1"),
            (REVISIONS, "ember-00001", minimum("9"), "max-scale=8 is less than min-scale=9"),
            (REVISIONS, "ember-00001", {"spec": {"timeoutSeconds": 9}}, "Immutable fields changed"),
            (SERVICES, "ember", minimum("3"), "must be put under spec.template"),
            (SERVICES, "ember", {"spec": service(min_scale="x")["spec"]}, "invalid value: x"),
            (SERVICES, "ember", {"spec": {"traffic": [{"percent": 90}]}}, "sum to 90, want 100"),
        ],
    )
    def test_what_the_webhook_does_not_like_is_refused(self, ember, resource, name, patch, told):
        before = ember.get(resource, name)
        with pytest.raises(Refused, match="denied the request: validation failed") as refused:
            ember.patch(resource, name, patch)
        assert told in str(refused.value)
        assert ember.get(resource, name) == before

    def test_traffic_is_split_and_tagged_as_asked(self, ember):
        split = [
            {"revisionName": "ember-00001", "percent": 90},
            {"latestRevision": True, "percent": 10, "tag": "canary"},
        ]
        ember.patch(SERVICES, "ember", {"spec": service(image="ember:2", traffic=split)["spec"]})
        traffic = ember.get(SERVICES, "ember")["status"]["traffic"]
        assert [(each["revisionName"], each["percent"]) for each in traffic] == [
            ("ember-00001", 90),
            ("ember-00002", 10),
        ]


class TestObjects:
    def test_what_was_changed_meanwhile_is_a_conflict(self, ember):
        version = ember.get(REVISIONS, "ember-00001")["metadata"]["resourceVersion"]
        patch = {"metadata": {"resourceVersion": version, "labels": {"a": "b"}}}
        ember.patch(REVISIONS, "ember-00001", patch)
        with pytest.raises(Refused, match="the object has been modified") as refused:
            ember.patch(REVISIONS, "ember-00001", patch)
        assert refused.value.reason == "Conflict"

    def test_a_rehearsal_changes_nothing_but_is_refused_like_the_real_thing(self, ember):
        key = next(key for key in ember.objects.kept if key.resource == "revisions")
        ember.objects.patch(key, minimum("3"), dry=True)
        assert floor(ember, REVISIONS) == "1"
        with pytest.raises(Refused):
            ember.objects.patch(key, minimum("9"), dry=True)

    def test_only_controllers_change_a_status(self, ember):
        ember.patch(SERVICES, "ember", {"status": {"latestReadyRevisionName": "mine"}})
        assert ember.get(SERVICES, "ember")["status"]["latestReadyRevisionName"] == "ember-00001"

    def test_a_name_is_made_up_where_one_is_asked_for(self, kube):
        event = {"metadata": {"generateName": "ember."}, "type": "Normal"}
        names = {kube.create("events", "", event)["metadata"]["name"] for _ in range(3)}
        assert len(names) == 3
        assert all(name.startswith("ember.") for name in names)
        with pytest.raises(Refused, match="name or generateName is required"):
            kube.create("events", "", {"type": "Normal"})

    @pytest.mark.parametrize(
        ("resource", "thing", "told"),
        [
            (SCALERS, {"spec": {"minReplicas": 0, "maxReplicas": 2}}, "greater than or equal to 1"),
            (SCALERS, {"spec": {"minReplicas": 3, "maxReplicas": 2}}, "equal to minReplicas"),
            (LEASES, {"spec": {"leaseDurationSeconds": 0}}, "greater than 0"),
            (LEASES, {"spec": {"renewTime": "2026-11-30T12:00:00Z"}}, "000000Z"),
            ("events", {"type": "Odd"}, "Normal or Warning"),
            (
                "events",
                {"type": "Normal", "involvedObject": {"namespace": "other"}},
                "does not match",
            ),
        ],
    )
    def test_what_has_a_wrong_form_is_refused(self, kube, resource, thing, told):
        with pytest.raises(Refused, match=told):
            kube.create(resource, "x", thing)


class TestManagers:
    def managers(self, thing):
        """Who owns what, in words."""
        return {
            one["manager"]: sorted(
                name.removeprefix("f:")
                for part in (
                    one["fieldsV1"].get("f:spec", {}),
                    one["fieldsV1"].get("f:metadata", {}).get("f:annotations", {}),
                )
                for name in part
            )
            for one in thing["metadata"]["managedFields"]
        }

    def test_a_field_is_whose_who_has_changed_it_last(self, ember):
        with ember.objects.changed_by("kubectl-annotate"):
            ember.patch(REVISIONS, "ember-00001", minimum("3"))
        found = self.managers(ember.get(REVISIONS, "ember-00001"))
        assert found["kubectl-annotate"] == [MIN_SCALE]
        assert MIN_SCALE not in found["controller"]
        assert "containers" in found["controller"]
        with ember.objects.changed_by("other"):
            ember.patch(REVISIONS, "ember-00001", minimum("3"))
        assert self.managers(ember.get(REVISIONS, "ember-00001")) == found, "nothing has changed"

    def test_a_client_is_known_by_its_name(self, ember, tmp_path):
        with Client(KubeConfig.from_file(ember.config(tmp_path))) as client:
            client.patch(Revision, "ember-00001", minimum("2"), patch_type=PatchType.MERGE)
        found = self.managers(ember.get(REVISIONS, "ember-00001"))
        assert [name for name, owned in found.items() if MIN_SCALE in owned] != ["controller"]


class TestHttp:
    @pytest.fixture
    def client(self, ember, tmp_path):
        with ExitStack() as clients:
            yield lambda token="admin": clients.enter_context(
                Client(KubeConfig.from_file(ember.config(tmp_path, token)))
            )

    def test_a_client_of_kubernetes_gets_along_with_it(self, client):
        client = client()
        assert [each.metadata.name for each in client.list(Revision)] == ["ember-00001"]
        patched = client.patch(Revision, "ember-00001", minimum("2"), patch_type=PatchType.MERGE)
        assert patched["metadata"]["annotations"][MIN_SCALE] == "2"
        client.delete(Revision, "ember-00001")
        with pytest.raises(ApiError, match="not found") as error:
            client.get(Revision, "ember-00001")
        assert error.value.status.code == 404

    def test_a_token_may_do_what_its_role_allows(self, ember, client):
        ember.roles["pod"] = [
            {
                "apiGroups": ["serving.knative.dev"],
                "resources": ["revisions"],
                "verbs": ["get", "patch"],
                "resourceNames": ["ember-00001"],
            }
        ]
        pod, nobody = client("pod"), client("nobody")
        assert pod.get(Revision, "ember-00001")
        for refused in (
            lambda: pod.delete(Revision, "ember-00001"),
            lambda: pod.get(Revision, "ember-00002"),
            lambda: list(pod.list(Revision)),
            lambda: nobody.get(Revision, "ember-00001"),
        ):
            with pytest.raises(ApiError, match="is forbidden: User"):
                refused()

    def test_what_became_of_a_change_is_told_late_and_in_pieces(self, ember, client):
        ember.knative.late = 2
        changed = {"spec": service(image="ember:2")["spec"]}
        client().patch(Service, "ember", changed, patch_type=PatchType.MERGE)
        told = []
        for _ in range(3):
            found = client().get(Service, "ember")
            told.append(
                (
                    found["status"]["observedGeneration"] == found["metadata"]["generation"],
                    found["status"]["latestCreatedRevisionName"],
                    found["status"]["conditions"][0].get("reason"),
                )
            )
        assert told == [
            (False, "ember-00001", None),
            (True, "ember-00001", "OutOfDate"),
            (True, "ember-00002", None),
        ]

    def test_another_kind_of_patch_is_refused(self, client):
        with pytest.raises(ApiError, match="is supported"):
            client().patch(Revision, "ember-00001", minimum("2"), patch_type=PatchType.STRATEGIC)
