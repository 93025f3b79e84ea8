package doctor

import "github.com/leat-dev/leat/internal/voice/vad"

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
