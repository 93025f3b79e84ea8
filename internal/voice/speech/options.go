package speech

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/leat-dev/leat/internal/voice"
)

// Options describe an engine.
type Options struct {
	// Engine is one of Names.
	Engine string
	// URL is the base of the service's addresses. If it is empty, it is the service's own. A URL may have a private address.
	URL string
	// Key is the API key. A local server may need none.
	Key string
	// Model, Voice and Language are used for utterances that name none. If they are empty, the defaults of the kind apply.
	Model, Voice, Language string
	// Speed multiplies the rate of speech. 0 means the engine's own.
	Speed float64
	// Instructions describe how to speak, such as "friendly and calm". Only models of the kind openai can follow them.
	Instructions string
	// Log receives what programs print. If it is nil, nothing is logged.
	Log *slog.Logger

	// base is the URL, or that of the kind, without a slash at the end.
	base string
	// program replaces the kind's program in tests.
	program string
	// stall replaces stallLimit in tests.
	stall time.Duration
}

// LogValue implements [slog.LogValuer]. It leaves out the key.
func (o Options) LogValue() slog.Value {
	return slog.GroupValue(slog.String("engine", o.Engine), slog.String("url", o.URL), slog.String("model", o.Model), slog.String("voice", o.Voice))
}

// String returns the engine's name only, so that a printed value doesn't show the key.
func (o Options) String() string { return o.Engine }

// Kind is a kind of engine.
type Kind struct {
	Name, Help string
	// URL, Model and Voice are the defaults of the options. A kind without URL runs a program on this machine.
	URL, Model, Voice string
	// KeyVariable is the usual environment variable for the API key. It is empty for kinds without keys.
	KeyVariable string

	// minSpeed and maxSpeed are 0 if the speed can't be set.
	minSpeed, maxSpeed float64
	// make gets checked options, with defaults for those that were empty.
	make func(Options) (voice.Engine, error)
}

// Kinds returns all kinds of engines, the default one first.
func Kinds() []Kind {
	return []Kind{
		{
			Name: "espeak-ng", Help: "espeak-ng on this machine: many languages, a mechanical voice, no key",
			minSpeed: 0.5, maxSpeed: 2.5, make: newEspeak,
		},
		{
			Name: "openai", Help: "OpenAI, or a server with the same API, such as Kokoro-FastAPI, by its URL",
			URL: "https://api.openai.com/v1", Model: "gpt-4o-mini-tts", Voice: "alloy", KeyVariable: "OPENAI_API_KEY",
			minSpeed: 0.25, maxSpeed: 4, make: newService(openAI),
		},
		{
			Name: "elevenlabs", Help: "ElevenLabs",
			URL: "https://api.elevenlabs.io", Model: "eleven_flash_v2_5", Voice: "JBFqnCBsd6RMkjVDRZzb", KeyVariable: "ELEVENLABS_API_KEY",
			minSpeed: 0.7, maxSpeed: 1.2, make: newService(elevenLabs),
		},
		{
			Name: "cartesia", Help: "Cartesia",
			URL: "https://api.cartesia.ai", Model: "sonic-3", Voice: "694f9389-aac1-45b6-b726-9d9369183238", KeyVariable: "CARTESIA_API_KEY",
			minSpeed: 0.6, maxSpeed: 1.5, make: newService(cartesia),
		},
		{
			Name: "deepgram", Help: "Deepgram; the voice is the model",
			URL: "https://api.deepgram.com", Model: "aura-2-thalia-en", KeyVariable: "DEEPGRAM_API_KEY",
			make: newService(deepgram),
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

// New makes an engine. It checks the options, but makes no request. The engine is also an [io.Closer], whose Close ends idle connections;
// utterances must have been closed before.
func New(o Options) (voice.Engine, error) {
	kinds := Kinds()
	i := slices.IndexFunc(kinds, func(k Kind) bool { return k.Name == o.Engine })
	if i < 0 {
		return nil, fmt.Errorf("speech: unknown engine %q; use %s", o.Engine, strings.Join(Names(), ", "))
	}
	k := kinds[i]
	if err := o.check(k); err != nil {
		return nil, fmt.Errorf("speech: %s: %w", k.Name, err)
	}
	o.Model, o.Voice, o.stall = cmp.Or(o.Model, k.Model), cmp.Or(o.Voice, k.Voice), cmp.Or(o.stall, stallLimit)
	o.base = strings.TrimRight(cmp.Or(o.URL, k.URL), "/")
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	e, err := k.make(o)
	if err != nil {
		return nil, err
	}
	return speaker{e}, nil
}

// Default returns espeak-ng if it is installed. Otherwise the error is a [Failure] that says what to install.
func Default(log *slog.Logger) (voice.Engine, error) {
	return New(Options{Engine: Kinds()[0].Name, Log: log})
}

// check refuses options that the kind can't fulfill, because an option without effect would go unnoticed.
func (o Options) check(k Kind) error {
	switch {
	case o.Speed != 0 && k.maxSpeed == 0:
		return errors.New("the speed can't be set")
	case o.Speed != 0 && !(o.Speed >= k.minSpeed && o.Speed <= k.maxSpeed):
		return fmt.Errorf("invalid speed %v; use %v to %v", o.Speed, k.minSpeed, k.maxSpeed)
	case o.Instructions != "" && k.Name != "openai":
		return errors.New("instructions need the engine openai")
	case k.URL == "" && (o.URL != "" || o.Key != "" || o.Model != ""):
		return errors.New("the engine has no URL, key or model")
	}
	if k.URL != "" {
		if err := voice.CheckService(o.URL, o.Key, k.URL, k.KeyVariable); err != nil {
			return err
		}
	}
	return voice.CheckLanguage(o.Language)
}

// speaker checks utterances before its engine speaks them.
type speaker struct{ engine voice.Engine }

var _ voice.Engine = speaker{}

// Speak implements [voice.Engine]. A text of white space is silence, for which no engine is needed.
func (s speaker) Speak(ctx context.Context, u voice.Utterance) (io.ReadCloser, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	if err := voice.CheckLanguage(u.Language); err != nil {
		return nil, fmt.Errorf("speech: %w", err)
	}
	u.Text = strings.TrimSpace(strings.ToValidUTF8(u.Text, "\uFFFD"))
	if u.Text == "" {
		return io.NopCloser(strings.NewReader("")), nil
	}
	return s.engine.Speak(ctx, u)
}

// Close ends idle connections.
func (s speaker) Close() error {
	if c, ok := s.engine.(io.Closer); ok {
		return c.Close()
	}
	return nil
}
