package doctor

import (
	"fmt"
	"time"
)

// Level says how bad a finding is.
type Level string

// The levels.
const (
	OK   Level = "ok"
	Warn Level = "warn" // it works, but somebody should look
	Fail Level = "fail" // it does not work
)

// Finding is what one check found.
type Finding struct {
	Check   string `json:"check"` // disk, clock, port and so on
	Level   Level  `json:"level"`
	Message string `json:"message"`
	Fix     string `json:"fix,omitempty"` // what to do; of warnings and failures
}

// limit bounds a check that waits for something else.
const limit = 10 * time.Second

// report collects the findings of one check.
type report struct {
	check    string
	findings []Finding
	// buffered says that frames of the test stream came late.
	buffered bool
}

func (r *report) ok(format string, args ...any) {
	r.findings = append(r.findings, Finding{Check: r.check, Level: OK, Message: fmt.Sprintf(format, args...)})
}

func (r *report) warn(fix, format string, args ...any) {
	r.findings = append(r.findings, Finding{Check: r.check, Level: Warn, Message: fmt.Sprintf(format, args...), Fix: fix})
}

func (r *report) fail(fix, format string, args ...any) {
	r.findings = append(r.findings, Finding{Check: r.check, Level: Fail, Message: fmt.Sprintf(format, args...), Fix: fix})
}
