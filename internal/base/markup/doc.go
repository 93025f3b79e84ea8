// Package markup turns Markdown into the markup of chat platforms, at any moment of a text that
// still grows.
//
//	doc := markup.Parse(markup.Heal(text)) // Heal only while the text grows
//	for from := 0; from < doc.Len(); {
//		message, next := doc.Next(from, markup.Telegram, 4096)
//		...
//		from = next
//	}
//
// A text is parsed once into a tree whose leaves know their positions in the source. A message
// is a range of the source: the tree without the leaves outside of the range. Formats write that
// smaller tree, so a cut never lies within a tag, an entity or a code fence: a fence that is cut
// is closed and opened again, a list continues its numbers, and a table repeats its header.
//
// A text of 40,000 characters that grows is not parsed again as a whole:
//
//	doc = doc.Grow(markup.Heal(text))
//
// Platforms that can only append get a text as far as it can't change its meaning:
//
//	next := markup.Committed(text)
//	send(text[sent:next])
//
// A healed text may end in a control character and a list of positions, of markers that Parse must
// not show. It is made for Parse and Grow only; nobody should see it.
//
// Invariants:
//
//   - Parse accepts every text. No format passes HTML of the source through as markup.
//   - Heal never moves a byte: it cuts the end and appends markers. So positions in a healed
//     text are positions in the text.
//   - Next depends on its arguments alone. The same text has the same messages after a restart,
//     and a text that only grew keeps the messages before its last one, as long as their ends
//     lie before the text's open block.
//   - A platform's reader accepts every message of every text, and shows what the document shows.
//     The tests have a strict reader for each format.
//   - The visible texts of all messages joined are the visible text of the document, apart from
//     white space at the cuts and repeated headers.
//
// Values of this package are not changed after they are made and may be shared by goroutines.
package markup
