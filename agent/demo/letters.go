package demo

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// askedLetters matches questions such as: How many r's are in "strawberry"? How often does a occur in banana?
// The first group is the letter, the second one the word. Typographic quotation marks and apostrophes are
// accepted, because phones insert them.
var askedLetters = regexp.MustCompile(`(?i)how (?:many|often)\b.*?(?:\b|["'“‘])(\pL)["'”’]?(?:['’]?s)?\b.*\bin\b(?: the)?(?: word)?\s+["'“‘]?([\pL][\pL'’-]*)`)

// letters counts a letter in a word, a question that models often get wrong. Upper and lower case count as the
// same letter. The answer marks each place under the word, so the tool prints one line for each character, with
// its position.
func letters(s *stage, q question) {
	m := askedLetters.FindStringSubmatch(q.text)
	letter, word := strings.ToLower(m[1]), m[2]
	s.think(fmt.Sprintf("I'm asked how often %q occurs in %q. Counting letters is where models stumble, since they read tokens. I'll go letter by letter.", letter, word))
	s.status("Counting letters…")
	t := s.call("letters", "Look at each letter of "+word, map[string]string{"letter": letter, "word": word})
	var places []string
	i := 0
	marks := &strings.Builder{}
	for _, r := range word {
		i++
		mark := " "
		if strings.ToLower(string(r)) == letter {
			mark = "^"
			places = append(places, fmt.Sprint(i))
		}
		marks.WriteString(mark)
		t.print(fmt.Sprintf("%2d  %c  %s", i, r, mark))
	}
	t.end()
	s.status(fmt.Sprintf("Looked at %s", plural(utf8.RuneCountInString(word), "letter")))
	s.say(fmt.Sprintf("The letter **%s** occurs **%s** in *%s*.\n\n", letter, timesWord(len(places)), word))
	s.say("```text\n" + word + "\n" + strings.TrimRight(marks.String(), " ") + "\n```\n\n")
	positions := "nowhere"
	if len(places) > 0 {
		positions = strings.Join(places, ", ")
	}
	s.say(table([]string{"Letter", "How often", "At"}, [][]string{{letter, fmt.Sprint(len(places)), positions}}))
}

// timesWord returns how often something occurs, as an adverb: "once", "twice" or "3 times".
func timesWord(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}
