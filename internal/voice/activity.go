// Voice activity detection for clients that have none: speech is louder than the noise before it.

package voice

import (
	"encoding/binary"
	"math"
)

const (
	// activityFrame is the part of the microphone's audio that is judged at once, in bytes: 20 ms.
	activityFrame = MicrophoneRate / 50 * 2
	// minThreshold is the loudness below which nothing is speech, as a fraction of full scale. It is that of a voice across a quiet room.
	minThreshold = 0.01
	// aboveFloor is how many times louder than the noise speech has to be.
	aboveFloor = 3.0
	// smoothing is the weight of the newest frame in the loudness: enough to bridge gaps within words, and not a click of two frames.
	smoothing = 0.7
	// floorRise and floorFall are the weights of the newest frame in the noise floor. It rises slowly, so that speech doesn't become noise.
	floorRise, floorFall = 0.004, 0.2
	// startFrames is how long speech has to last until it counts, so that a click doesn't: 120 ms. stopFrames is how long the pause at
	// its end lasts, which is longer than the pauses in it: 600 ms.
	startFrames, stopFrames = 6, 30
)

// change is what an [activity] has found in a frame.
type change int

// The changes.
const (
	unchanged change = iota
	speechStarted
	speechStopped
)

// activity finds where speech starts and stops. It is a pure function of the frames.
type activity struct {
	loudness, floor float64
	isSpeech        bool
	frames          int // that contradict isSpeech, one after another
	hasFloor        bool
}

// add judges a frame of activityFrame bytes.
func (a *activity) add(pcm []byte) change {
	level := rms(pcm)
	a.loudness += smoothing * (level - a.loudness)
	if !a.hasFloor {
		a.floor, a.hasFloor = min(level, minThreshold), true
	}
	weight := floorRise
	if level < a.floor {
		weight = floorFall
	}
	if level < a.floor || !a.isSpeech {
		a.floor += weight * (level - a.floor)
	}
	isLoud := a.loudness > max(minThreshold, aboveFloor*a.floor)
	if isLoud == a.isSpeech {
		a.frames = 0
		return unchanged
	}
	a.frames++
	switch {
	case isLoud && a.frames >= startFrames:
		a.isSpeech, a.frames = true, 0
		return speechStarted
	case !isLoud && a.frames >= stopFrames:
		a.isSpeech, a.frames = false, 0
		return speechStopped
	}
	return unchanged
}

// rms returns the root mean square of samples as a fraction of full scale.
func rms(pcm []byte) float64 {
	sum, n := 0.0, len(pcm)/2
	for i := range n {
		v := float64(int16(binary.LittleEndian.Uint16(pcm[2*i:]))) / (1 << 15)
		sum += v * v
	}
	if n == 0 {
		return 0
	}
	return math.Sqrt(sum / float64(n))
}
