package telegram

import (
	"fmt"
	"html"
	"slices"
	"strings"
	"unicode/utf16"
)

// entityTypes are the types that a bot may send.
var entityTypes = []string{
	"mention", "hashtag", "cashtag", "bot_command", "url", "email", "phone_number", "bold", "italic", "underline", "strikethrough", "spoiler",
	"blockquote", "expandable_blockquote", "code", "pre", "text_link", "text_mention", "custom_emoji",
}

// checkEntities refuses entities that aren't valid ranges of the text, or overlap without one being inside the other. The real
// API drops some of these silently, which loses formatting, so a strict fake refuses them.
func checkEntities(text string, entities []Entity) *failure {
	units := utf16.Encode([]rune(text))
	splits := func(at int) bool { // inside a surrogate pair
		return at > 0 && at < len(units) && utf16.IsSurrogate(rune(units[at])) && units[at] >= 0xdc00
	}
	for i, e := range entities {
		switch {
		case !slices.Contains(entityTypes, e.Type):
			return badRequest("can't parse entities: unknown entity type %q", e.Type)
		case e.Offset < 0 || e.Length <= 0 || e.Offset+e.Length > len(units):
			return badRequest("can't parse entities: entity %d is not a range of the text", i)
		case splits(e.Offset) || splits(e.Offset+e.Length):
			return badRequest("can't parse entities: entity %d splits a character", i)
		case e.Type == "text_link" && e.URL == "":
			return badRequest("can't parse entities: entity %d has no url", i)
		}
		for _, o := range entities[:i] {
			a, b := e, o
			if b.Offset < a.Offset {
				a, b = b, a
			}
			if b.Offset < a.Offset+a.Length && b.Offset+b.Length > a.Offset+a.Length {
				return badRequest("can't parse entities: entity %d overlaps another", i)
			}
		}
	}
	return nil
}

// tags are the tags of parse mode HTML with the types of their entities.
var tags = map[string]string{
	"b": "bold", "strong": "bold", "i": "italic", "em": "italic", "u": "underline", "ins": "underline", "s": "strikethrough", "strike": "strikethrough",
	"del": "strikethrough", "tg-spoiler": "spoiler", "span": "spoiler", "pre": "pre", "code": "code", "blockquote": "blockquote", "a": "text_link",
}

// parseHTML reads a text in parse mode HTML.
func parseHTML(source string) (string, []Entity, *failure) {
	type open struct {
		tag    string
		entity Entity
	}
	var text strings.Builder
	var stack []open
	var entities []Entity
	at := func() int { return len(utf16.Encode([]rune(text.String()))) }
	for i := 0; i < len(source); {
		switch source[i] {
		case '&':
			end := strings.IndexByte(source[i:], ';')
			decoded := ""
			if end > 0 {
				decoded = html.UnescapeString(source[i : i+end+1])
			}
			if end <= 0 || decoded == source[i:i+end+1] {
				text.WriteByte('&')
				i++
				continue
			}
			text.WriteString(decoded)
			i += end + 1
		case '<':
			end := strings.IndexByte(source[i:], '>')
			if end < 0 {
				return "", nil, badRequest("can't parse entities: Unclosed start tag at byte offset %d", i)
			}
			tag := source[i+1 : i+end]
			if name, closes := strings.CutPrefix(tag, "/"); closes {
				if len(stack) == 0 || stack[len(stack)-1].tag != name {
					return "", nil, badRequest("can't parse entities: Unexpected end tag at byte offset %d", i)
				}
				o := stack[len(stack)-1]
				stack = stack[:len(stack)-1]
				if o.entity.Length = at() - o.entity.Offset; o.entity.Length > 0 {
					entities = append(entities, o.entity)
				}
			} else {
				name, attribute, _ := strings.Cut(tag, " ")
				kind, isKnown := tags[name]
				if !isKnown {
					return "", nil, badRequest("can't parse entities: Unsupported start tag %q at byte offset %d", name, i)
				}
				e := Entity{Type: kind, Offset: at()}
				if url, ok := strings.CutPrefix(attribute, `href="`); ok {
					e.URL = html.UnescapeString(strings.TrimSuffix(url, `"`))
				}
				if language, ok := strings.CutPrefix(attribute, `class="language-`); ok {
					e.Language = strings.TrimSuffix(language, `"`)
				}
				stack = append(stack, open{name, e})
			}
			i += end + 1
		default:
			text.WriteByte(source[i])
			i++
		}
	}
	if len(stack) > 0 {
		return "", nil, badRequest("can't parse entities: Can't find end tag corresponding to start tag %q", stack[len(stack)-1].tag)
	}
	slices.SortStableFunc(entities, func(a, b Entity) int { return a.Offset - b.Offset })
	if failed := checkEntities(text.String(), entities); failed != nil {
		return "", nil, failed
	}
	return text.String(), entities, nil
}

// String returns the entity for error messages of tests.
func (e Entity) String() string { return fmt.Sprintf("%s[%d:%d]", e.Type, e.Offset, e.Offset+e.Length) }
