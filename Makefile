# What must hold before a change lands is .ci/run; here is what takes hours, and releases.
.PHONY: full nightly soak dist vad e2e-eliza e2e-letta e2e-letta-output e2e-openclaw e2e-openclaw-output

# How long the soak takes.
HOURS ?= 1

full: ## what takes hours: thousands of schedules, kills, fuzzing, the real upstreams with storms of 200 turns, the soak for HOURS
	HOURS=$(HOURS) .ci/full

nightly: ## the clients of other protocols in their newest two versions
	.ci/nightly

soak: ## a hundred streams with cuts, truncations and restarts for HOURS: their texts are right, and nothing that the gateway uses grows
	LEAT_SOAK=$(HOURS)h go test -count=1 -timeout 0 -v -run '^TestSoak$$' ./test/soak

dist: vad ## a release of the commit that is checked out, for every platform, in dist/
	go run ./internal/tools/dist

vad: ## the speech detector, from npm, in web/vad/dist/
	cd web/vad && npm ci --ignore-scripts && npm run build

e2e-eliza: ## the client of Eliza's own dashboard, from npm, against the real program
	go test -tags e2e -count=1 -v -timeout 10m ./test/e2e/eliza

e2e-letta: ## a real Letta App Server from npm, driven through the real program and in Chromium
	go test -tags e2e -count=1 -v -timeout 20m -skip '^TestOutput$$' ./test/e2e/letta

e2e-letta-output: ## Letta Code from npm, with -p and in a terminal, with Leat as its server
	go test -tags e2e -count=1 -v -timeout 20m -run '^TestOutput$$' ./test/e2e/letta

e2e-openclaw: ## a real OpenClaw gateway from npm, driven through the real program and in Chromium; the first time takes some minutes
	go test -tags e2e -count=1 -v -timeout 30m -skip '^TestOutput$$' ./test/e2e/openclaw

e2e-openclaw-output: ## the Control UI, the terminal interface and the ACP bridge of two versions of OpenClaw, from npm, with Leat as their gateway
	go test -tags e2e -count=1 -v -timeout 30m -run '^TestOutput$$' ./test/e2e/openclaw
