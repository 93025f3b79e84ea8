package agenttest

import "github.com/leat-dev/leat/dialect"

// The statuses of the callback document, word for word.
const (
	StatusLooking   = "🔍 Looking up track..."
	StatusSearching = "🔍 Searching for track..."
	StatusSettingUp = "✨ Setting up playback..."
	StatusPlaying   = "Now playing: **Song**"
)

// Case is a script and what readers see of it.
type Case struct {
	Name   string
	Script Script
	// Views are the visible texts after each step that changes them. The last is the final text.
	Views   []string
	History []string
	Reload  string
}

// Cases returns the callback cases.
func Cases() []Case {
	track := Script{Status(StatusLooking), Status(StatusSearching), Status(StatusSettingUp), Status(StatusPlaying)}
	statuses := []string{StatusLooking, StatusSearching, StatusSettingUp, StatusPlaying}
	const trail = StatusLooking + "\n" + StatusSearching + "\n" + StatusSettingUp + "\n\n"
	return []Case{
		{
			Name: "each status takes the place of the one before", Script: track,
			Views: statuses, History: statuses, Reload: trail + StatusPlaying,
		},
		{
			Name:   "after streamed text they show prefix, blank line and the latest",
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
			// An appended callback extends the last entry: the trail holds what was seen.
			History: []string{"Downloading 50% 100%"},
			Reload:  "Downloading 50% 100%",
		},
		{
			Name:   "a status that comes in fragments is one entry",
			Script: Script{AppendStatus("1"), AppendStatus("2 "), AppendStatus("3")},
			Views:  []string{"1", "12 ", "12 3"}, History: []string{"12 3"}, Reload: "12 3",
		},
		{
			Name:   "an extension of a status that equals the streamed text extends its entry",
			Script: Script{Text("Hello"), Status("Hello"), AppendStatus(" world")},
			Views:  []string{"Hello", "Hello\n\nHello world"}, History: []string{"Hello world"}, Reload: "Hello\n\nHello world",
		},
		{
			Name:   "append after streamed text opens a status",
			Script: Script{Text("On it."), AppendStatus("step 1"), AppendStatus(", step 2")},
			Views:  []string{"On it.", "On it.\n\nstep 1", "On it.\n\nstep 1, step 2"}, History: []string{"step 1, step 2"},
			Reload: "On it.\n\nstep 1, step 2",
		},
		{
			Name:   "a replace after an append replaces all of it",
			Script: Script{Status("a"), AppendStatus("b"), Status(StatusPlaying)},
			Views:  []string{"a", "ab", StatusPlaying}, History: []string{"ab", StatusPlaying}, Reload: "ab\n\n" + StatusPlaying,
		},
		{
			Name:   "a callback that equals the streamed text changes nothing but the history",
			Script: Script{Text("Hello "), Text("world"), Status("Hello world")},
			Views:  []string{"Hello ", "Hello world"}, History: []string{"Hello world"}, Reload: "Hello world",
		},
		{
			Name:   "white space around it does not matter to that",
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
			Name:   "streamed text that only begins like the callback is all shown",
			Script: Script{Status("Hello world"), Text("Hello "), Text("there")},
			Views:  []string{"Hello world", "Hello world\n\nHello there"}, History: []string{"Hello world"}, Reload: "Hello world\n\nHello there",
		},
		{
			Name:   "text held back as a repetition is said where it ends early",
			Script: Script{Status("Hello world"), Text("Hello")},
			Views:  []string{"Hello world", "Hello world\n\nHello"}, History: []string{"Hello world"}, Reload: "Hello world\n\nHello",
		},
		{
			Name:   "a status that extends the one before",
			Script: Script{Status("Hello "), Status("Hello world")},
			Views:  []string{"Hello ", "Hello world"}, History: []string{"Hello", "Hello world"}, Reload: "Hello\n\nHello world",
		},
		{
			Name:   "statuses letter by letter",
			Script: Script{Status("P"), Status("l"), Status("a"), Status("y")},
			Views:  []string{"P", "l", "a", "y"}, History: []string{"P", "l", "a", "y"}, Reload: "P\nl\na\n\ny",
		},
		{
			Name:   "text after a callback is kept, and stays where the next callback rewrites the status",
			Script: Script{Text("Let me look."), Status(StatusLooking), Text("Found it. "), Text("Enjoy!"), Status(StatusPlaying)},
			Views: []string{
				"Let me look.", "Let me look.\n\n" + StatusLooking,
				"Let me look.\n\n" + StatusLooking + "\n\nFound it. ", "Let me look.\n\n" + StatusLooking + "\n\nFound it. Enjoy!",
				"Let me look.\n\n" + StatusPlaying + "\n\nFound it. Enjoy!",
			},
			History: []string{StatusLooking, StatusPlaying}, Reload: StatusLooking + "\n\nLet me look.\n\n" + StatusPlaying + "\n\nFound it. Enjoy!",
		},
		{
			Name:   "a repeated status is recorded once, a status that comes back again",
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
			Name:   "a status is shown as it is and recorded trimmed",
			Script: Script{Status("  " + StatusLooking + "\n"), Status(StatusPlaying)},
			Views:  []string{"  " + StatusLooking + "\n", StatusPlaying}, History: []string{StatusLooking, StatusPlaying}, Reload: StatusLooking + "\n\n" + StatusPlaying,
		},
		{
			Name:   "what was said before an error stays",
			Script: Script{Text("Trying."), Status(StatusLooking), {Kind: Fail, Text: "the player is gone"}},
			Views:  []string{"Trying.", "Trying.\n\n" + StatusLooking}, History: []string{StatusLooking}, Reload: "Trying.\n\n" + StatusLooking,
		},
		{
			Name:   "text held back as a repetition is said before an error",
			Script: Script{Status("Hello world"), Text("Hello"), {Kind: Fail, Text: "cut"}},
			Views:  []string{"Hello world", "Hello world\n\nHello"}, History: []string{"Hello world"}, Reload: "Hello world\n\nHello",
		},
		{
			Name:   "no callbacks, no history",
			Script: Script{Text("ha"), Text("ha"), Text("lo"), Text("op"), Text(" 100"), Text("00")},
			Views:  []string{"ha", "haha", "hahalo", "hahaloop", "hahaloop 100", "hahaloop 10000"}, Reload: "hahaloop 10000",
		},
	}
}
