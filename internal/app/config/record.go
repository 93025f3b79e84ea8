package config

// Record configures the capture of the raw bytes that turns exchange with their agents. The oldest captures are
// deleted when they are older than Retention, or when all together exceed Size.
type Record struct {
	Enabled   bool     `yaml:"enabled"`
	Retention Duration `yaml:"keep"`
	Size      Size     `yaml:"size"`
}

// smallestRecord is the smallest useful size: it fits the bytes of some turns.
const smallestRecord = 1 << 20

// check checks the values.
func (r *Record) check(bad reporter) {
	if r.Retention <= 0 {
		bad("record.keep", "must be greater than 0; to store nothing, set record.enabled to false")
	}
	if r.Size < smallestRecord {
		bad("record.size", "must be at least 1MiB; to store nothing, set record.enabled to false")
	}
}
