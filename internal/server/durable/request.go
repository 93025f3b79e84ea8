// The headers of requests that change a stream.

package durable

import (
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/leat-dev/leat/internal/gateway/streams"
	"github.com/leat-dev/leat/internal/server"
)

// validType matches what is accepted as a content type. Anything else means bytes.
var validType = regexp.MustCompile(`^[\w-]+/[\w.+-]+`)

// isClosing reports whether a request closes the stream. Only one value of the header counts.
func isClosing(r *http.Request) bool { return strings.EqualFold(r.Header.Get(headerClosed), isTrue) }

// creationOf reads a PUT.
func creationOf(r *http.Request) (c streams.Creation, err error) {
	// An invalid type means bytes, as a missing one does. Clients that send nonsense have never been refused by the
	// protocol.
	if c.ContentType = r.Header.Get("Content-Type"); !validType.MatchString(c.ContentType) {
		c.ContentType = ""
	}
	c.IsClosed, c.ExpiresAt = isClosing(r), r.Header.Get(headerExpiresAt)
	if ttl, ok := header(r, headerTTL); ok {
		if c.TTL, err = wholeNumber(headerTTL, ttl); err != nil {
			return c, err
		}
		c.HasTTL = true
	}
	if err := forkOf(r, &c); err != nil {
		return c, err
	}
	if c.ContentType == "" && c.Fork == "" {
		c.ContentType = typeBytes
	}
	c.Body, err = server.ReadBody(r)
	return c, err
}

// forkOf reads the headers of a fork.
func forkOf(r *http.Request, c *streams.Creation) (err error) {
	from, isFork := header(r, headerForkedFrom)
	offset, hasOffset := header(r, headerForkOffset)
	sub, hasSub := header(r, headerForkSub)
	if !isFork && (hasOffset || hasSub) {
		return server.Invalid("%s and %s need a %s", headerForkOffset, headerForkSub, headerForkedFrom)
	}
	if !isFork {
		return nil
	}
	// Clients send the path of the source, or its whole URL. The host isn't compared: a proxy may have changed it.
	u, err := url.Parse(from)
	path, isBelow := "", false
	if err == nil {
		path, isBelow = strings.CutPrefix(u.Path, root)
	}
	if !isBelow || path == "" {
		return server.Invalid("%s %.100q must be the path of a stream, such as %sexample", headerForkedFrom, from, root)
	}
	if c.Fork, err = streamPath(path); err != nil {
		return err
	}
	if hasOffset {
		if c.ForkAt, c.ForkTag, err = parseOffset(offset); err != nil {
			return err
		}
		c.HasForkAt = true
	}
	if hasSub {
		c.ForkSub, err = wholeNumber(headerForkSub, sub)
	}
	return err
}

// additionOf reads a POST.
func additionOf(r *http.Request) (a streams.Addition, err error) {
	a = streams.Addition{ContentType: r.Header.Get("Content-Type"), Close: isClosing(r), Seq: r.Header.Get(headerSeq)}
	if a.Producer, err = producerOf(r); err != nil {
		return a, err
	}
	if a.Body, err = server.ReadBody(r); err != nil {
		return a, err
	}
	switch {
	case len(a.Body) == 0 && !a.Close:
		return a, server.Invalid("the body is empty; only a request with %s: %s appends nothing", headerClosed, isTrue)
	case len(a.Body) > 0 && a.ContentType == "":
		return a, server.Invalid("a request with a body needs a Content-Type, that of the stream")
	}
	return a, nil
}

// producerOf reads the headers of a producer, or returns nil.
func producerOf(r *http.Request) (*streams.Producer, error) {
	id, hasID := header(r, headerProducerID)
	epoch, hasEpoch := header(r, headerProducerEpoch)
	seq, hasSeq := header(r, headerProducerSeq)
	switch {
	case !hasID && !hasEpoch && !hasSeq:
		return nil, nil
	case !hasID || !hasEpoch || !hasSeq:
		return nil, server.Invalid("%s, %s and %s are sent together or not at all", headerProducerID, headerProducerEpoch, headerProducerSeq)
	case id == "" || len(id) > maxProducerID:
		return nil, server.Invalid("a %s has 1 to %d bytes", headerProducerID, maxProducerID)
	}
	p := streams.Producer{ID: id}
	var err error
	if p.Epoch, err = number(headerProducerEpoch, epoch); err != nil {
		return nil, err
	}
	p.Seq, err = number(headerProducerSeq, seq)
	return &p, err
}

// maxProducerID is the length of the longest id of a producer, in bytes. A stream remembers a thousand of them.
const maxProducerID = 256

// header returns a header of a request, and whether it is there at all.
func header(r *http.Request, name string) (value string, ok bool) {
	values := r.Header.Values(name)
	if len(values) == 0 {
		return "", false
	}
	return values[0], true
}

var digits = regexp.MustCompile(`^[0-9]{1,16}$`)

// maxNumber is the largest integer that JavaScript represents exactly. The protocol allows no larger ones.
const maxNumber = 1<<53 - 1

// number parses a number of a producer.
func number(name, value string) (int64, error) {
	n, err := strconv.ParseInt(value, 10, 64)
	if !digits.MatchString(value) || err != nil || n > maxNumber {
		return 0, server.Invalid("%s %.32q is not a whole number up to %d", name, value, int64(maxNumber))
	}
	return n, nil
}

// wholeNumber parses a number without leading zeros.
func wholeNumber(name, value string) (int64, error) {
	if len(value) > 1 && strings.HasPrefix(value, "0") {
		return 0, server.Invalid("%s %.32q has leading zeros", name, value)
	}
	return number(name, value)
}
