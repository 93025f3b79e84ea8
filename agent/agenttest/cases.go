package agenttest

import "github.com/leat-dev/leat/dialect"

// The statuses of the callback document, word for word.
const (
	Looking   = "🔍 Looking up track..."
	Searching = "🔍 Searching for track..."
	SettingUp = "✨ Setting up playback..."
	Playing   = "Now playing: **Song**"
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
	track := Script{Tell(Looking), Tell(Searching), Tell(SettingUp), Tell(Playing)}
	all := []string{Looking, Searching, SettingUp, Playing}
	const trail = Looking + "\n" + Searching + "\n" + SettingUp + "\n\n"
	return []Case{
		{
			Name: "each status takes the place of the one before", Script: track,
			Views: all, History: all, Reload: trail + Playing,
		},
		{
			Name:   "after streamed text they show prefix, blank line and the latest",
			Script: append(Script{Say("I'll play "), Say("that song.")}, track...),
			Views: []string{
				"I'll play ", "I'll play that song.",
				"I'll play that song.\n\n" + Looking,
				"I'll play that song.\n\n" + Searching,
				"I'll play that song.\n\n" + SettingUp,
				"I'll play that song.\n\n" + Playing,
			},
			History: all, Reload: trail + "I'll play that song.\n\n" + Playing,
		},
		{
			Name:   "an explicit replace is the default",
			Script: Script{{Kind: Callback, Text: Looking, Merge: dialect.Replace}, {Kind: Callback, Text: Playing, Merge: dialect.Replace}},
			Views:  []string{Looking, Playing}, History: []string{Looking, Playing}, Reload: Looking + "\n\n" + Playing,
		},
		{
			Name:   "an unknown merge replaces",
			Script: Script{Tell(Looking), {Kind: Callback, Text: Playing, Merge: "concat"}},
			Views:  []string{Looking, Playing}, History: []string{Looking, Playing}, Reload: Looking + "\n\n" + Playing,
		},
		{
			Name:   "append extends",
			Script: Script{Tell("Downloading"), Extend(" 50%"), Extend(" 100%")},
			Views:  []string{"Downloading", "Downloading 50%", "Downloading 50% 100%"},
			// An appended callback extends the last entry: the trail holds what was seen.
			History: []string{"Downloading 50% 100%"},
			Reload:  "Downloading 50% 100%",
		},
		{
			Name:   "a status that comes in fragments is one entry",
			Script: Script{Extend("1"), Extend("2 "), Extend("3")},
			Views:  []string{"1", "12 ", "12 3"}, History: []string{"12 3"}, Reload: "12 3",
		},
		{
			Name:   "an extension of a status that equals the streamed text extends its entry",
			Script: Script{Say("Hello"), Tell("Hello"), Extend(" world")},
			Views:  []string{"Hello", "Hello\n\nHello world"}, History: []string{"Hello world"}, Reload: "Hello\n\nHello world",
		},
		{
			Name:   "append after streamed text opens a status",
			Script: Script{Say("On it."), Extend("step 1"), Extend(", step 2")},
			Views:  []string{"On it.", "On it.\n\nstep 1", "On it.\n\nstep 1, step 2"}, History: []string{"step 1, step 2"},
			Reload: "On it.\n\nstep 1, step 2",
		},
		{
			Name:   "a replace after an append replaces all of it",
			Script: Script{Tell("a"), Extend("b"), Tell(Playing)},
			Views:  []string{"a", "ab", Playing}, History: []string{"ab", Playing}, Reload: "ab\n\n" + Playing,
		},
		{
			Name:   "a callback that equals the streamed text changes nothing but the history",
			Script: Script{Say("Hello "), Say("world"), Tell("Hello world")},
			Views:  []string{"Hello ", "Hello world"}, History: []string{"Hello world"}, Reload: "Hello world",
		},
		{
			Name:   "white space around it does not matter to that",
			Script: Script{Say("Hello world\n"), Tell("  Hello world ")},
			Views:  []string{"Hello world\n"}, History: []string{"Hello world"}, Reload: "Hello world\n",
		},
		{
			Name:   "statuses, then a callback that equals the streamed text",
			Script: Script{Say("It is sunny."), Tell("Checking..."), Tell("It is sunny.")},
			Views:  []string{"It is sunny.", "It is sunny.\n\nChecking...", "It is sunny."}, History: []string{"Checking...", "It is sunny."},
			Reload: "Checking...\n\nIt is sunny.",
		},
		{
			Name:   "streamed text that repeats the callback is shown once",
			Script: Script{Tell("Hello world"), Say("Hello "), Say("world")},
			Views:  []string{"Hello world"}, History: []string{"Hello world"}, Reload: "Hello world",
		},
		{
			Name:   "streamed text that only begins like the callback is all shown",
			Script: Script{Tell("Hello world"), Say("Hello "), Say("there")},
			Views:  []string{"Hello world", "Hello world\n\nHello there"}, History: []string{"Hello world"}, Reload: "Hello world\n\nHello there",
		},
		{
			Name:   "text held back as a repetition is said where it ends early",
			Script: Script{Tell("Hello world"), Say("Hello")},
			Views:  []string{"Hello world", "Hello world\n\nHello"}, History: []string{"Hello world"}, Reload: "Hello world\n\nHello",
		},
		{
			Name:   "a status that extends the one before",
			Script: Script{Tell("Hello "), Tell("Hello world")},
			Views:  []string{"Hello ", "Hello world"}, History: []string{"Hello", "Hello world"}, Reload: "Hello\n\nHello world",
		},
		{
			Name:   "statuses letter by letter",
			Script: Script{Tell("P"), Tell("l"), Tell("a"), Tell("y")},
			Views:  []string{"P", "l", "a", "y"}, History: []string{"P", "l", "a", "y"}, Reload: "P\nl\na\n\ny",
		},
		{
			Name:   "text after a callback is kept, and stays where the next callback rewrites the status",
			Script: Script{Say("Let me look."), Tell(Looking), Say("Found it. "), Say("Enjoy!"), Tell(Playing)},
			Views: []string{
				"Let me look.", "Let me look.\n\n" + Looking,
				"Let me look.\n\n" + Looking + "\n\nFound it. ", "Let me look.\n\n" + Looking + "\n\nFound it. Enjoy!",
				"Let me look.\n\n" + Playing + "\n\nFound it. Enjoy!",
			},
			History: []string{Looking, Playing}, Reload: Looking + "\n\nLet me look.\n\n" + Playing + "\n\nFound it. Enjoy!",
		},
		{
			Name:   "a repeated status is recorded once, a status that comes back again",
			Script: Script{Tell(Looking), Tell(Looking), Tell(Searching), Tell(Looking)},
			Views:  []string{Looking, Searching, Looking}, History: []string{Looking, Searching, Looking},
			Reload: Looking + "\n" + Searching + "\n\n" + Looking,
		},
		{
			Name:   "blank callbacks change nothing",
			Script: Script{Tell(""), Say("Hi"), Tell("  \n"), Tell(Looking), Tell("")},
			Views:  []string{"Hi", "Hi\n\n" + Looking}, History: []string{Looking}, Reload: "Hi\n\n" + Looking,
		},
		{
			Name:   "a status is shown as it is and recorded trimmed",
			Script: Script{Tell("  " + Looking + "\n"), Tell(Playing)},
			Views:  []string{"  " + Looking + "\n", Playing}, History: []string{Looking, Playing}, Reload: Looking + "\n\n" + Playing,
		},
		{
			Name:   "what was said before an error stays",
			Script: Script{Say("Trying."), Tell(Looking), {Kind: Fail, Text: "the player is gone"}},
			Views:  []string{"Trying.", "Trying.\n\n" + Looking}, History: []string{Looking}, Reload: "Trying.\n\n" + Looking,
		},
		{
			Name:   "text held back as a repetition is said before an error",
			Script: Script{Tell("Hello world"), Say("Hello"), {Kind: Fail, Text: "cut"}},
			Views:  []string{"Hello world", "Hello world\n\nHello"}, History: []string{"Hello world"}, Reload: "Hello world\n\nHello",
		},
		{
			Name:   "no callbacks, no history",
			Script: Script{Say("ha"), Say("ha"), Say("lo"), Say("op"), Say(" 100"), Say("00")},
			Views:  []string{"ha", "haha", "hahalo", "hahaloop", "hahaloop 100", "hahaloop 10000"}, Reload: "hahaloop 10000",
		},
	}
}
