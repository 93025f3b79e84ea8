package sentence

import (
	"strings"
	"unicode"
)

// words are what is spoken in place of what can't be spoken.
type words struct{ code, image, formula string }

// wordsOf are the words of the languages. Chinese is in simplified characters, which sound the
// same.
var wordsOf = map[string]words{
	"ar": {"كتلة برمجية", "صورة", "معادلة"},
	"bn": {"কোড ব্লক", "ছবি", "সূত্র"},
	"cs": {"blok kódu", "obrázek", "vzorec"},
	"da": {"kodeblok", "billede", "formel"},
	"de": {"Codeblock", "Bild", "Formel"},
	"el": {"μπλοκ κώδικα", "εικόνα", "τύπος"},
	"en": {"code block", "image", "formula"},
	"es": {"bloque de código", "imagen", "fórmula"},
	"fa": {"بلوک کد", "تصویر", "فرمول"},
	"fi": {"koodilohko", "kuva", "kaava"},
	"fr": {"bloc de code", "image", "formule"},
	"he": {"בלוק קוד", "תמונה", "נוסחה"},
	"hi": {"कोड ब्लॉक", "चित्र", "सूत्र"},
	"hu": {"kódblokk", "kép", "képlet"},
	"id": {"blok kode", "gambar", "rumus"},
	"it": {"blocco di codice", "immagine", "formula"},
	"ja": {"コードブロック", "画像", "数式"},
	"ko": {"코드 블록", "이미지", "수식"},
	"nb": {"kodeblokk", "bilde", "formel"},
	"nl": {"codeblok", "afbeelding", "formule"},
	"pl": {"blok kodu", "obraz", "wzór"},
	"pt": {"bloco de código", "imagem", "fórmula"},
	"ro": {"bloc de cod", "imagine", "formulă"},
	"ru": {"блок кода", "изображение", "формула"},
	"sv": {"kodblock", "bild", "formel"},
	"th": {"บล็อกโค้ด", "รูปภาพ", "สูตร"},
	"tr": {"kod bloğu", "görsel", "formül"},
	"uk": {"блок коду", "зображення", "формула"},
	"vi": {"khối mã", "hình ảnh", "công thức"},
	"zh": {"代码块", "图片", "公式"},
}

// A script is a writing system, with the languages that may use it. The first one is assumed if
// nothing else is known.
type script struct {
	table     *unicode.RangeTable
	languages string
}

// scripts are the scripts by which a language can be guessed. Latin is not among them: it has too
// many.
var scripts = []script{
	{unicode.Han, "zh ja yue"},
	{unicode.Hiragana, "ja"},
	{unicode.Katakana, "ja"},
	{unicode.Hangul, "ko"},
	{unicode.Cyrillic, "ru uk be bg sr mk kk ky mn tg"},
	{unicode.Arabic, "ar fa ur ps ckb"},
	{unicode.Devanagari, "hi mr ne sa"},
	{unicode.Greek, "el"},
	{unicode.Hebrew, "he yi"},
	{unicode.Thai, "th"},
	{unicode.Bengali, "bn as"},
	{unicode.Tamil, "ta"},
	{unicode.Telugu, "te"},
	{unicode.Gujarati, "gu"},
	{unicode.Gurmukhi, "pa"},
	{unicode.Kannada, "kn"},
	{unicode.Malayalam, "ml"},
	{unicode.Sinhala, "si"},
	{unicode.Georgian, "ka"},
	{unicode.Armenian, "hy"},
	{unicode.Ethiopic, "am ti"},
	{unicode.Khmer, "km"},
	{unicode.Lao, "lo"},
	{unicode.Myanmar, "my"},
}

// Indices in scripts. Only Japanese uses Han together with the other two.
const han, hiragana, katakana = 0, 1, 2

// A census counts the letters of a text by script.
type census struct {
	counts [24]int // by index in scripts
	latin  int
}

// add counts a letter.
func (c *census) add(r rune) {
	if !unicode.IsLetter(r) {
		return
	}
	if r < 0x370 {
		c.latin++
		return
	}
	for i := range scripts {
		if unicode.Is(scripts[i].table, r) {
			c.counts[i]++
			return
		}
	}
	c.latin++ // letters beyond the list say nothing about the language, as Latin ones
}

// language returns the language of the letters: the first preferred one that may use their script,
// or else the script's first one.
func (c *census) language(preferred ...string) string {
	best := -1
	for i, n := range c.counts {
		if n > 0 && (best < 0 || n > c.counts[best]) {
			best = i
		}
	}
	// A letter of Chinese is a syllable or a word, so names in Latin letters soon outnumber it.
	isLatin := best < 0 || c.counts[best]*3 < c.latin
	if !isLatin && best == han && (c.counts[hiragana]+c.counts[katakana])*5 >= c.counts[han] {
		best = hiragana
	}
	// Region and dialect can't be guessed, so a preferred language is better than the script's.
	for _, p := range preferred {
		switch base := baseLanguage(p); {
		case base == "":
		case best < 0 && c.latin == 0, isLatin && usesLatin(base), !isLatin && uses(best, base):
			return p
		}
	}
	if isLatin {
		return "en"
	}
	language, _, _ := strings.Cut(scripts[best].languages, " ")
	return language
}

// uses reports whether a language may use the script with an index.
func uses(script int, base string) bool {
	return strings.Contains(" "+scripts[script].languages+" ", " "+base+" ")
}

// usesLatin reports whether a language isn't known to use another script. Serbian uses two.
func usesLatin(base string) bool {
	for i := range scripts {
		if uses(i, base) {
			return base == "sr"
		}
	}
	return true
}

// baseLanguage returns the language of a BCP 47 tag without its region and script.
func baseLanguage(tag string) string {
	base, _, _ := strings.Cut(strings.ToLower(tag), "-")
	base, _, _ = strings.Cut(base, "_")
	return base
}

// words returns the words of the answer's language so far.
func (s *Segmenter) words() words { return insertedWords(s.letters.language(s.language)) }

// insertedWords returns the words of a language, or the English ones.
func insertedWords(language string) words {
	w, ok := wordsOf[baseLanguage(language)]
	if !ok {
		return wordsOf["en"]
	}
	return w
}
