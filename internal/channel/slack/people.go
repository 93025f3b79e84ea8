package slack

import (
	"cmp"
	"context"
	"sync"
	"time"
)

const (
	// lookupLimit limits the lookup of names for one message, which has to be confirmed within 3 s. A message without a name is
	// better than one that is delivered twice.
	lookupLimit = 1500 * time.Millisecond
	// nameLife is how long a name is remembered.
	nameLife = time.Hour
	// maxPeople is how many people are remembered. It bounds the memory for large workspaces to about a megabyte.
	maxPeople = 10000
)

// person is what is shown of a person. The team is needed to start a stream for a person of another workspace.
type person struct {
	name, team string
	at         time.Time
}

// people remembers people, because events contain ids only.
type people struct {
	mu   sync.Mutex
	byID map[string]person
}

// get returns a person who was looked up within the last hour. An older entry may have a name that was changed.
func (s *people) get(id string) (person, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.byID[id]
	return p, ok && time.Since(p.at) < nameLife
}

// add remembers a person. When there are too many, all are forgotten: they are looked up again.
func (s *people) add(id string, p person) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byID == nil || len(s.byID) >= maxPeople {
		s.byID = map[string]person{}
	}
	s.byID[id] = p
}

// person returns a person. If Slack doesn't say who it is in time, only what the bot itself has is known: the team.
func (c *bot) person(ctx context.Context, id string) person {
	if p, ok := c.people.get(id); ok {
		return p
	}
	unnamed := person{}
	if a := c.account.Load(); a != nil {
		unnamed.team = a.Team
	}
	if ctx.Err() != nil {
		return unnamed
	}
	var answer struct {
		User struct {
			Team     string `json:"team_id"`
			Name     string `json:"name"`
			RealName string `json:"real_name"`
			Profile  struct {
				DisplayName string `json:"display_name"`
			} `json:"profile"`
		} `json:"user"`
	}
	if err := c.client.call(ctx, "users.info", params{"user": id}, &answer); err != nil {
		c.log.Debug("the name of a person is not known", "error", err)
		return unnamed
	}
	u := answer.User
	p := person{name: cmp.Or(u.Profile.DisplayName, u.RealName, u.Name), team: cmp.Or(u.Team, unnamed.team), at: time.Now()}
	c.people.add(id, p)
	return p
}
