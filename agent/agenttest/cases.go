package agenttest

import "github.com/leat-dev/leat/dialect"

// Statuses of the example in docs/eliza.md.
const (
	StatusLooking   = "🔍 Looking up track..."
	StatusSearching = "🔍 Searching for track..."
	StatusSettingUp = "✨ Setting up playback..."
	StatusPlaying   = "Now playing: **Song**"
)

// Case is a script and what viewers see of it. All texts are literals: an expectation that was computed by the
// code under test couldn't find a fault in it.
type Case struct {
	Name   string
	Script Script
	// Views are the visible texts after each step that changes the text. The last one is the final text.
	Views []string
	// History is the callback history after the end: trimmed statuses, without repetitions that follow each other.
	History []string
	// Reload is the text that a client without the history shows after a reload: earlier statuses, then the final text.
	Reload string
}

// Cases returns the callback cases. Each call returns new slices, so a test may change them. The names are the
// rules of [dialect.Segments], one case or more for each rule; the order has no meaning.
func Cases() []Case {
	track := Script{Status(StatusLooking), Status(StatusSearching), Status(StatusSettingUp), Status(StatusPlaying)}
	statuses := []string{StatusLooking, StatusSearching, StatusSettingUp, StatusPlaying}
	const trail = StatusLooking + "\n" + StatusSearching + "\n" + StatusSettingUp + "\n\n"
	return []Case{
		{
			Name: "each status replaces the previous one", Script: track,
			Views: statuses, History: statuses, Reload: trail + StatusPlaying,
		},
		{
			Name:   "after streamed text, viewers see the text, a blank line and the latest status",
			Script: append(Script{Text("I'll play "), Text("that song.")}, track...),
			Views: []string{
				"I'll play ", "I'll play that song.",
				"I'll play that song.\n\n" + StatusLooking,
				"I'll play that song.\n\n" + StatusSearching,
				"I'll play that song.\n\n" + StatusSettingUp,
				"I'll play that song.\n\n" + StatusPlaying,
			},
			History: statuses, Reload: trail + "I'll play that song.\n\n" + StatusPlaying,
		},
		{
			Name:   "an explicit replace is the default",
			Script: Script{{Kind: Callback, Text: StatusLooking, Merge: dialect.Replace}, {Kind: Callback, Text: StatusPlaying, Merge: dialect.Replace}},
			Views:  []string{StatusLooking, StatusPlaying}, History: []string{StatusLooking, StatusPlaying}, Reload: StatusLooking + "\n\n" + StatusPlaying,
		},
		{
			Name:   "an unknown merge replaces",
			Script: Script{Status(StatusLooking), {Kind: Callback, Text: StatusPlaying, Merge: "concat"}},
			Views:  []string{StatusLooking, StatusPlaying}, History: []string{StatusLooking, StatusPlaying}, Reload: StatusLooking + "\n\n" + StatusPlaying,
		},
		{
			Name:   "append extends",
			Script: Script{Status("Downloading"), AppendStatus(" 50%"), AppendStatus(" 100%")},
			Views:  []string{"Downloading", "Downloading 50%", "Downloading 50% 100%"},
			// Append extends the last entry of the history instead of adding one.
			History: []string{"Downloading 50% 100%"},
			Reload:  "Downloading 50% 100%",
		},
		{
			Name:   "a status sent in fragments is one entry",
			Script: Script{AppendStatus("1"), AppendStatus("2 "), AppendStatus("3")},
			Views:  []string{"1", "12 ", "12 3"}, History: []string{"12 3"}, Reload: "12 3",
		},
		{
			Name:   "an extension of a status that equals the streamed text extends its entry",
			Script: Script{Text("Hello"), Status("Hello"), AppendStatus(" world")},
			Views:  []string{"Hello", "Hello\n\nHello world"}, History: []string{"Hello world"}, Reload: "Hello\n\nHello world",
		},
		{
			Name:   "append after streamed text starts a status",
			Script: Script{Text("On it."), AppendStatus("step 1"), AppendStatus(", step 2")},
			Views:  []string{"On it.", "On it.\n\nstep 1", "On it.\n\nstep 1, step 2"}, History: []string{"step 1, step 2"},
			Reload: "On it.\n\nstep 1, step 2",
		},
		{
			Name:   "a replace after appends replaces the whole status",
			Script: Script{Status("a"), AppendStatus("b"), Status(StatusPlaying)},
			Views:  []string{"a", "ab", StatusPlaying}, History: []string{"ab", StatusPlaying}, Reload: "ab\n\n" + StatusPlaying,
		},
		{
			Name:   "a callback that equals the streamed text changes nothing but the history",
			Script: Script{Text("Hello "), Text("world"), Status("Hello world")},
			Views:  []string{"Hello ", "Hello world"}, History: []string{"Hello world"}, Reload: "Hello world",
		},
		{
			Name:   "white space around a repetition of the streamed text is ignored",
			Script: Script{Text("Hello world\n"), Status("  Hello world ")},
			Views:  []string{"Hello world\n"}, History: []string{"Hello world"}, Reload: "Hello world\n",
		},
		{
			Name:   "statuses, then a callback that equals the streamed text",
			Script: Script{Text("It is sunny."), Status("Checking..."), Status("It is sunny.")},
			Views:  []string{"It is sunny.", "It is sunny.\n\nChecking...", "It is sunny."}, History: []string{"Checking...", "It is sunny."},
			Reload: "Checking...\n\nIt is sunny.",
		},
		{
			Name:   "streamed text that repeats the callback is shown once",
			Script: Script{Status("Hello world"), Text("Hello "), Text("world")},
			Views:  []string{"Hello world"}, History: []string{"Hello world"}, Reload: "Hello world",
		},
		{
			Name:   "streamed text that only starts like the callback is shown in full",
			Script: Script{Status("Hello world"), Text("Hello "), Text("there")},
			Views:  []string{"Hello world", "Hello world\n\nHello there"}, History: []string{"Hello world"}, Reload: "Hello world\n\nHello there",
		},
		{
			Name:   "text buffered as a possible repetition is shown if the turn ends before it is complete",
			Script: Script{Status("Hello world"), Text("Hello")},
			Views:  []string{"Hello world", "Hello world\n\nHello"}, History: []string{"Hello world"}, Reload: "Hello world\n\nHello",
		},
		{
			Name:   "a status that starts with the previous one",
			Script: Script{Status("Hello "), Status("Hello world")},
			Views:  []string{"Hello ", "Hello world"}, History: []string{"Hello", "Hello world"}, Reload: "Hello\n\nHello world",
		},
		{
			Name:   "statuses of one letter each",
			Script: Script{Status("P"), Status("l"), Status("a"), Status("y")},
			Views:  []string{"P", "l", "a", "y"}, History: []string{"P", "l", "a", "y"}, Reload: "P\nl\na\n\ny",
		},
		{
			Name:   "text after a callback stays when the next callback replaces the status",
			Script: Script{Text("Let me look."), Status(StatusLooking), Text("Found it. "), Text("Enjoy!"), Status(StatusPlaying)},
			Views: []string{
				"Let me look.", "Let me look.\n\n" + StatusLooking,
				"Let me look.\n\n" + StatusLooking + "\n\nFound it. ", "Let me look.\n\n" + StatusLooking + "\n\nFound it. Enjoy!",
				"Let me look.\n\n" + StatusPlaying + "\n\nFound it. Enjoy!",
			},
			History: []string{StatusLooking, StatusPlaying}, Reload: StatusLooking + "\n\nLet me look.\n\n" + StatusPlaying + "\n\nFound it. Enjoy!",
		},
		{
			Name:   "a status sent twice in a row is one entry, and a later repetition is another",
			Script: Script{Status(StatusLooking), Status(StatusLooking), Status(StatusSearching), Status(StatusLooking)},
			Views:  []string{StatusLooking, StatusSearching, StatusLooking}, History: []string{StatusLooking, StatusSearching, StatusLooking},
			Reload: StatusLooking + "\n" + StatusSearching + "\n\n" + StatusLooking,
		},
		{
			Name:   "blank callbacks change nothing",
			Script: Script{Status(""), Text("Hi"), Status("  \n"), Status(StatusLooking), Status("")},
			Views:  []string{"Hi", "Hi\n\n" + StatusLooking}, History: []string{StatusLooking}, Reload: "Hi\n\n" + StatusLooking,
		},
		{
			Name:   "a status is shown as sent and recorded without white space around it",
			Script: Script{Status("  " + StatusLooking + "\n"), Status(StatusPlaying)},
			Views:  []string{"  " + StatusLooking + "\n", StatusPlaying}, History: []string{StatusLooking, StatusPlaying}, Reload: StatusLooking + "\n\n" + StatusPlaying,
		},
		{
			Name:   "text and status before an error stay",
			Script: Script{Text("Trying."), Status(StatusLooking), {Kind: Fail, Text: "the player is gone"}},
			Views:  []string{"Trying.", "Trying.\n\n" + StatusLooking}, History: []string{StatusLooking}, Reload: "Trying.\n\n" + StatusLooking,
		},
		{
			Name:   "text buffered as a possible repetition is shown before an error",
			Script: Script{Status("Hello world"), Text("Hello"), {Kind: Fail, Text: "cut"}},
			Views:  []string{"Hello world", "Hello world\n\nHello"}, History: []string{"Hello world"}, Reload: "Hello world\n\nHello",
		},
		{
			Name:   "a turn without callbacks has no history",
			Script: Script{Text("ha"), Text("ha"), Text("lo"), Text("op"), Text(" 100"), Text("00")},
			Views:  []string{"ha", "haha", "hahalo", "hahaloop", "hahaloop 100", "hahaloop 10000"}, Reload: "hahaloop 10000",
		},
	}
}
