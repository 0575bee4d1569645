# Kennel. `make help` lists what there is; CI runs these targets and nothing else.
.DEFAULT_GOAL := help
SHELL := /bin/bash

export PATH := $(PATH):/usr/local/go/bin:$(HOME)/go/bin

# Everything without cgo but the race detector: each further way to build compiles all dependencies once more, minutes on a fresh machine.
export CGO_ENABLED := 0
# Without the checkout's path in them, packages that were compiled in one checkout need not be compiled in the next, nor in the folder where a test
# builds the previous release.
# grpcnotrace: the pages of golang.org/x/net/trace let the linker keep every method; agentd is a seventh smaller without, in a robot's memory too.
export GOFLAGS := -trimpath -tags=grpcnotrace $(GOFLAGS)

ROBOTS  ?= 5
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
LDFLAGS := -s -w -X kennel/infra/cli/version.version=$(VERSION)
FUZZTIME ?= 10s

# What a robot runs: built and tested for its processor too.
ROBOT_PKGS := ./edge/... ./infra/thing/... ./certs/devicecert/... ./infra/api/...
# The programs of a robot.
ROBOT_CMDS := agentd robotd mindd
# The programs that people install.
DIST_CMDS := kenneld kennelctl s3d agentd robotd mindd robotsim robotkit
# The programs that the tests of the whole run.
E2E_CMDS := kenneld kennelctl agentd robotd mindd robotsim robotkit s3d

.PHONY: help
help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run
run: setup-run build ## everything on this machine, with simulated robots (ROBOTS=5 or vector:3,amigobot:2; DATA=dir, DEMO=1 for a fleet with a past, ARGS=more flags)
	@exec bin/kenneld onebox -robots $(ROBOTS) $(if $(DEMO),-demo) $(if $(DATA),-data $(DATA)) $(ARGS)

# The houses of the tests, each with a database, are in memory if there is enough. What the compiler writes, and t.TempDir, stays where it was.
IN_MEMORY = KENNEL_BIN=$(CURDIR)/bin/test GOTMPDIR=$${TMPDIR:-/tmp} TMPDIR=$$(infra/tmpdir.sh)

.PHONY: cluster
cluster: setup-cluster build ## an installation of several machines on this one: three brokers, three kenneld, two Postgres, light robots (ROBOTS=200, DATA=dir)
	go build -ldflags='-s -w' -o bin/ github.com/nats-io/nats-server/v2
	@exec bin/kenneld cluster -data $(or $(DATA),$(CURDIR)/bin/cluster) -robots $(if $(filter file,$(origin ROBOTS)),200,$(ROBOTS))

.PHONY: cluster-test
cluster-test: setup-test setup-cluster test-programs ## processes killed (also with 2,000 robots) and a rolling upgrade behind three brokers, and a change of the primary: about 15 minutes
	KENNEL_CLUSTER=1 $(IN_MEMORY) $(GO_TEST) -v -count=1 -timeout 30m -run '^Test(ChaosBehindNATS|ChaosOfACrowd|RollingUpgradeBehindNATS|PrimaryChanges)$$' ./cmd/e2e/storms

.PHONY: test
ifdef PKG
test: setup-test $(if $(findstring cmd/e2e/,$(PKG)),test-programs)
	$(if $(findstring cmd/e2e/,$(PKG)),$(IN_MEMORY)) go test -ldflags='-s -w' -timeout 60m $(PKG)
else
test: ## everything that CI needs; PKG=./jdocs/... for one slice, PKG=./cmd/e2e/storms for one group of the house
	@$(MAKE) --no-print-directory -j2 setup-test vet tidy-check
	@$(MAKE) --no-print-directory test-programs
	@$(IN_MEMORY) $(MAKE) --no-print-directory test-rhythm
	@$(IN_MEMORY) $(MAKE) --no-print-directory -j3 test-packages test-pages test-house test-lives test-storms test-robots # the longest first
endif

.PHONY: test-programs
test-programs: # those that the folders of cmd/e2e run, once for all
	@mkdir -p bin/test
	@set -o pipefail; go build -v -ldflags='-s -w' -o bin/test/ $(E2E_CMDS:%=./cmd/%) 2>&1 | awk -f infra/progress.awk

# go test of what vet has looked at. Symbols for debuggers are a third of the linker's time.
GO_TEST := go test -vet=off -ldflags='-s -w'

# Where much runs at once and little is imported: the race detector wants every import compiled once more. make race takes all.
RACE := /(infra/atomicfile|edge/(core/(corelink|coreserver|coreclient|sharedmem)|agent/(das|docs/docstest|commands|host|teleop(/simulator)?)|body/vector/imu))(/|$$)
# What keeps time on a real clock runs with nothing beside it.
RHYTHM := /edge/(core/rt|app/robotapp)(/|$$)

.PHONY: test-robots
test-robots: test-race
	@$(MAKE) --no-print-directory arm

.PHONY: test-race
test-race: ## the tests of what runs much at once, with the race detector
	CGO_ENABLED=1 $(GO_TEST) -race -timeout 60m $$(go list ./... | grep -E '$(RACE)')

.PHONY: test-rhythm
test-rhythm: ## the robot's loop, alone on the machine
	CGO_ENABLED=1 $(GO_TEST) -race -timeout 20m -p 1 -parallel 3 $$(go list ./... | grep -E '$(RHYTHM)')
	$(GO_TEST) -count=1 -timeout 20m ./cmd/e2e/rhythm

# go test of groups of the house, one after the other: -p 1 keeps the load that a group puts on the machine the same, however many folders it has.
GROUP_TEST := $(GO_TEST) -count=1 -timeout 60m -p 1

# It waits more than it works, so others run beside it.
.PHONY: test-storms
test-storms: ## the house of processes under kills, outages and bad weather
	$(GROUP_TEST) ./cmd/e2e/storms

.PHONY: test-pages
test-pages: ## every route by every role, and the pages in a browser
	$(GROUP_TEST) ./cmd/e2e/pages

.PHONY: test-lives
test-lives: ## whole stories of robots and owners, among them every way of an update
	$(GROUP_TEST) ./cmd/e2e/lives

.PHONY: test-house
test-house: ## every way to start the house, who robots and people are to it, voices, and hostile input
	$(GROUP_TEST) ./cmd/e2e/deploy ./cmd/e2e/identity ./cmd/e2e/voice ./cmd/e2e/hostile

# Two at a time, beside the groups of the house.
.PHONY: test-packages
test-packages: ## all other packages
	$(GO_TEST) -count=1 -timeout 60m -p 2 $$(go list ./... | grep -vE '/cmd/e2e(/|$$)|$(RHYTHM)|$(RACE)')

.PHONY: race
race: ## everything but the processes with the race detector
	CGO_ENABLED=1 $(GO_TEST) -race -timeout 20m $$(go list ./... | grep -v /cmd/)

# go test of the robot's packages for its processor, under the emulator.
ARM_TEST := GOOS=linux GOARCH=arm GOARM=7 KENNEL_TEST_EXEC=qemu-arm-static $(GO_TEST) -count=1 -short -timeout 15m -exec qemu-arm-static

.PHONY: test-arm
test-arm: setup-arm ## all of the robot's packages under an emulated ARM v7
	@$(ARM_TEST) -p 1 $(ROBOT_PKGS)

# In make test only what counts, codes and moves: the rest has the same numbers everywhere, and an emulated processor is a slow one.
.PHONY: arm
arm:
	@$(ARM_TEST) ./edge/core/control ./edge/motion ./edge/power ./edge/robot/... ./edge/sense ./edge/body/vector/spine ./edge/body/vector/imu
	@$(ARM_TEST) -run 'Replayed|EveryProcessor' ./edge/body/vector/vectorsim ./edge/sim/plane ./edge/body/amigobot/amigobotsim

.PHONY: soak
soak: setup-test build ## lint, and the same tests in full, about 3 hours: long seeds, many kills, every package under the race detector and on ARM
	@$(MAKE) --no-print-directory soak-house
	@$(MAKE) --no-print-directory soak-packages
	@$(MAKE) --no-print-directory lint race test-arm

.PHONY: soak-house
soak-house: setup-test setup-cluster test-programs ## of soak, the house of processes: about 90 minutes
	KENNEL_SOAK=1 KENNEL_BIN=$(CURDIR)/bin/test $(GO_TEST) -v -count=1 -timeout 150m -p 1 ./cmd/...

.PHONY: soak-packages
soak-packages: setup-test setup-spoken ## of soak, all other packages: about an hour
	KENNEL_SOAK=1 $(GO_TEST) -count=1 -timeout 75m $$(go list ./... | grep -v /cmd/)

.PHONY: spoken
spoken: setup-test setup-spoken ## synthetic voices say every phrase and wishes in people's own words; the results go into speech/recognizer/SPOKEN.md and OWNWORDS.md
	go test -count=1 -timeout 120m -run '^Test(Spoken|OwnWords)$$' ./speech/recognizer/spoken -update

.PHONY: spokenback
spokenback: setup-test ## a hundred sentences in the robot's voice, plain and in character, written down by the local recogniser: the share of wrong words (SYNTH=espeak-ng, CHARACTER=tin)
	go test -count=1 -v -timeout 60m -run '^TestSpokenBack$$' ./edge/sound/voice/spokenback -all -character $(or $(CHARACTER),vector) -synth $(or $(SYNTH),flite)

.PHONY: build
# The compiler and machine of Pawn for browsers. kenneld embeds them; without them its playground says that they are missing.
.PHONY: playground
PLAYGROUND := cloud/web/playground/built
playground:
	@GOOS=js GOARCH=wasm go build -ldflags='-s -w' -o bin/playground.wasm ./cmd/playground
	@gzip -9nc bin/playground.wasm > $(PLAYGROUND)/playground.wasm.new
	@cmp -s $(PLAYGROUND)/playground.wasm.new $(PLAYGROUND)/playground.wasm.gz && rm $(PLAYGROUND)/playground.wasm.new || mv $(PLAYGROUND)/playground.wasm.new $(PLAYGROUND)/playground.wasm.gz
	@cmp -s "$$(go env GOROOT)/lib/wasm/wasm_exec.js" $(PLAYGROUND)/wasm_exec.js || cp "$$(go env GOROOT)/lib/wasm/wasm_exec.js" $(PLAYGROUND)/wasm_exec.js

build: playground ## the programs, into bin/
	@mkdir -p bin
	@set -o pipefail; go build -v -ldflags '$(LDFLAGS)' -o bin/ ./cmd/... 2>&1 | awk -f infra/progress.awk

.PHONY: build-arm
build-arm: ## the robot's programs for ARM v7, into bin/arm/
	@mkdir -p bin/arm
	GOOS=linux GOARCH=arm GOARM=7 go build -ldflags '$(LDFLAGS)' -o bin/arm/ $(ROBOT_CMDS:%=./cmd/%)

.PHONY: dist
dist: setup-dist ## archives of the programs for three processors, with checksums and bills of materials, and the Python package, into dist/
	@infra/dist.sh '$(VERSION)' '$(LDFLAGS)' $(DIST_CMDS)

.PHONY: vet
vet: ## gofmt and go vet
	@bad=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$bad" ]; then echo "gofmt would change:"; echo "$$bad"; exit 1; fi
	go vet ./...

.PHONY: lint
lint: vet tidy-check ## go vet, staticcheck, and go.mod
	go tool staticcheck ./...

.PHONY: arch
arch: ## imports point one way
	go test -count=1 ./infra/arch

.PHONY: screens
screens: setup-test ## the pictures of README.md and docs/, and of every page, light and dark, desktop and phone, into bin/screens
	@mkdir -p bin/screens
	KENNEL_SCREENS=$(CURDIR)/bin/screens go test -count=1 -timeout 60m ./cmd/e2e/pages

.PHONY: fuzz
fuzz: ## each fuzz target for FUZZTIME (10s)
	@set -e; for f in $$(git grep -l '^func Fuzz' -- '*_test.go'); do for t in $$(grep -oE '^func Fuzz[A-Za-z0-9_]+' $$f | cut -c6-); do \
		echo "$$t in $$(dirname $$f)"; go test -run='^$$' -fuzz="^$$t\$$" -fuzztime=$(FUZZTIME) -fuzzminimizetime=1s ./$$(dirname $$f); done; done

.PHONY: bench
bench: setup-bench ## each number beside a reference of the same run, packages and whole system (ARGS=more flags; BENCHMARKS.md)
	go run -ldflags '$(LDFLAGS)' ./cmd/bench -o table $(ARGS)

.PHONY: bench-micro
bench-micro: setup-test ## the other benchmarks of the packages, without references
	go test -run='^$$' -bench=. -skip=Beside -benchtime=1s $$(go list ./... | grep -v /cmd/e2e)

.PHONY: rollouts
rollouts: ## the simulation of 10,000 harmless rollouts and 1,600 harmful ones; prints the table of docs/rollouts.md
	KENNEL_SOAK=1 go test -count=1 -timeout 60m -v -run '^TestSimulation$$' ./cloud/updates/rollout

.PHONY: texts
texts: ## every text that people see, with its place (ARGS="-kind page -sample 60 -seed 7")
	@go run ./cmd/texts $(ARGS)

.PHONY: generate
generate: ## what is made of other files: the lists of species, the description of the public API, the client made of it, and the pages of settings and commands
	go run ./cmd/bodygen
	go run ./cmd/apigen
	go run ./cmd/docs

.PHONY: tidy-check
tidy-check: ## go.mod says what the code needs
	go mod tidy -diff

.PHONY: clean
clean: ## remove what was built
	rm -rf bin

.PHONY: setup-run setup-test setup-spoken setup-arm setup-dist setup-bench setup-cluster
setup-cluster: ## packages that make cluster needs
	@infra/setup.sh cluster
setup-run: ## packages that make run needs
	@infra/setup.sh run
setup-test:
	@infra/setup.sh test
setup-spoken:
	@infra/setup.sh spoken
setup-arm:
	@infra/setup.sh arm
setup-dist:
	@infra/setup.sh dist
setup-bench:
	@infra/setup.sh bench
