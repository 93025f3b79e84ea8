# Everything that has to hold before a change lands is in .ci/run; here is what takes hours, and releases.
.PHONY: full soak dist e2e-eliza e2e-letta e2e-openclaw

# How long the soak takes, and how long each fuzz target gets in a full run.
HOURS ?= 1
FUZZTIME ?= 2m

full: ## everything that takes long: thousands of schedules, kills of the real program, every fuzz target for FUZZTIME, storms of 200 turns against the real upstreams, the soak for HOURS
	LEAT_FULL=1 go test -count=1 -timeout 2h -run 'Full|Schedules|Killer' ./feed/... ./agent/... ./clients/... ./terminal/... ./server/eliza ./plugins/... ./internal/...
	FUZZTIME=$(FUZZTIME) .ci/fuzz
	LEAT_STORM=200 go test -tags e2e -count=1 -v -timeout 3h -p 1 -run '^TestStorm$$' ./e2e/openclaw ./e2e/letta
	$(MAKE) soak

soak: ## a hundred streams with cuts, truncations and restarts for HOURS: their texts are right, and nothing that the gateway uses grows
	LEAT_SOAK=$(HOURS)h go test -count=1 -timeout 0 -v -run '^TestSoak$$' ./internal/soak

dist: ## a release of the commit that is checked out, for every platform, in dist/
	go run ./internal/dist

e2e-eliza: ## the client of Eliza's own dashboard, from npm, against the real program
	go test -tags e2e -count=1 -v -timeout 10m ./e2e/eliza

e2e-letta: ## a real Letta App Server from npm, driven through the real program and in Chromium
	go test -tags e2e -count=1 -v -timeout 20m ./e2e/letta

e2e-openclaw: ## a real OpenClaw gateway from npm, driven through the real program and in Chromium; the first time takes some minutes
	go test -tags e2e -count=1 -v -timeout 30m ./e2e/openclaw
