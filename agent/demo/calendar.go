package demo

import (
	"fmt"
	"regexp"
	"time"
)

var (
	// isoDate matches dates such as 2027-01-01, including invalid ones. askedClock matches questions about the
	// current time or date.
	isoDate    = regexp.MustCompile(`\b(\d{4})-(\d{2})-(\d{2})\b`)
	askedClock = regexp.MustCompile(`(?i)\b(what('s| is)? (the )?(current )?(time|date|day)\b|what (time|day|date|year|week) is|today'?s date|(the )?(time|date) (now|today)|what week)`)
)

// dates returns the ISO dates in a text, except invalid ones such as 2026-02-30. They are midnights in UTC, in
// the order of the text.
func dates(text string) []time.Time {
	var days []time.Time
	for _, m := range isoDate.FindAllString(text, -1) {
		if d, err := time.Parse(time.DateOnly, m); err == nil {
			days = append(days, d)
		}
	}
	return days
}

// calendar lists the weekday, the number of the day and the distance from today, for now and for each date in
// the message. With two or more dates the answer begins with the distance between the first two.
//
// Days are counted between midnights in UTC, so a change to or from daylight saving time doesn't make a day
// shorter or longer. "Today" is the date in the time zone of the clock.
func calendar(s *stage, q question) {
	days := dates(q.text)
	_, zone := q.time.Zone()
	name := "UTC"
	if zone != 0 {
		name = q.time.Format("UTC-07:00")
	}
	today := time.Date(q.time.Year(), q.time.Month(), q.time.Day(), 0, 0, 0, 0, time.UTC)
	s.think(fmt.Sprintf("This is about dates. I count %s in the message. The clock of the machine I run on tells me the rest.", plural(len(days), "date")))
	s.status("Looking at the clock…")
	t := s.call("clock", "Read the clock", map[string]string{"zone": name})
	t.print(q.time.Format(time.RFC3339))
	t.end()

	_, week := q.time.ISOWeek()
	rows := [][]string{{"now", q.time.Format(time.DateOnly), q.time.Weekday().String(), fmt.Sprint(q.time.YearDay()), fmt.Sprint(week), "0"}}
	if len(days) > 0 {
		s.status("Counting days…")
		c := s.call("calendar", "Count days", map[string][]string{"dates": isoDate.FindAllString(q.text, -1)})
		for _, d := range days {
			_, w := d.ISOWeek()
			n := daysBetween(today, d)
			c.print(fmt.Sprintf("%s  %-9s  %+d days", d.Format(time.DateOnly), d.Weekday(), n))
			rows = append(rows, []string{"named", d.Format(time.DateOnly), d.Weekday().String(), fmt.Sprint(d.YearDay()), fmt.Sprint(w), fmt.Sprintf("%+d", n)})
		}
		c.end()
	}
	s.status("Checked the calendar")
	switch len(days) {
	case 0:
		s.say(fmt.Sprintf("It is **%s** on **%s** (%s).\n\n", q.time.Format("15:04:05"), q.time.Format("Monday, 2 January 2006"), name))
	case 1:
		s.say(fmt.Sprintf("**%s is a %s**, %s.\n\n", days[0].Format("2 January 2006"), days[0].Weekday(), distance(daysBetween(today, days[0]))))
	default:
		n := daysBetween(days[0], days[1])
		s.say(fmt.Sprintf("From %s to %s it is **%s**.\n\n", days[0].Format(time.DateOnly), days[1].Format(time.DateOnly), plural(max(n, -n), "day")))
	}
	s.say(table([]string{"What", "Date", "Weekday", "Day of the year", "Week", "Days from now"}, rows))
	argument := ""
	if len(days) > 0 {
		argument = "-d " + days[0].Format(time.DateOnly) + " "
	}
	s.say("\nThe same on a command line:\n\n```sh\ndate " + argument + "+%F,%A\n```\n")
}

// daysBetween returns the number of days from a to b, which are midnights in UTC, where every day has 24 hours.
// It is negative if b is before a.
func daysBetween(a, b time.Time) int { return int((b.Unix() - a.Unix()) / (24 * 60 * 60)) }

// distance describes a number of days from today, which is negative for the past.
func distance(n int) string {
	switch {
	case n == 0:
		return "today"
	case n > 0:
		return plural(n, "day") + " from today"
	}
	return plural(-n, "day") + " ago"
}
