package journaltest

import (
	"testing"

	"github.com/leat-dev/leat/internal/store/journal"
)

// Open returns an empty journal. The suite closes it.
type Open func(t testing.TB) journal.Journal

// Run checks every promise of [journal.Journal]. open is called at least once for each part.
func Run(t *testing.T, open Open) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, Open)
	}{
		{"Append", testAppend},
		{"AppendMany", testAppendMany},
		{"Create", testCreate},
		{"Invalid", testInvalid},
		{"Fence", testFence},
		{"FenceRace", testFenceRace},
		{"Atomic", testAtomic},
		{"Read", testRead},
		{"ReadLimit", testReadLimit},
		{"ReadWhile", testReadWhile},
		{"Summary", testSummary},
		{"Query", testQuery},
		{"Stored", testStored},
		{"Keys", testKeys},
		{"KeysExpire", testKeysExpire},
		{"KeysAfter", testKeysAfter},
		{"KeysOfAnotherLog", testKeysOfAnotherLog},
		{"Compact", testCompact},
		{"CompactRandom", testCompactRandom},
		{"CompactTouching", testCompactTouching},
		{"CompactRecords", testCompactRecords},
		{"CompactWhileAppending", testCompactWhileAppending},
		{"Trace", testTrace},
		{"Trim", testTrim},
		{"Delete", testDelete},
		{"DeleteBlanksRecords", testDeleteBlanksRecords},
		{"Blank", testBlank},
		{"Context", testContext},
		{"Close", testClose},
		{"Model", testModel},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, open) })
	}
}

// start opens a journal and closes it at the end of the test.
func start(t testing.TB, open Open) journal.Journal {
	t.Helper()
	j := open(t)
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return j
}
