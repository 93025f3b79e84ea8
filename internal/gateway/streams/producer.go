// Idempotent producers: numbers with which a client may repeat an append whose answer it didn't get.

package streams

// Producer identifies an append of a producer. Seq numbers the appends of an epoch from 0, and each restart of the
// producer begins an epoch.
type Producer struct {
	ID         string
	Epoch, Seq int64
}

// producerState is what a stream knows of a producer. It is stored in the commit of the append that changed it.
type producerState struct {
	Epoch int64 `json:"epoch"`
	// Of the last append.
	Seq int64 `json:"seq"`
	// Of the last append, epoch milliseconds.
	At int64 `json:"at"`
}

// Outcome is what became of an append.
type Outcome int

// The outcomes. All but Accepted mean that nothing was appended.
const (
	Accepted Outcome = iota
	// It was appended before.
	duplicate
	// A newer epoch of the producer has begun.
	StaleEpoch
	// A new epoch doesn't begin with 0.
	InvalidEpoch
	// An append of the producer is missing before it.
	Gap
	// The stream is closed.
	Closed
)

// verdict is the outcome for a producer, with the numbers that its client gets.
type verdict struct {
	Outcome Outcome
	// The current one.
	Epoch int64
	// Of the producer's last append; in a Gap, the one that is expected.
	Seq int64
}

// judge decides about an append of a producer. previous is nil for a producer that the stream doesn't know.
func (p *Producer) judge(previous *producerState) verdict {
	switch {
	case previous == nil && p.Seq != 0:
		return verdict{Gap, p.Epoch, 0}
	case previous == nil:
		return verdict{Accepted, p.Epoch, 0}
	case p.Epoch < previous.Epoch:
		return verdict{StaleEpoch, previous.Epoch, previous.Seq}
	case p.Epoch > previous.Epoch && p.Seq != 0:
		return verdict{InvalidEpoch, previous.Epoch, previous.Seq}
	case p.Epoch > previous.Epoch:
		return verdict{Accepted, p.Epoch, 0}
	case p.Seq <= previous.Seq:
		return verdict{duplicate, previous.Epoch, previous.Seq}
	case p.Seq > previous.Seq+1:
		return verdict{Gap, previous.Epoch, previous.Seq + 1}
	}
	return verdict{Accepted, p.Epoch, p.Seq}
}
