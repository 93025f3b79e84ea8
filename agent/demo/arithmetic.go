package demo

import (
	"fmt"
	"strings"
)

// arithmetic calculates an expression and shows each step as a line of the tool's output, and again as a row of
// the answer's table. If a step fails, such as a division by zero, the tool fails with the reason and the
// answer gives the same reason; the steps before it are shown.
func arithmetic(s *stage, q question) {
	e := findExpression(q.text)
	v, steps, err := calculate(e)
	s.think(fmt.Sprintf("The message holds a calculation: %s. I won't guess it. I'll work it out exactly, with fractions, and note every step.", e))
	s.status("Working it out…")
	t := s.call("calculator", "Calculate "+e, map[string]string{"expression": e})
	for _, st := range steps {
		t.print(st.text + " = " + st.result)
	}
	if err != nil {
		t.complain(err.Error())
		t.fail(err.Error())
		s.status("No result")
		s.say(fmt.Sprintf("I can't give a result for `%s`: %s.", e, err))
		return
	}
	t.end()
	s.status(fmt.Sprintf("Worked out in %s", plural(len(steps), "step")))
	equals := " = "
	if strings.HasPrefix(decimal(v), "≈") {
		equals = " " // the decimal is rounded and starts with ≈
	}
	s.say("**" + e + equals + decimal(v) + "**\n\n")
	if !v.IsInt() {
		s.say(fmt.Sprintf("As a fraction it is %s.\n\n", v.RatString()))
	}
	rows := make([][]string, len(steps))
	for i, st := range steps {
		rows[i] = []string{fmt.Sprint(i + 1), st.text, st.result}
	}
	s.say(table([]string{"Step", "Calculation", "Result"}, rows))
	s.say("\nTo check it elsewhere:\n\n```python\nprint(" + strings.NewReplacer("^", "**", ",", "").Replace(e) + ")\n```\n")
}

// table returns a Markdown table. Every row has as many cells as head.
func table(head []string, rows [][]string) string {
	var b strings.Builder
	row := func(cells []string) {
		for i, c := range cells {
			if i == 0 {
				b.WriteString("|")
			}
			b.WriteString(" " + cell.Replace(c) + " |")
		}
		b.WriteString("\n")
	}
	row(head)
	row(strings.Split(strings.Repeat("--- ", len(head)-1)+"---", " "))
	for _, r := range rows {
		row(r)
	}
	return b.String()
}

// cell escapes a text so that it doesn't end its table cell: a bar would begin the next cell, and a line break
// the next row.
var cell = strings.NewReplacer("|", `\|`, "\n", " ", "\r", " ")

// plural returns a number with its noun. It adds an s for the plural, so it is only for nouns with a regular
// plural.
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
