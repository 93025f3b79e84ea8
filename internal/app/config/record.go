package config

// Record says what is kept of the bytes that turns exchange with their agents.
type Record struct {
	Enabled bool     `yaml:"enabled"`
	Keep    Duration `yaml:"keep"`
	Size    Size     `yaml:"size"`
}

// smallestRecord holds some turns.
const smallestRecord = 1 << 20

func (r *Record) check(bad func(key, format string, args ...any)) {
	if r.Keep <= 0 {
		bad("record.keep", "it has to be above 0; record.enabled: false keeps nothing")
	}
	if r.Size < smallestRecord {
		bad("record.size", "it has to be 1MiB at least; record.enabled: false keeps nothing")
	}
}
