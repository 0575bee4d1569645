package knowledge

import "strings"

// openings are the words with which questions begin, by language.
var openings = map[string]string{
	"en": " what what's whats who who's whose whom where where's when why how how's which is are was were do does did can could will would should has have define explain ",
	"de": " was wer wen wem wessen wo woher wohin wann warum wieso weshalb wie wieviel welche welcher welches ist sind war waren kann können hat haben gibt erkläre ",
}

// Asks reports whether a sentence that is no command begins as a question does, in a language such as en-US.
func Asks(text, language string) bool {
	first, _, more := strings.Cut(strings.TrimSpace(strings.ToLower(text)), " ")
	lang, _, _ := strings.Cut(language, "-")
	return more && strings.Contains(openings[lang], " "+strings.ReplaceAll(first, "’", "'")+" ")
}
