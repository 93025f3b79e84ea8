package gateway

import "slices"

// Codes of the errors with which the gateway itself ends turns.
const (
	codeSilence    = "silence"       // the agent showed no progress for too long
	codeTurnLimit  = "turn_limit"    // the turn ran for too long
	codeLease      = "lease_expired" // the producer of a pushed turn didn't reconnect
	codeWait       = "wait_expired"  // no user answered
	codeUntold     = "not_answered"  // the agent did not accept the answer
	codeStream     = "invalid_stream"
	codeCutShort   = "cut_short"     // the agent's stream was interrupted before its end
	codeAgent      = "agent_error"   // the agent returned an error without a code
	codeNotStarted = "not_started"   // the request did not reach the agent; the same send starts another turn
	codeRuns       = "too_many_runs" // too many observed turns at once in one conversation
	codeRestart    = "gateway_restart"
)

// code returns the label for an error's code: Leat's own codes as they are, and those that agents choose as other.
func code(c string) string {
	if slices.Contains(codes, c) {
		return c
	}
	return other
}

// codes are the label values that exist from the start, so a rare error is a series with 0 and not a missing one.
var codes = []string{
	codeSilence, codeTurnLimit, codeLease, codeWait, codeUntold, codeStream, codeCutShort, codeAgent, codeNotStarted, codeRuns, codeRestart,
	"agent_unreachable", "agent_status", "agent_answer", "agent_not_started", "agent_exit", // of agent/http and agent/exec
}

// other replaces values of a label beyond its limit.
const other = "other"
