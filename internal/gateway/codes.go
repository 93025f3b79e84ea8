package gateway

import "slices"

// Codes of the errors with which the gateway itself ends turns.
const (
	codeSilence    = "silence"       // the agent showed no progress for too long
	codeTurnLimit  = "turn_limit"    // the turn ran for too long
	codeLease      = "lease_expired" // the producer of a pushed turn didn't come back
	codeWait       = "wait_expired"  // nobody answered
	codeUntold     = "not_answered"  // the agent did not accept the answer
	codeStream     = "invalid_stream"
	codeCutShort   = "cut_short"     // the agent's stream was interrupted before its end
	codeAgent      = "agent_error"   // the agent returned an error of no other kind
	codeNotStarted = "not_started"   // the request did not reach the agent; the same send may run again
	codeRuns       = "too_many_runs" // of others, at once in one conversation
	codeRestart    = "gateway_restart"
)

// code bounds the codes of errors: those of Leat itself are told apart, those that agents choose are not.
func code(c string) string {
	if slices.Contains(codes, c) {
		return c
	}
	return other
}

var codes = []string{
	codeSilence, codeTurnLimit, codeLease, codeWait, codeStream, codeCutShort, codeAgent, codeNotStarted, codeRuns, codeRestart,
	"agent_unreachable", "agent_status", "agent_answer", "agent_not_started", "agent_exit", // of agent/http and agent/exec
}

// other stands for the values of a label beyond its bound.
const other = "other"
