# Everything that has to hold is in .ci/run; this is only what goes on for hours.
.PHONY: soak dist e2e-eliza e2e-letta e2e-openclaw
soak: ## the killer, the schedules of the feed and every fuzz target, for hours, until something fails
	while LEAT_FULL=1 go test -count=1 -timeout 60m -run 'Schedules|Killer' ./feed ./internal/killer && FUZZTIME=10m .ci/fuzz; do :; done

dist: ## a release of the commit that is checked out, for every platform, in dist/
	go run ./internal/dist

e2e-eliza: ## the client of Eliza's own dashboard, from npm, against the real program
	go test -tags e2e -count=1 -v -timeout 10m ./e2e/eliza

e2e-letta: ## a real Letta App Server from npm, driven through the real program and in Chromium
	go test -tags e2e -count=1 -v -timeout 20m ./e2e/letta

e2e-openclaw: ## a real OpenClaw gateway from npm, driven through the real program and in Chromium; the first time takes some minutes
	go test -tags e2e -count=1 -v -timeout 30m ./e2e/openclaw
