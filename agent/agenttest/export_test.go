package agenttest

// Diff is diff, for the tests of the suite itself.
func (c Case) Diff(got Playback) []string { return c.diff(got) }
