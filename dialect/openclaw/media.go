package openclaw

import (
	"slices"
	"strconv"

	"github.com/leat-dev/leat/event"
)

// media shows a file, once. A frame that names more than a run may have is refused as a whole; no time is spent on the rest.
func (d *decoder) media(r *run, url string) {
	if url == "" || len(r.Media) > maxParts || slices.Contains(r.Media, url) {
		return
	}
	r.Media = append(r.Media, url)
	part := "media:" + strconv.Itoa(len(r.Media))
	d.start(r, part, &event.Body{Kind: event.KindMedia, Media: &event.Media{URL: url}})
	d.part(r, part, event.Event{Type: event.PartEnd})
}

// showBetween makes a segment show a text of protocol 3, with the files that it names in their places.
func (d *decoder) showBetween(r *run, s *segment, text screened) {
	for i, url := range text.media {
		at := min(text.at[i], len(text.visible))
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

// keep takes a file that protocol 4 names behind the text in which it stands: where in it, only the run's end tells.
func (d *decoder) deferFile(r *run, url string) {
	if url != "" && len(r.Files) <= maxParts && !slices.Contains(r.Media, url) && !slices.Contains(r.Files, url) {
		r.Files = append(r.Files, url)
	}
}

// release shows the files that wait.
func (d *decoder) release(r *run) {
	files := r.Files
	r.Files = nil
	for _, url := range files {
		d.media(r, url)
	}
}

// place shows the files that wait in their places in the run's last text, of which raw is the form that names them. What was
// streamed behind a file moves behind it; no word of it changes.
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
