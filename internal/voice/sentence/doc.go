// Package sentence divides an answer that is still being written into units to speak.
//
//	s := sentence.New("de")
//	for delta := range answer {
//		speak(s.Write(delta))
//	}
//	speak(s.Close())
//
// An answer is Markdown. Three steps lead from its characters to units, and each passes on only what later characters can't change:
// lines (line.go) and their inline content (inline.go) become the characters that are spoken, each with its place in the answer; these
// become sentences (boundary.go); and sentences become units (segmenter.go).
//
// The Markdown is read here and not by a parser of whole texts, because speech can't be taken back. A parser may change its mind about
// a text when the text grows. Most of what it knows isn't needed either: a marker is silent whether or not it has a partner.
//
// Invariants:
//
//   - The units depend on the text alone, not on how it was divided into deltas. Only Flush depends on when it is called.
//   - The ranges of all units, in order, cover the whole text without gaps or overlaps. Text that isn't spoken has a range as well.
//   - A unit that is spoken has a letter or a digit. Other units have an empty Text and are not for the engine.
//   - No input waits forever. A sentence is divided after maxLength characters, and Markdown that is never completed is text after
//     maxHold bytes. What is skipped, such as code, isn't stored.
//   - The cost of a text is linear in its length, however it was divided.
//
// A Segmenter is used by one goroutine at a time. The package has no other state.
package sentence
