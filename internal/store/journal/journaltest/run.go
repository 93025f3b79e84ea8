package journaltest

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/leat-dev/leat/internal/store/journal"
)

// Open returns an empty journal. The suite closes it.
type Open func(t testing.TB) journal.Journal

// Run checks every promise of [journal.Journal]. Each part is a subtest with its own journal, so that a failure names the broken promise and
// the data of one part doesn't affect another. open is called at least once for each part.
//
// Parts with random data use fixed seeds or rapid, which prints the failing sequence. The suite calls only methods of the interface, so it
// doesn't test what only one implementation promises: durability, damage, sizes on disk.
func Run(t *testing.T, open Open) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, Open)
	}{
		{"Append", testAppend},
		{"AppendMany", testAppendMany},
		{"AppendAsync", testAsync},
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

// must fails the test at once if err isn't nil. It is for calls that prepare a test or whose failure makes the following checks meaningless.
func must(t rapid.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantError checks the error of a call that must fail. The test continues, so that one run shows every error that is wrong.
func wantError(t rapid.TB, call string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: %v", call, got)
	}
}

// start opens a journal and closes it at the end of the test. An error of Close fails the test.
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
