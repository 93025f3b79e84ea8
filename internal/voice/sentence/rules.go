package sentence

import (
	"strings"
	"unicode"
)

// rules is what a language knows about its full stops.
type rules struct {
	// abbreviations are words that continue a sentence with their dot.
	abbreviations map[string]bool
	// numbered are words that continue it in front of a number.
	numbered map[string]bool
	// hasOrdinals is true if the dot behind a number makes it an ordinal, even in front of a
	// capital letter.
	hasOrdinals bool
}

// abbreviations are the words whose dot doesn't end a sentence even if a capital letter follows.
// Lower-case letters need no list, so words that often end sentences, such as etc., are left out.
// Words with a dot between single letters are recognized without a list. A capital letter is
// required if the word here has one.
var abbreviations = map[string]string{
	"en": "Mr Mrs Ms Mx Dr Prof St Rev Hon Gen Col Capt Lt Sgt Maj Cmdr Adm Gov Sen Rep Pres Messrs Mt Ft vs viz approx Ph.D Jan Feb Aug Sept Oct Nov Dec",
	"de": "Hr Fr Frl Dr Prof Dipl Ing bzw ca vgl inkl exkl evtl ggf sog max min Mio Mrd Tel Str Abt bspw zzgl abzgl gem lt jun sen St z.Hd",
	"fr": "MM Mme Mmes Mlle Dr Pr St Ste av boul env cf",
	"es": "Sr Sra Srta Sres Dr Dra Ud Uds Vd EE Av Avda Prof Lic Ing Gral Sto Sta p.ej aprox",
	"it": "Sig Sigg Dott Dr Prof Ing Avv Arch Geom Sen dott.ssa prof.ssa sig.ra sig.na ca",
	"pt": "Sr Sra Srta Dr Dra Prof Profa Exmo Exma Av Eng aprox",
	"nl": "dhr mevr mw Dr Drs Ir Ing Prof mr St bijv ca incl excl d.w.z",
	"pl": "dr prof mgr inż hab ul al pl św np tzn tzw im ks ok ppłk",
	"cs": "Ing Mgr Bc MUDr JUDr RNDr PhDr Dr doc prof tzv tj např sv ul nám mj",
	"sv": "Dr Prof bl.a t.ex ca resp",
	"da": "Dr Hr Fr Prof bl.a f.eks ca evt inkl",
	"nb": "Dr Hr Fr Prof bl.a f.eks ca evt inkl",
	"fi": "Dr Tri Prof esim mm ts ns n",
	"hu": "Dr Prof ifj id özv pl ún kb",
	"ro": "dl dna dr prof ing str",
	"tr": "Dr Prof Doç Av Sn Yrd Öğr örn bkz Alb Gen",
	"ru": "гг ул пр просп пл им тел см напр тыс млн млрд проф акад доц св ср т.е т.н",
	"uk": "вул пл ім тел див напр тис млн млрд проф акад доц св",
	"el": "κ κα κος δρ καθ π.χ δηλ",
	"vi": "TS ThS GS PGS TP Ths Tp",
	"id": "Bpk Dr Tn Ny Sdr Drs Ir Prof Jl",
	"hi": "डॉ श्री प्रो सं पं कु",
	"ar": "أ.د",
}

// numbered are the words whose dot doesn't end a sentence in front of a number.
var numbered = map[string]string{
	"en": "No Nos Nr Fig Figs Art Sec Ch Vol Eq Ex pp Inc no fig art sec ch vol eq",
	"de": "Nr Art Abs Abb Kap Bd Ziff Tab Anm",
	"fr": "art chap fig vol n°",
	"es": "núm art pág págs cap vol fig",
	"it": "art pag pagg cap fig vol num",
	"pt": "núm art pág págs cap vol fig",
	"nl": "nr art blz hfst afb",
	"pl": "nr str art godz rys tab poz",
	"cs": "č str čl odst obr kap",
	"sv": "nr kap kl fig",
	"da": "nr kap kl fig",
	"nb": "nr kap kl fig",
	"ro": "nr art pag cap fig",
	"ru": "рис стр табл гл ст п",
	"uk": "рис стор табл гл ст",
	"tr": "no mad cilt",
	"hu": "sz old",
}

// ordinals are the languages that write an ordinal as a number with a dot and may have a capital
// letter after it.
const ordinals = " de da nb no fi cs sk pl hu tr sl hr sr et lv is "

// germanMonths follow the only ordinals that are recognized without knowing the language: other
// languages don't capitalize months.
const germanMonths = " Januar Jänner Februar März April Mai Juni Juli August September Oktober November Dezember "

// ambiguous are abbreviations of one language that are words or units of others.
const ambiguous = "av dl dna doc env gem id im ing jun kb ks lt max min ms ns ok pl prof resp sen str sv ts ul"

// unionRules are the rules of all languages, for a text of an unknown one.
var unionRules = unite()

// unite returns the rules of all languages without the ambiguous ones.
func unite() *rules {
	r := &rules{abbreviations: map[string]bool{}, numbered: map[string]bool{}}
	for language := range abbreviations {
		r.add(language)
	}
	for word := range strings.FieldsSeq(ambiguous) {
		delete(r.abbreviations, word)
	}
	return r
}

// rulesOf returns the rules of a language. English is in many texts of other languages.
func rulesOf(language string) *rules {
	base := baseLanguage(language)
	if _, ok := abbreviations[base]; !ok {
		return unionRules
	}
	r := &rules{abbreviations: map[string]bool{}, numbered: map[string]bool{}, hasOrdinals: strings.Contains(ordinals, " "+base+" ")}
	r.add("en")
	r.add(base)
	return r
}

// add adds the words of a language.
func (r *rules) add(language string) {
	for word := range strings.FieldsSeq(abbreviations[language]) {
		r.abbreviations[word] = true
	}
	for word := range strings.FieldsSeq(numbered[language]) {
		r.numbered[word] = true
	}
}

// isAbbreviation reports whether a word is one that continues a sentence with its dot.
func (r *rules) isAbbreviation(word []rune) bool {
	return isListed(r.abbreviations, word) || isDotted(word)
}

// isNumbered reports whether a word is an abbreviation in front of a number.
func (r *rules) isNumbered(word []rune) bool { return isListed(r.numbered, word) }

// isListed reports whether a list has a word, or has it with a small letter.
func isListed(list map[string]bool, word []rune) bool {
	s := string(word)
	if list[s] {
		return true
	}
	return len(word) > 1 && unicode.IsUpper(word[0]) && list[string(unicode.ToLower(word[0]))+string(word[1:])]
}

// isDotted reports whether a word consists of single letters with dots between them. Times of the
// day end sentences more often than they continue them.
func isDotted(word []rune) bool {
	if len(word) < 3 {
		return false
	}
	for i, r := range word {
		if isDot := r == '.'; isDot != (i%2 == 1) || !isDot && !unicode.IsLetter(r) {
			return false
		}
	}
	s := strings.ToLower(string(word))
	return s != "a.m" && s != "p.m"
}

// isMonth reports whether a word is the German name of a month.
func isMonth(word []rune) bool { return strings.Contains(germanMonths, " "+string(word)+" ") }
