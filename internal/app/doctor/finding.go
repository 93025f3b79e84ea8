package doctor

import (
	"fmt"
	"time"

	"github.com/leat-dev/leat/internal/voice/vad"
)

// Level is the severity of a finding.
type Level string

// The levels.
const (
	OK   Level = "ok"
	Warn Level = "warn" // it works, but should be changed
	Fail Level = "fail" // it doesn't work
)

// Finding is a result of a check. A check can have several.
type Finding struct {
	Check   string `json:"check"` // disk, clock, port and so on
	Level   Level  `json:"level"`
	Message string `json:"message"`
	Fix     string `json:"fix,omitempty"` // what to do about a warning or failure; may be empty
}

// limit bounds each check that waits for the network or the disk. A check that takes longer has found a problem: a
// healthy gateway answers within milliseconds.
const limit = 10 * time.Second

// report collects the findings of one check. It is not safe for concurrent use: each call of a check makes its own.
type report struct {
	check    string
	findings []Finding
	// buffered is true if frames of the test stream were delayed.
	buffered bool
}

// ok adds a finding that needs no action.
func (r *report) ok(format string, args ...any) {
	r.findings = append(r.findings, Finding{Check: r.check, Level: OK, Message: fmt.Sprintf(format, args...)})
}

// warn adds a finding that should be changed. fix says how, in the imperative, or is empty if that is unknown.
func (r *report) warn(fix, format string, args ...any) {
	r.findings = append(r.findings, Finding{Check: r.check, Level: Warn, Message: fmt.Sprintf(format, args...), Fix: fix})
}

// fail adds a finding that prevents the gateway from working. fix is as for warn.
func (r *report) fail(fix, format string, args ...any) {
	r.findings = append(r.findings, Finding{Check: r.check, Level: Fail, Message: fmt.Sprintf(format, args...), Fix: fix})
}

// Detector checks the archive of the speech detector.
func Detector(path string) []Finding {
	r := &report{check: "voice"}
	if _, err := vad.Open(path); err != nil {
		r.fail("set voice.vad to the archive leat-vad-VERSION.tar.gz of the gateway's release, or to the folder that is in it", "voice.vad: %v", err)
	} else {
		r.ok("the speech detector %s is complete", path)
	}
	return r.findings
}
