package voice

import "time"

// bytesPerSecond is the rate of PCM to the client.
const bytesPerSecond = SpeechRate * 2

// schedule is when the audio that was sent will have been played. It counts bytes, so that no rounding adds up.
type schedule struct {
	since time.Time // when the client began to play without a pause
	bytes int64     // sent since then
}

// duration returns how long audio of some bytes plays.
func duration(bytes int64) time.Duration {
	return time.Duration(bytes) * time.Second / bytesPerSecond
}

// lead returns how much of the audio is not played yet.
func (s *schedule) lead(at time.Time) time.Duration {
	if s.bytes == 0 {
		return 0
	}
	return max(0, duration(s.bytes)-at.Sub(s.since))
}

// add counts bytes that are sent now. If nothing was left to play, they begin a new stretch.
func (s *schedule) add(at time.Time, bytes int) {
	if s.lead(at) == 0 {
		*s = schedule{since: at}
	}
	s.bytes += int64(bytes)
}
