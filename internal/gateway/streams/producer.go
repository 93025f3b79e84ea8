// Idempotent producers: numbers with which a client may repeat an append whose answer it didn't get.

package streams

// Producer identifies an append of a producer. Seq numbers the appends of an epoch from 0, and each restart of the producer begins an epoch.
type Producer struct {
	ID         string
	Epoch, Seq int64
}

// producerState is what a stream knows of a producer. It is stored in the commit of the append that changed it.
type producerState struct {
	Epoch int64 `json:"epoch"`
	Seq   int64 `json:"seq"` // of the last append
	At    int64 `json:"at"`  // of the last append, epoch milliseconds
}

// Outcome is what became of an append.
type Outcome int

// The outcomes. All but Accepted mean that nothing was appended.
const (
	Accepted     Outcome = iota
	Duplicate            // it was appended before
	StaleEpoch           // a newer epoch of the producer has begun
	InvalidEpoch         // a new epoch doesn't begin with 0
	Gap                  // an append of the producer is missing before it
	Closed               // the stream is closed
)

// Verdict is the outcome for a producer, with the numbers that its client gets.
type Verdict struct {
	Outcome Outcome
	Epoch   int64 // the current one
	Seq     int64 // of the producer's last append; in a Gap, the one that is expected
}

// judge decides about an append of a producer. known is nil for a producer that the stream doesn't know.
func (p *Producer) judge(known *producerState) Verdict {
	switch {
	case known == nil && p.Seq != 0:
		return Verdict{Gap, p.Epoch, 0}
	case known == nil:
		return Verdict{Accepted, p.Epoch, 0}
	case p.Epoch < known.Epoch:
		return Verdict{StaleEpoch, known.Epoch, known.Seq}
	case p.Epoch > known.Epoch && p.Seq != 0:
		return Verdict{InvalidEpoch, known.Epoch, known.Seq}
	case p.Epoch > known.Epoch:
		return Verdict{Accepted, p.Epoch, 0}
	case p.Seq <= known.Seq:
		return Verdict{Duplicate, known.Epoch, known.Seq}
	case p.Seq > known.Seq+1:
		return Verdict{Gap, known.Epoch, known.Seq + 1}
	}
	return Verdict{Accepted, p.Epoch, p.Seq}
}
