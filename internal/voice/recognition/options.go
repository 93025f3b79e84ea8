package recognition

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/leat-dev/leat/internal/voice"
)

// Options describe a recognizer.
type Options struct {
	// Engine is one of Names.
	Engine string
	// URL is the base of the service's addresses. If it is empty, it is the service's own. A URL may have a private address.
	URL string
	// Key is the API key. A local server may need none.
	Key string
	// Model is the service's model. If it is empty, the default of the kind applies.
	Model string
	// Language is a BCP 47 tag for listeners that name none. If it is empty, the recognizer finds the language itself, if it can.
	Language string

	// base is the URL, or that of the kind, without a slash at the end.
	base string
	// program replaces the kind's program in tests.
	program string
	times   times
}

// times are the durations that tests shorten.
type times struct {
	// answer limits the wait for a text or a connection.
	answer time.Duration
	// keepAlive is the time between frames on a socket without audio, and ping that between pings.
	keepAlive, ping time.Duration
	// finalize limits the wait for the last text of an utterance on a socket.
	finalize time.Duration
}

// LogValue implements [slog.LogValuer]. It leaves out the key.
func (o Options) LogValue() slog.Value {
	return slog.GroupValue(slog.String("engine", o.Engine), slog.String("url", o.URL), slog.String("model", o.Model))
}

// String returns the recognizer's name only, so that a printed value doesn't show the key.
func (o Options) String() string { return o.Engine }

// Kind is a kind of recognizer.
type Kind struct {
	Name, Help string
	// URL and Model are the defaults of the options. A kind without URL runs a program on this machine.
	URL, Model string
	// KeyVariable is the usual environment variable for the API key. It is empty for kinds without keys.
	KeyVariable string

	// make gets checked options, with defaults for those that were empty.
	make func(Options) (voice.Recognizer, error)
}

// Kinds returns all kinds of recognizers.
func Kinds() []Kind {
	return []Kind{
		{
			Name: "openai", Help: "OpenAI, or a server with the same API, such as one for Whisper, by its URL; the text comes after each utterance",
			URL: "https://api.openai.com/v1", Model: "gpt-4o-mini-transcribe", KeyVariable: "OPENAI_API_KEY", make: newOpenAI,
		},
		{
			Name: "deepgram", Help: "Deepgram; the text comes while a person speaks",
			URL: "https://api.deepgram.com", Model: "nova-3", KeyVariable: "DEEPGRAM_API_KEY", make: newDeepgram,
		},
		{
			Name: "pocketsphinx", Help: "pocketsphinx on this machine: English only, many errors, no key", make: newSphinx,
		},
	}
}

// Names returns the names of all kinds.
func Names() []string {
	var names []string
	for _, k := range Kinds() {
		names = append(names, k.Name)
	}
	return names
}

// New makes a recognizer. It checks the options, but makes no request.
func New(o Options) (voice.Recognizer, error) {
	kinds := Kinds()
	i := slices.IndexFunc(kinds, func(k Kind) bool { return k.Name == o.Engine })
	if i < 0 {
		return nil, fmt.Errorf("recognition: unknown recognizer %q; use %s", o.Engine, strings.Join(Names(), ", "))
	}
	k := kinds[i]
	if err := o.check(k); err != nil {
		return nil, fmt.Errorf("recognition: %s: %w", k.Name, err)
	}
	o.base, o.Model = strings.TrimRight(cmp.Or(o.URL, k.URL), "/"), cmp.Or(o.Model, k.Model)
	o.times = times{
		answer: cmp.Or(o.times.answer, answerLimit), keepAlive: cmp.Or(o.times.keepAlive, keepAliveGap),
		ping: cmp.Or(o.times.ping, pingGap), finalize: cmp.Or(o.times.finalize, finalizeLimit),
	}
	return k.make(o)
}

// check refuses options that can't work.
func (o Options) check(k Kind) error {
	if k.URL == "" {
		if o.URL != "" || o.Key != "" || o.Model != "" {
			return errors.New("the recognizer has no URL, key or model")
		}
	} else if err := voice.CheckService(o.URL, o.Key, k.URL, k.KeyVariable); err != nil {
		return err
	}
	return voice.CheckLanguage(o.Language)
}

// languageOf returns the language of a listener, or that of the options.
func (o Options) languageOf(tag string) (string, error) {
	if err := voice.CheckLanguage(tag); err != nil {
		return "", fmt.Errorf("recognition: %s: %w", o.Engine, err)
	}
	return cmp.Or(tag, o.Language), nil
}
