package channel

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// codeLetters are the characters of pairing codes, without those that look like others. Their number divides 256, so every
	// random byte is as likely as the next.
	codeLetters = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
	// codeLength gives a code 40 bits. Only admins of the gateway can use a code, so it has to be unique, but not hard
	// to guess.
	codeLength = 8
	// codeLife is how long a pairing code is valid.
	codeLife = time.Hour
	// maxCodes bounds the valid codes of a channel, so that strangers can't fill the store. Further strangers get no answer.
	maxCodes = 100
)

// Pairing is a request of an unknown person to be admitted.
type Pairing struct {
	Code    string    `json:"code"`
	Channel string    `json:"channel"`
	Sender  string    `json:"sender"`
	Name    string    `json:"name"`
	Expires time.Time `json:"expires"`
}

// Person is a person who may talk to a channel.
type Person struct {
	Channel string    `json:"channel"`
	Sender  string    `json:"sender"`
	Name    string    `json:"name"`
	Since   time.Time `json:"since"`
	// Author is the id as which the person appears in conversations, if they have linked another chat. Otherwise it is Sender.
	Author string `json:"author,omitempty"`
}

// access decides who may talk to a channel: the people of the configuration and those that an operator admitted.
type access struct {
	store   store
	channel string

	mu sync.Mutex // held while a code is made, so that one person gets one code
}

// admits reports whether a sender may talk to the channel, and as which author. allowed are the ids of the configuration.
func (a *access) admits(ctx context.Context, allowed []string, sender string) (author string, ok bool, err error) {
	var p Person
	ok, err = a.store.get(ctx, allowKey(a.channel, sender), &p)
	return cmp.Or(p.Author, sender), ok || slices.Contains(allowed, sender), err
}

// pair returns the pairing code of a sender who is not admitted. If the sender has a valid code, it is returned again, and isNew
// is false. The code is empty if too many strangers have one.
func (a *access) pair(ctx context.Context, sender, name string) (p Pairing, isNew bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	at, count := time.Now(), 0
	err = list(ctx, a.store, pairPrefix, func(_ string, old Pairing) {
		if old.Channel != a.channel || at.After(old.Expires) {
			return
		}
		count++
		if old.Sender == sender {
			p = old
		}
	})
	if err != nil || p.Code != "" || count >= maxCodes {
		return p, false, err
	}
	p = Pairing{Code: newCode(), Channel: a.channel, Sender: sender, Name: name, Expires: at.Add(codeLife)}
	return p, true, a.store.write(ctx, pairKey(p.Code), p, p.Expires)
}

// newCode returns a random pairing code.
func newCode() string {
	random := make([]byte, codeLength)
	rand.Read(random) // never fails
	for i, b := range random {
		random[i] = codeLetters[int(b)%len(codeLetters)]
	}
	return string(random)
}

// Allow admits the person who got a pairing code. The code may be written in lower case. Errors wrap [ErrCode] if it isn't valid.
func (p *Pipeline) Allow(ctx context.Context, code string) (Person, error) {
	code = strings.ToUpper(strings.TrimSpace(code))
	var request Pairing
	exists, err := p.store.get(ctx, pairKey(code), &request)
	if err != nil {
		return Person{}, err
	}
	at := time.Now()
	if !exists || at.After(request.Expires) {
		return Person{}, fmt.Errorf("%w: %q", ErrCode, code)
	}
	person := Person{Channel: request.Channel, Sender: request.Sender, Name: request.Name, Since: at}
	// The person first: if the gateway crashes between the two, the code can be used again and has the same effect.
	if err := p.store.write(ctx, allowKey(person.Channel, person.Sender), person, time.Time{}); err != nil {
		return Person{}, err
	}
	return person, p.store.write(ctx, pairKey(code), nil, time.Time{})
}

// Pairings returns the valid requests of people to be admitted, oldest first.
func (p *Pipeline) Pairings(ctx context.Context) ([]Pairing, error) {
	var requests []Pairing
	at := time.Now()
	err := list(ctx, p.store, pairPrefix, func(_ string, r Pairing) {
		if at.Before(r.Expires) {
			requests = append(requests, r)
		}
	})
	slices.SortFunc(requests, func(a, b Pairing) int { return a.Expires.Compare(b.Expires) })
	return requests, err
}
