# Everything that has to hold is in .ci/run; this is only what goes on for hours.
.PHONY: soak
soak: ## the killer, the schedules of the feed and every fuzz target, for hours, until something fails
	while LEAT_FULL=1 go test -count=1 -timeout 60m -run 'Schedules|Killer' ./feed ./internal/killer && FUZZTIME=10m .ci/fuzz; do :; done
