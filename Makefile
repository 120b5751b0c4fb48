# The two commands of the README do all set-up themselves.

.PHONY: demo test fuzz bench build

# build puts the binary into bin/.
build:
	go build -o bin/mcpflood ./cmd/mcpflood

# demo: two servers side by side, one good, one leaky.
demo: build
	./bin/mcpflood demo

# test runs every test: the packages under the race detector, then the built
# binary against the reference server, its faults, and real servers.
test: peers/typescript/node_modules
	go test -race -short -timeout 10m ./...
	go test -timeout 25m -parallel 4 ./cmd/mcpflood ./peers/... ./internal/bench

peers/typescript/node_modules: peers/typescript/package-lock.json
	cd peers/typescript && npm ci --no-audit --no-fund --loglevel=error && touch node_modules

# fuzz runs every fuzz target for a short while.
FUZZTIME ?= 10s
fuzz:
	@set -e; for pkg in $$(go list ./...); do \
		for f in $$(go test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
			echo "$$pkg $$f"; go test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) $$pkg >/dev/null || go test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) $$pkg; \
		done; \
	done

# bench prints memory a stream and cut lateness beside a plain net/http client.
bench:
	go run ./internal/bench
