# The habits of this project, one command each. CI calls the same (.ci/run).
GO ?= go
# The race detector needs a C compiler; without one the tests run all the same.
RACE ?= $(shell command -v $$($(GO) env CC) >/dev/null 2>&1 && echo -race)

.PHONY: build test short lint bench cross clean

build:
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/pbuild .

test:
	$(GO) test $(RACE) -timeout 40m ./...

# What a change is checked with while it is being written.
short:
	$(GO) test -short ./...

lint:
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$unformatted" ]; then echo "not formatted: $$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(GO) tool staticcheck ./...

# Against ninja and make, in one run, and then the small benchmarks of single parts. Under ten minutes on an idle machine.
bench:
	$(GO) run ./benchmarks
	$(GO) test -run '^$$' -bench . -benchmem -benchtime 100ms ./...

# Linux whole; macOS without host isolation; Windows plans and reads.
cross:
	CGO_ENABLED=0 GOOS=darwin GOARCH=arm64 $(GO) build -o /dev/null .
	CGO_ENABLED=0 GOOS=windows GOARCH=amd64 $(GO) build -o /dev/null .

clean:
	rm -rf bin
