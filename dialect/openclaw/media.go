package openclaw

import (
	"slices"
	"strconv"

	"github.com/leat-dev/leat/event"
)

// media shows a file, once for each URL. Beyond the limit of parts it does nothing; bounded then refuses the frame.
// The part ends at once, because a file doesn't grow.
func (d *decoder) media(r *run, url string) {
	if url == "" || len(r.Media) > maxParts || slices.Contains(r.Media, url) {
		return
	}
	r.Media = append(r.Media, url)
	part := "media:" + strconv.Itoa(len(r.Media))
	d.start(r, part, &event.Body{Kind: event.KindMedia, Media: &event.Media{URL: url}})
	d.part(r, part, event.Event{Type: event.PartEnd})
}

// showBetween makes a segment show a text of protocol 3, with the files at the places where their lines were.
func (d *decoder) showBetween(r *run, s *segment, text screened) {
	for i, url := range text.media {
		at := min(text.at[i], len(text.visible))
		// A file before the visible end of the text was shown with an earlier frame, or comes too late for its place.
		if slices.Contains(r.Media, url) || int64(at) < s.Visible.Len() {
			continue
		}
		d.show(r, s, text.visible[:at])
		s.startPart()
		d.media(r, url)
	}
	d.show(r, s, text.visible)
	d.addMedia(r, text)
}

// deferFile remembers a file of protocol 4 until the end of the run's lifecycle shows where in the text it belongs.
// Frames repeat the list of files, so those that are known are skipped.
func (d *decoder) deferFile(r *run, url string) {
	if url != "" && len(r.Files) <= maxParts && !slices.Contains(r.Media, url) && !slices.Contains(r.Files, url) {
		r.Files = append(r.Files, url)
	}
}

// release shows the deferred files behind the text, because their place is not known.
func (d *decoder) release(r *run) {
	files := r.Files
	r.Files = nil
	for _, url := range files {
		d.media(r, url)
	}
}

// place shows the deferred files at their places in the run's last text. raw is that text with the lines that name files. Text
// after a file moves to another part behind it; none of its words change. If raw doesn't fit what was streamed, the files are
// released. It must be called before the end of the run, with the text of the frame that ends the lifecycle.
func (d *decoder) place(r *run, raw string) {
	files, s := r.Files, r.text()
	screenedText := screenWhole(raw)
	if s == nil || !s.Open || s.Continuations > 0 || len(screenedText.media) != len(files) || len(files) == 0 || !s.Tight.is(screenedText.visible) {
		d.release(r)
		return
	}
	r.Files = nil
	text := screenedText.visible
	pieceEnd := func(i int) int {
		if i == len(files) {
			return len(text)
		}
		return min(screenedText.at[i], len(text))
	}
	// The text before the first file stays in its part; the rest moves behind the files, piece by piece.
	if head := pieceEnd(0); head < len(text) {
		d.emitText(r, s, event.PartReplace, text[:head])
	}
	for i, url := range files {
		s.startPart()
		d.media(r, url)
		if piece := text[pieceEnd(i):pieceEnd(i+1)]; piece != "" {
			d.emitText(r, s, event.PartAppend, piece)
		}
	}
}
